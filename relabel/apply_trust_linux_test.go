// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// vouches says whether root is taken to have label by any Trust.
func vouches(t *testing.T, root, label string) bool {
	t.Helper()
	for _, trust := range []Trust{TrustRoot, TrustTop} {
		s, err := Inspect(root, label, trust)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Check(t.Context(), root, label, &Options{Trust: trust})
		if err != nil {
			t.Fatal(err)
		}
		if s.Interrupted {
			t.Errorf("a run to %s was interrupted", label)
		}
		if s.Labelled || r.Trusted {
			return true
		}
	}
	return false
}

// TestApplyTrust: a tree in which rules have written vouches for no label, neither the one
// that a commit left on its root, nor the one that the rules gave it, until it is
// committed again; nor does a mount beneath it. Where they wrote nothing it vouches as
// before.
func TestApplyTrust(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	const moved = "system_u:object_r:usr_t:s0:c7"
	tree := "default label=" + usrLabel + "\ndir .\nfile f%02d x40\ndir d\ndir d/e\nfile d/e/g%02d x40\n"
	for name, c := range map[string]struct {
		contexts string
		rules    Rules
		label    string // that the root has afterwards
		vouches  bool
		stop     bool // at the first change
	}{
		"beneath":   {contexts: "@(/.*)? " + usrLabel + "\n@/(f07|d/d/e/.*) " + etcLabel + "\n", label: usrLabel},
		"mounted":   {contexts: "@(/.*)? " + usrLabel + "\n@/d/d/e/.* " + etcLabel + "\n", label: usrLabel},
		"all":       {contexts: "@(/.*)? " + tmpLabel + "\n", label: tmpLabel},
		"root":      {contexts: "@(/.*)? " + tmpLabel + "\n", rules: Rules{RootOnly: true}, label: tmpLabel},
		"stopped":   {rules: Rules{Label: moved, Parts: PartLevel}, label: moved, stop: true},
		"from":      {rules: Rules{Label: moved, From: usrLabel}, label: moved},
		"right":     {contexts: "@(/.*)? " + usrLabel + "\n", label: usrLabel, vouches: true},
		"right top": {contexts: "@ " + usrLabel + "\n@/.* " + tmpLabel + "\n", rules: Rules{RootOnly: true}, label: usrLabel, vouches: true},
		"none fits": {rules: Rules{Label: moved, From: etcLabel}, label: usrLabel, vouches: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := on(t, "ext4")
			if err := os.Mkdir(dir+"/beneath", 0o700); err != nil {
				t.Fatal(err)
			}
			root, beneath := grow(t, dir, tree), grow(t, dir+"/beneath", tree)
			for _, at := range []string{root, beneath} {
				if r, err := Tree(t.Context(), at, usrLabel, nil); err != nil || !vouches(t, at, usrLabel) {
					t.Fatalf("before: %+v, %v", r, err)
				}
			}
			bind(t, beneath, filepath.Join(root, "d"))
			if c.contexts != "" {
				c.rules.Contexts = contextsFor(t, root, c.contexts)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			changed := false
			o := Options{Workers: 1, Trace: &Trace{Change: func(path, _, _ string) {
				if !changed && vouches(t, root, usrLabel) {
					t.Errorf("it vouches when %s is written", path)
				}
				if changed = true; c.stop {
					cancel()
				}
			}}}
			if r, err := Apply(ctx, root, c.rules, &o); err != nil && (!c.stop || !errors.Is(err, context.Canceled)) {
				t.Fatalf("%+v, %v", r, err)
			}
			if has := labelOf(t, root); has != c.label {
				t.Fatalf("the root has %s", has)
			}
			for _, label := range []string{usrLabel, c.label} {
				if got := vouches(t, root, label); got != (c.vouches && label == usrLabel) {
					t.Errorf("it vouches for %s: %t", label, got)
				}
			}
			untouched := c.vouches || c.stop || c.rules.RootOnly
			if got := vouches(t, beneath, usrLabel); got != untouched {
				t.Errorf("what is mounted in it vouches: %t", got)
			}
			if r, err := Tree(t.Context(), root, usrLabel, nil); err != nil || !vouches(t, root, usrLabel) || len(bearing(t, root, usrLabel)) != 124 {
				t.Errorf("committed again: %+v, %v", r, err)
			}
		})
	}
}

// TestApplyOvertaken: what a run that shares no lock has committed in the middle vouches for
// nothing when the rules have come to their end.
func TestApplyOvertaken(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), "default label="+usrLabel+"\ndir .\nfile f%02d x40\n")
	n := 0
	r, err := Apply(t.Context(), root, Rules{Contexts: contextsFor(t, root, "@(/.*)? "+usrLabel+"\n@/f.* "+tmpLabel+"\n")}, &Options{Workers: 1, Trace: &Trace{Change: func(string, string, string) {
		if n++; n == 1 {
			if err := unix.Removexattr(root, commit.ClaimName); err != nil {
				t.Error(err)
			}
		}
	}}})
	if err != nil || r.Written != 40 || labelOf(t, root) != usrLabel || vouches(t, root, usrLabel) {
		t.Errorf("%+v, %v, the root has %s", r, err, labelOf(t, root))
	}
}
