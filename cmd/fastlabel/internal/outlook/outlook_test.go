// SPDX-License-Identifier: Apache-2.0

package outlook

import (
	"strings"
	"testing"
	"time"
)

// Each fact about a volume, and what changes with it: the work of CRI-O, CRI-O
// with the annotation, containerd, podman and the hook, now and once labelled.
func TestOutlook(t *testing.T) {
	for name, c := range map[string]struct {
		v     Volume
		works [10]Work
		help  Help
		says  string
	}{
		"wrong":            {Volume{}, [10]Work{Writes, Reads, Writes, Root, Writes, Reads, Writes, ReadsOnce, Labels, Root}, Yes, "With CRI-O it takes the annotation"},
		"right":            {Volume{Right: true}, [10]Work{Reads, Reads, Root, Root, Reads, Reads, ReadsOnce, ReadsOnce, Root, Root}, Yes, "it seems to be done"},
		"right, strays":    {Volume{Right: true, Strays: 7}, [10]Work{Reads, Reads, Root, Root, Reads, Reads, ReadsOnce, ReadsOnce, Root, Root}, Yes, "7 of the entries that were read do not"},
		"drawn":            {Volume{Drawn: true}, [10]Work{Writes, Writes, Writes, Writes, Writes, Writes, Writes, Writes, Labels, Labels}, No, "each start draws another"},
		"no labels":        {Volume{NoLabels: "so it is"}, [10]Work{}, No, "so it is"},
		"refused":          {Volume{Refused: true}, [10]Work{}, No, "directory of the system"},
		"left":             {Volume{Left: "the container is privileged"}, [10]Work{0, 0, 0, 0, 0, 0, Writes, ReadsOnce, 0, 0}, No, "the container is privileged"},
		"left by CRI-O":    {Volume{LeftByCRIO: "spc_t"}, [10]Work{0, 0, 0, 0, Writes, Reads, Writes, ReadsOnce, Labels, Root}, Part, "CRI-O relabels nothing here: spc_t"},
		"NFS":              {Volume{Plugin: "kubernetes.io/nfs"}, [10]Work{0, 0, 0, 0, 0, 0, Writes, ReadsOnce, Labels, Root}, Part, "never has NFS relabelled"},
		"CSI":              {Volume{Plugin: "kubernetes.io/csi"}, [10]Work{Writes, Reads, Writes, Root, Writes, Reads, Writes, ReadsOnce, Labels, Root}, Yes, "seLinuxMount: true"},
		"emptyDir":         {Volume{Plugin: "kubernetes.io/empty-dir"}, [10]Work{Writes, Reads, Writes, Root, Writes, Reads, Writes, ReadsOnce, Labels, Root}, No, "made with the pod"},
		"unasked":          {Volume{Unasked: true}, [10]Work{Writes, Reads, Writes, Root, Writes, Reads, Writes, ReadsOnce, Labels, Root}, Yes, "does not bear that annotation"},
		"SELinux off":      {Volume{Off: true}, [10]Work{Writes, Reads, Writes, Root, Writes, Reads, Writes, ReadsOnce, Labels, Root}, Yes, "SELinux is off"},
		"differ":           {Volume{Differ: true}, [10]Work{Writes, Reads, Writes, Root, Writes, Reads, Writes, ReadsOnce, Labels, Root}, Part, "take it from each other"},
		"containerd draws": {Volume{ContainerdDraws: true, Right: true}, [10]Work{Reads, Reads, Root, Root, Writes, Writes, ReadsOnce, ReadsOnce, Root, Root}, Part, "repeat the pod's level there"},
	} {
		var works [10]Work
		for i, w := range c.v.Ways() {
			works[2*i], works[2*i+1] = w.Now, w.Then
		}
		help, reasons := c.v.Verdict()
		if works != c.works || help != c.help || !strings.Contains(strings.Join(reasons, "\n"), c.says) {
			t.Errorf("%s: %v, %s, %q", name, works, help, reasons)
		}
	}
	if _, reasons := (Volume{Plugin: "kubernetes.io/csi", Recursive: true}).Verdict(); strings.Contains(strings.Join(reasons, " "), "seLinuxMount") {
		t.Errorf("recursive: %q", reasons)
	}
	if w := (Volume{Shared: true}).Ways()[3]; w.Runtime != "podman with :z" {
		t.Error(w)
	}
}

func TestCost(t *testing.T) {
	v := Volume{Least: 1000, Most: 3000, Each: 0.01}
	for w, f := range factors {
		if f == (factor{}) {
			continue
		}
		least, most, ok := v.Cost(Work(w))
		if want := time.Duration(10 * f.least * float64(time.Second)); !ok || least.Round(time.Millisecond) != want.Round(time.Millisecond) {
			t.Errorf("%v: at least %v, %v", Work(w), least, ok)
		}
		if want := time.Duration(30 * f.most * float64(time.Second)); most.Round(time.Millisecond) != want.Round(time.Millisecond) {
			t.Errorf("%v: at most %v", Work(w), most)
		}
	}
	for _, w := range []Work{None, Root} {
		if least, most, ok := (Volume{}).Cost(w); least != 0 || most != 0 || !ok {
			t.Errorf("%v: %v, %v, %v", w, least, most, ok)
		}
	}
	for _, v := range []Volume{{Least: 5, Each: 1}, {Least: 5, Most: 5}} {
		if _, _, ok := v.Cost(Reads); ok {
			t.Errorf("%+v: known", v)
		}
	}
	if _, most, ok := (Volume{Most: 1 << 62, Each: 1e6}).Cost(Writes); !ok || most <= 0 {
		t.Error("beyond all bounds:", most)
	}
}
