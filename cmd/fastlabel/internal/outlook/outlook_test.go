// SPDX-License-Identifier: Apache-2.0

package outlook

import (
	"strings"
	"testing"
)

// Each fact about a volume, and what changes with it: the work of CRI-O, CRI-O
// with the annotation, containerd, podman and the hook, now and once labelled; whether
// a label that is written beforehand is of use; and a sentence that says so.
func TestOutlook(t *testing.T) {
	wrong := [10]Work{Writes, Reads, Writes, Root, Writes, Reads, Writes, ReadsOnce, Labels, Root}
	for name, c := range map[string]struct {
		v      Volume
		works  [10]Work
		labels bool
		says   string
	}{
		"wrong":              {Volume{}, wrong, true, "go-selinux then writes it to every entry"},
		"right":              {Volume{Right: true, Vouched: true}, [10]Work{Reads, Reads, Root, Root, Reads, Reads, ReadsOnce, ReadsOnce, Root, Root}, true, "reads that of every entry all the same"},
		"right, no record":   {Volume{Right: true}, [10]Work{Reads, Reads, Root, Root, Reads, Reads, ReadsOnce, ReadsOnce, Root, Root}, true, "fastlabel verify reads every one"},
		"drawn":              {Volume{Drawn: true}, [10]Work{Writes, Writes, Writes, Writes, Writes, Writes, Writes, Writes, Labels, Labels}, false, "each start draws another"},
		"no labels":          {Volume{NoLabels: "so it is"}, [10]Work{4: Fails, 5: Fails}, false, "so it is"},
		"no labels, NFS":     {Volume{NoLabels: "so it is", Plugin: "kubernetes.io/nfs"}, [10]Work{}, false, "never asks for NFS"},
		"no labels, CSI":     {Volume{NoLabels: "so it is", Plugin: "kubernetes.io/csi"}, [10]Work{}, false, "and the kubelet does not ask"},
		"refused":            {Volume{Refused: true}, [10]Work{Fails, Fails, Fails, Fails, Fails, Fails, Fails, Fails, Fails, Fails}, false, "directory of the system"},
		"read-only":          {Volume{ReadOnly: true}, [10]Work{Fails, Fails, Fails, Fails, Fails, Fails, Fails, Fails, None, None}, false, "a mount that can be written to"},
		"read-only, right":   {Volume{ReadOnly: true, Right: true}, [10]Work{Reads, Reads, Root, Root, Reads, Reads, ReadsOnce, ReadsOnce, Root, Root}, true, "reads that of every entry all the same"},
		"left by CRI-O":      {Volume{LeftByCRIO: "spc_t"}, [10]Work{0, 0, 0, 0, Writes, Reads, Writes, ReadsOnce, Labels, Root}, true, "CRI-O relabels nothing here: spc_t"},
		"NFS":                {Volume{Plugin: "kubernetes.io/nfs"}, [10]Work{0, 0, 0, 0, 0, 0, Writes, ReadsOnce, Labels, Root}, true, "nothing else labels it"},
		"CSI":                {Volume{Plugin: "kubernetes.io/csi"}, wrong, true, "seLinuxMount: true"},
		"emptyDir":           {Volume{Plugin: "kubernetes.io/empty-dir"}, wrong, false, "made with the pod"},
		"no word of plugins": {Volume{}, wrong, true, "if the kubelet asks"},
		"unasked":            {Volume{Unasked: true}, wrong, true, "The pod has no such annotation"},
		"SELinux off":        {Volume{Off: true}, wrong, true, "SELinux is off"},
		"differ":             {Volume{Differ: true}, wrong, true, "One level for all containers"},
		"shared":             {Volume{Shared: true}, wrong, true, "For podman: neither :z nor :Z."},
		"containerd draws":   {Volume{ContainerdDraws: true, Right: true}, [10]Work{Reads, Reads, Root, Root, Writes, Writes, ReadsOnce, ReadsOnce, Root, Root}, true, "the pod's level again in each container"},
	} {
		var works [10]Work
		said := append(c.v.Notes(), c.v.Advice()...)
		if len(c.v.Advice()) == 0 {
			t.Errorf("%s: no advice", name)
		}
		for i, w := range c.v.Ways() {
			works[2*i], works[2*i+1] = w.Now, w.Then
			said = append(said, w.Why)
			if w.Why == "" || w.Runtime == "" {
				t.Errorf("%s: %+v", name, w)
			}
		}
		if works != c.works || c.v.Labels() != c.labels || !strings.Contains(strings.Join(said, "\n"), c.says) {
			t.Errorf("%s: %v, %v, %q", name, works, c.v.Labels(), said)
		}
	}
	if notes := (Volume{Plugin: "kubernetes.io/csi", Recursive: true}).Notes(); len(notes) > 0 {
		t.Errorf("recursive: %q", notes)
	}
	if w := (Volume{Shared: true}).Ways()[3]; w.Runtime != "podman with :z" {
		t.Error(w)
	}
}
