// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

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
		{"s0:c10,c20", "s0", drawn},
		{"s0", "s0-s0:c0.c1023", drawn},
		{"s0:c1,c2", "s1:c1,c2", drawn},
		{"s0:c1,c2", "s0:c2.c1", mistyped},
		{"s0:c1,c2", "s0:", mistyped},
		{"s0:c1,c2", "s0:c1,,c2", mistyped},
		{"s0:c1,c2", "S0:c1,c2", mistyped},
		{"s0:c1,c2", "s0:c1,c2:c3", mistyped},
		{"s0:c1,c2", "s0:c1,c2\x00", labelled}, // what ends a label in an attribute
		{"s0:c1,c2", " s0:c1,c2", mistyped},
		{"s0:c1,c2", "s0:c1,c2-", mistyped},
		{"s0:c1,c2", "SystemHigh", mistyped},
		{"s0:c1,c2", "", mistyped},
		{"s0:c1,c2", "true", mistyped},
		{"s0:c1,c2", "c1,c2", mistyped},
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

// TestElsewhere: links and mounts in place of a volume lead to nothing of others.
func TestElsewhere(t *testing.T) {
	n, g := newNode(t), newGate()
	g.release()
	n.start()
	plug := n.plug(treetest.Patience, 4, g)
	others := n.volume("others")
	owner := n.pod("owner", itsLevel)
	mounted := owner.mount(others, localPV)
	for name, c := range map[string]struct {
		do   func(p *pod) error
		want outcome
	}{
		"a link for a volume": {func(p *pod) error {
			n.mkdir("pods", p.uid, "volumes", "kubernetes.io~local-volume")
			return os.Symlink(mounted, n.in("pods", p.uid, "volumes", localPV))
		}, noVolume},
		"a link for a kind": {func(p *pod) error {
			n.mkdir("pods", p.uid, "volumes")
			return os.Symlink(n.in("pods", owner.uid, "volumes", "kubernetes.io~local-volume"), n.in("pods", p.uid, "volumes", "kubernetes.io~local-volume"))
		}, noVolume},
		"a link for a pod": {func(p *pod) error { return os.Symlink(owner.uid, n.in("pods", p.uid)) }, noVolume},
		"a subPath": {func(p *pod) error {
			return syscall.Mount(others, n.mkdir("pods", p.uid, "volume-subpaths", "pv", "app", "0"), "", syscall.MS_BIND, "")
		}, noVolume},
		"a place of the system": {func(p *pod) error {
			t.Setenv("HOME", others)
			p.mount(others, localPV)
			return nil
		}, failed},
		"the directory above one": {func(p *pod) error {
			t.Setenv("HOME", n.mkdir("volumes", "others", "d0", "home"))
			p.mount(others, localPV)
			return nil
		}, failed},
	} {
		p := n.pod(strings.ReplaceAll(strings.ToLower(name), " ", "-"), itsLevel)
		treetest.Must(t, c.do(p))
		before := plug.counts.of(c.want)
		if err := n.ask(p); err != nil || plug.counts.of(c.want) != before+1 {
			t.Errorf("%s: %v, %v", name, err, plug.counts.requests)
		}
		if all := has(t, others, newLabel); all != 0 {
			t.Fatalf("%s: %d labelled", name, all)
		}
	}
}

// TestOneLine: what is in the event is a line of UTF-8 of some hundred bytes, whatever
// volumes are called, and however many there are.
func TestOneLine(t *testing.T) {
	n, g := newNode(t), newGate()
	n.start()
	n.plug(soon, 1, g)
	vol, p := n.volume("v"), n.pod("a", itsLevel)
	for i := range 20 {
		p.mount(vol, fmt.Sprintf("kubernetes.io~local-volume/%d\n\x1b[31m\xff%s", i, strings.Repeat("é", 100)))
	}
	var text string
	treetest.Wait(t, "an answer with a volume", func() bool {
		err := n.ask(p)
		if err == nil {
			t.Fatal("it starts")
		}
		text = err.Error()
		return strings.Contains(text, "[31m")
	})
	if strings.ContainsAny(text, "\n\x1b") || !utf8.ValidString(text) || len(text) > 2*longest {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}
