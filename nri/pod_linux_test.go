// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// What the author of a pod can choose: whatever it is, nothing has another label after
// it but the pod's own volumes, and the answer is a short line.

// TestLevels: the annotation is compared with the sandbox's label as a level, not as text,
// and one that is another level is never written.
func TestLevels(t *testing.T) {
	const form = "system_u:object_r:container_file_t:"
	for _, c := range []struct {
		has, says string
		want      outcome
	}{
		{"s0", "s0", labelled},
		{"s0:c1,c2", "s0:c2,c1", labelled},
		{"s0:c1.c3", "s0:c1,c2,c3", labelled},
		{"s0:c1,c2,c3", "s0:c3,c1.c2", labelled},
		{"s0-s0:c0.c1023", "s0-s0:c0.c1023", labelled},
		{"s0-s0:c0.c1023", "s0-s0:c0,c1.c1023", labelled},
		{"s0-s0:c0.c1023", "s0:c0.c1023", drawn},
		{"s0-s0:c0.c1023", "s0", drawn},
		{"s0:c10,c20", "s0:c10.c20", drawn},
		{"s0:c10,c20", "s0-s0:c10,c20", drawn},
		{"s0:c1,c2", "s1:c1,c2", drawn},
		{"s0:c1,c2", "s0:c2.c1", mistyped},
		{"s0:c1,c2", "s0:", mistyped},
		{"s0:c1,c2", "s0:c1,,c2", mistyped},
		{"s0:c1,c2", "s0:c1,c2:c3", mistyped},
		{"s0:c1,c2", "s0:c1,c2\x00", labelled}, // what ends a label in an attribute
		{"s0:c1,c2", " s0:c1,c2", mistyped},
		{"s0:c1,c2", "", mistyped},
		{"s0:c1,c2", "true", mistyped},
		{"s0:c1,c2", "fixed ", mistyped},
		{"s0:c1,c2", "s0:c1,c2\n", mistyped},
		{"s0:c1,c2", form + "s0:c1,c2", mistyped},
		{"s0:c1,c2", strings.Repeat("s", 1<<10), mistyped},
	} {
		var s sandbox
		s.Linux.MountLabel = form + c.has
		label, got, err := s.wants(c.says)
		if got != c.want || (got == labelled) != (err == nil) || (got == labelled) != (label != "") {
			t.Errorf("%s for %s: %q, %s, %v", c.says, c.has, label, got, err)
		}
		if got == mistyped && (!strings.Contains(err.Error(), "is neither a level") || len(err.Error()) > 400) {
			t.Errorf("%.40q: %v", c.says, err)
		}
	}
}

// TestOneLine: what is in the event is a line of UTF-8 of some hundred bytes, whatever
// volumes are called, and however many there are.
func TestOneLine(t *testing.T) {
	text := oneLine("pv\n\x1b[31m\xff" + strings.Repeat("é", 1000))
	if !strings.HasPrefix(text, "pv��[31m�é") || !utf8.ValidString(text) || len(text) > longest+len("…") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// TestPassesThrough: what is not asked for, or not for this plugin, is left to the runtime
// as it was; what a hostile author can choose leads to no other volume and no other label.
func TestPassesThrough(t *testing.T) {
	n, g := newNode(t), newGate()
	g.release()
	n.start()
	plug := n.plug(treetest.Patience, 4, g)
	const secret = "kubernetes.io~secret/pv"
	others, owner := n.volume("others"), n.pod("owner", itsLevel)
	mounted := owner.mount(others, localPV)
	link := func(to string, in ...string) func(p *pod) string {
		return func(p *pod) string {
			name := n.in(append([]string{"pods", p.uid, "volumes"}, in...)...)
			n.mkdir(strings.TrimPrefix(filepath.Dir(name), n.dir))
			treetest.Must(t, os.Symlink(to, name))
			return p.sandbox()
		}
	}
	config := func(process, more string) string {
		return `{"process":{"selinuxLabel":"` + process + `"},"linux":{"mountLabel":"` + newLabel + `"` + more + `}}`
	}
	write := func(p *pod, text string) string {
		p.config = text
		return p.sandbox()
	}
	const process = "system_u:system_r:container_t:" + itsLevel
	for name, c := range map[string]struct {
		value, at string
		want      outcome
		do        func(p *pod) (id string)
	}{
		"level":            {itsLevel, localPV, labelled, nil},
		"level, otherwise": {"s0:c20,c10", "kubernetes.io~csi/pv/mount", labelled, nil},
		"fixed":            {fixed, localPV, labelled, nil},
		"bare config":      {itsLevel, localPV, labelled, func(p *pod) string { return write(p, config(process, "")) }},
		"no annotation":    {itsLevel, localPV, "", func(p *pod) string { p.annotations = nil; return p.sandbox() }},
		"false":            {"false", localPV, "", nil},
		"another level":    {"s0:c1,c2", localPV, drawn, nil},
		"spc_t":            {itsLevel, localPV, unconfined, func(p *pod) string { return write(p, config("system_u:system_r:spc_t:s0", "")) }},
		"hostPID": {itsLevel, localPV, hostPID, func(p *pod) string {
			return write(p, config(process, `,"namespaces":[{"type":"network"}]`))
		}},
		"no SELinux": {itsLevel, localPV, noLabel, func(p *pod) string { return write(p, `{"linux":{}}`) }},
		"no context": {itsLevel, localPV, unreadable, func(p *pod) string { return write(p, `{"linux":{"mountLabel":"../../etc"}}`) }},
		"read-only": {itsLevel, localPV, noVolume, func(p *pod) string {
			at := n.in("pods", p.uid, "volumes", localPV)
			treetest.Must(t, syscall.Mount("", at, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
			return p.sandbox()
		}},
		"secret":       {itsLevel, secret, noVolume, nil},
		"link, volume": {itsLevel, secret, noVolume, link(mounted, localPV)},
		"link, kind":   {itsLevel, secret, noVolume, link(filepath.Dir(mounted), "kubernetes.io~local-volume")},
		"link, pod": {itsLevel, secret, noVolume, func(p *pod) string {
			p.uid += "-link"
			treetest.Must(t, os.Symlink(owner.uid, n.in("pods", p.uid)))
			return p.sandbox()
		}},
		"subPath": {itsLevel, secret, noVolume, func(p *pod) string {
			treetest.Must(t, syscall.Mount(others, n.mkdir("pods", p.uid, "volume-subpaths", "pv", "app", "0"), "", syscall.MS_BIND, ""))
			return p.sandbox()
		}},
		"emptyDir":  {itsLevel, "kubernetes.io~empty-dir/pv", noVolume, nil},
		"too deep":  {itsLevel, "kubernetes.io~local-volume/pv/mount", noVolume, nil},
		"no labels": {itsLevel, localPV, failed, func(p *pod) string { p.over("ramfs", "ramfs"); return p.sandbox() }},
		"covered":   {itsLevel, localPV, labelled, func(p *pod) string { p.over("tmpfs", "tmpfs"); return p.sandbox() }},
		"UID above": {itsLevel, localPV, unreadable, func(p *pod) string { p.uid = "../pods/" + p.uid; return p.sandbox() }},
		"id above":  {itsLevel, localPV, unreadable, func(p *pod) string { return "../bundles/" + p.sandbox() }},
		"no bundle": {itsLevel, localPV, unreadable, func(*pod) string { return "f00" }},
		"cut off":   {itsLevel, localPV, unreadable, func(p *pod) string { return write(p, config(process, "")[:60]) }},
		"a FIFO": {itsLevel, localPV, unreadable, func(p *pod) string {
			return p.instead(func(name string) error {
				treetest.Must(t, syscall.Mkfifo(name, 0o600))
				writer, err := os.OpenFile(name, os.O_RDWR, 0)
				treetest.Must(t, err)
				t.Cleanup(func() { writer.Close() })
				_, err = writer.WriteString(config(process, ""))
				return err
			})
		}},
		"a link": {itsLevel, localPV, unreadable, func(p *pod) string {
			other := n.in("bundles", p.sandbox(), "config.json")
			return p.instead(func(config string) error { return os.Symlink(other, config) })
		}},
		"a linked bundle": {itsLevel, localPV, unreadable, func(p *pod) string {
			id := p.sandbox()
			treetest.Must(t, os.Symlink(id, n.in("bundles", id+"b")))
			return id + "b"
		}},
		"huge": {itsLevel, localPV, unreadable, func(p *pod) string {
			return write(p, config(process, "")+strings.Repeat(" ", maxConfig))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n.t = t
			uid := strings.NewReplacer(" ", "-", ",", "-").Replace(strings.ToLower(name))
			p := n.pod(uid, c.value)
			vol := n.volume(uid)
			at := p.mount(vol, c.at)
			if c.do == nil {
				c.do = (*pod).sandbox
			}
			id := c.do(p)
			before := plug.counts.of(c.want)
			treetest.Check(t, n.askAs(p, id))
			want := 0
			if c.want == labelled && name != "covered" {
				want = entries
			}
			if got := has(t, vol, newLabel); got != want {
				t.Errorf("%d have the label", got)
			}
			if has(t, others, newLabel) != 0 {
				t.Error("the volume of another pod is labelled")
			}
			if c.want != "" && plug.counts.of(c.want) != before+1 {
				t.Errorf("not %s: %v", c.want, plug.counts.text())
			}
			for syscall.Unmount(at, 0) == nil {
			}
		})
	}
	n.t = t
}

// over mounts a filesystem over the pod's volume.
func (p *pod) over(name, kind string) {
	p.n.t.Helper()
	treetest.Must(p.n.t, syscall.Mount(name, p.n.in("pods", p.uid, "volumes", localPV), kind, 0, ""))
}

// instead makes a bundle with something else as config.json.
func (p *pod) instead(what func(config string) error) string {
	p.n.t.Helper()
	id := p.sandbox()
	config := filepath.Join(p.n.in("bundles", id), "config.json")
	treetest.Must(p.n.t, os.Remove(config))
	treetest.Must(p.n.t, what(config))
	return id
}

// TestDrawn: a level that is called fixed and is another one at the next try is not waited
// for again, and its walk to the level before ends.
func TestDrawn(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	plug := n.plug(soon, 4, g)
	p, vol := n.pod("a", fixed), n.volume("v")
	p.mount(vol, localPV)
	n.goesOn(p)
	treetest.Wait(t, "a walk", g.reached)
	p.label = "system_u:object_r:container_file_t:s0:c1,c2"
	n.starts(p)
	n.starts(p)
	if plug.counts.of(drawn) != 2 {
		t.Errorf("%v", plug.counts.text())
	}
	if work := plug.group.Pending(); len(work) != 0 || has(t, vol, newLabel) == entries {
		t.Errorf("%+v", work)
	}
}

// TestVolumesIn: with SELinux on, only mounts with seclabel can have labels.
func TestVolumesIn(t *testing.T) {
	const dir = "/var/lib/kubelet/pods/u/volumes"
	all, err := mountinfo.Parse(`1 0 8:1 / / rw - ext4 /dev/sda rw,seclabel
2 1 8:2 / ` + dir + `/kubernetes.io~csi/a/mount rw - xfs /dev/sdb rw,seclabel
3 1 8:3 / ` + dir + `/kubernetes.io~csi/b/mount rw - xfs /dev/sdc rw,context="system_u:object_r:container_file_t:s0:c1,c2"
4 1 0:9 / ` + dir + `/kubernetes.io~csi/c/mount rw - nfs4 server:/c rw
5 1 8:5 / ` + dir + `/kubernetes.io~csi/d/mount ro - xfs /dev/sdd rw,seclabel
6 1 8:6 /pv ` + dir + `/kubernetes.io~local-volume/e rw - ext4 /dev/sde rw,seclabel
7 1 8:7 / /var/lib/kubelet/pods/u2/volumes/kubernetes.io~csi/f/mount rw - xfs /dev/sdf rw,seclabel
8 1 0:5 / ` + dir + `/kubernetes.io~local-volume/g rw - proc proc rw
`)
	treetest.Must(t, err)
	var names string
	for _, v := range volumesIn(all, dir) {
		names += v.name
	}
	if names != "ae" {
		t.Errorf("%q", names)
	}
}

// TestManifest: the flags that the DaemonSet gives are flags.
func TestManifest(t *testing.T) {
	text, err := os.ReadFile("../deploy/kubernetes/nri/daemonset-nri.yaml")
	treetest.Must(t, err)
	_, args, is := strings.Cut(string(text), "args: [")
	args, _, closed := strings.Cut(args, "]")
	given := append(strings.Split(args, ", "), "--pods", t.TempDir())
	s, err := parse(given, io.Discard)
	if !is || !closed || err != nil || s.metrics != ":9809" || s.wait != 200*time.Millisecond {
		t.Errorf("%q: %+v, %v", given, s, err)
	}
	for _, wrong := range []string{"--wait=2s", "--wait=0", "--volumes=0", "--index=5", "--linger=1ms", "--pods=/none", "--socket", "pods"} {
		if s, err := parse([]string{"--pods", t.TempDir(), wrong}, io.Discard); err == nil {
			t.Errorf("%s: %+v", wrong, s)
		}
	}
}
