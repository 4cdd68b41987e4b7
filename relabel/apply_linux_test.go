// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/contexts"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// contextsFor are file contexts with these rules, in which @ is root, and with c_t as a
// customizable type.
func contextsFor(t *testing.T, root, rules string) *contexts.Set {
	t.Helper()
	file := filepath.Join(t.TempDir(), "files/file_contexts")
	for name, text := range map[string]string{
		file: strings.ReplaceAll(rules, "@", root),
		filepath.Join(filepath.Dir(file), "../customizable_types"): "container_file_t\n",
	} {
		treetest.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		treetest.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	c, err := contexts.Load(file)
	treetest.Must(t, err)
	return c
}

// Labels that the policy of a machine which enforces one has too.
const (
	etcLabel  = "system_u:object_r:etc_t:s0"
	usrLabel  = "system_u:object_r:usr_t:s0"
	tmpLabel  = "system_u:object_r:tmp_t:s0"
	custom    = "system_u:object_r:container_file_t:s0:c1,c2"
	mixedRule = "@ -d " + usrLabel + "\n@/.* " + usrLabel + "\n@/.*\\.conf -- " + etcLabel + "\n@/links/.* -l " + tmpLabel +
		"\n@/none(/.*)? <<none>>\n@/deep/.*/end " + etcLabel + "\n"
)

// TestApply: by file contexts, each entry gets the label of its path and kind: the type
// of it or, with Parts 0, the whole; in every way; and a second run writes nothing.
func TestApply(t *testing.T) {
	for _, fs := range []string{"tmpfs", "ext4"} { // which has an order of inodes
		t.Run(fs, func(t *testing.T) {
			treetest.Need(t, "root", fs)
			applies(t, filepath.Join(treetest.Fresh(t, fs), "tree"))
		})
	}
}

func applies(t *testing.T, root string) {
	tree := "dir .\nfile a\nfile b.conf\ndir b\nfile b/x.conf\nlink c.conf a\nfifo p.conf\ndir links\nlink links/l a\nfile links/f\ndir none\nfile none/f\n" +
		"dir none/d\nfile none/d/f\ndir deep\ndir deep/a\ndir deep/a/b\nfile deep/a/b/end\nfile deep/end\nfile kept\nfile many%03d x100\n"
	const user = "unconfined_u:object_r:"
	ways := map[string]Options{
		"rows":   {},
		"one":    {Workers: 1},
		"pinned": {HardLinks: LinksSkip},
		"told": {Trace: &Trace{
			Change: func(path, from, to string) {
				if from == to || to == "" {
					t.Errorf("%s: from %q to %q", path, from, to)
				}
			},
			Skip: func(path, reason string) {
				if strings.Contains(reason, "container_file_t is customizable") != (filepath.Base(path) == "kept") {
					t.Errorf("%s: %s", path, reason)
				}
			},
		}},
	}
	for name, run := range ways {
		for _, parts := range []Parts{PartType, 0} {
			t.Run(strings.Join([]string{name, map[Parts]string{0: "whole", PartType: "type"}[parts]}, " "), func(t *testing.T) {
				treetest.Build(t, root, treetest.Text(t, tree))
				defer os.RemoveAll(root)
				want := map[string]string{}
				for path := range treetest.Read(t, root) {
					has := user + "tmp_t:s0"
					if path == "kept" {
						has = custom
					}
					treetest.Set(t, root, path, has)
					label := usrLabel
					base := filepath.Base(path)
					switch {
					case path == "kept" && parts == PartType, path == "none", strings.HasPrefix(path, "none/"):
						want[path] = has
						continue
					case path == "b.conf", path == "b/x.conf", path == "deep/a/b/end":
						label = etcLabel
					case base == "l":
						label = tmpLabel
					}
					if parts == PartType {
						label = strings.Replace(label, "system_u:object_r:", user, 1)
					}
					want[path] = label
				}
				rules := Rules{Contexts: contextsFor(t, root, mixedRule), Parts: parts}
				all, left := int64(len(want)), int64(4)
				right := int64(0)
				if parts == PartType {
					left, right = 5, 1 // kept, and links/l
				}
				for _, c := range []struct {
					check          bool
					written, right int64
				}{{true, all - left - right, right}, {false, all - left - right, right}, {false, 0, all - left}} {
					r, err := apply(t.Context(), root, rules, run, inner{dry: c.check})
					treetest.Must(t, err)
					if r.Seen != all || r.Written != c.written || r.Right != c.right || r.Skipped != left || r.Complete == c.check {
						t.Errorf("check %t: %+v, want %d: %d written, %d right, %d left", c.check, r, all, c.written, c.right, left)
					}
				}
				if d := treetest.Diff(want, treetest.Read(t, root)); len(d) > 0 {
					t.Error(lines(d))
				}
			})
		}
	}
}

// trusts reports whether root is taken to have label by any Skip.
func trusts(t *testing.T, root, label string) bool {
	t.Helper()
	for _, skip := range []Skip{SkipRoot, SkipTop} {
		s, err := Inspect(root, label, skip)
		treetest.Must(t, err)
		r, err := Verify(t.Context(), root, label, &Options{Skip: skip})
		treetest.Must(t, err)
		if s.Interrupted {
			t.Errorf("a run to %s was interrupted", label)
		}
		if s.Labelled || r.Trusted {
			return true
		}
	}
	return false
}

// TestApplyTrust: a tree in which rules have written is trusted for no label, neither the one
// that a commit left on its root, nor the one that the rules gave it, until it is
// committed again; nor does a mount beneath it. Where they wrote nothing it is trusted as
// before.
func TestApplyTrust(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	const moved = "system_u:object_r:usr_t:s0:c7"
	tree := "default label=" + usrLabel + "\ndir .\nfile f%02d x40\ndir d\ndir d/e\nfile d/e/g%02d x40\n"
	for name, c := range map[string]struct {
		contexts string
		rules    Rules
		label    string // that the root has afterwards
		trusts   bool
		stop     bool // at the first change
	}{
		"beneath":   {contexts: "@(/.*)? " + usrLabel + "\n@/(f07|d/d/e/.*) " + etcLabel + "\n", label: usrLabel},
		"mounted":   {contexts: "@(/.*)? " + usrLabel + "\n@/d/d/e/.* " + etcLabel + "\n", label: usrLabel},
		"all":       {contexts: "@(/.*)? " + tmpLabel + "\n", label: tmpLabel},
		"root":      {contexts: "@(/.*)? " + tmpLabel + "\n", rules: Rules{RootOnly: true}, label: tmpLabel},
		"stopped":   {rules: Rules{Label: moved, Parts: PartLevel}, label: moved, stop: true},
		"right":     {contexts: "@(/.*)? " + usrLabel + "\n", label: usrLabel, trusts: true},
		"right top": {contexts: "@ " + usrLabel + "\n@/.* " + tmpLabel + "\n", rules: Rules{RootOnly: true}, label: usrLabel, trusts: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := on(t, "ext4")
			root, beneath := grow(t, dir, tree), grow(t, mkdir(t, dir, "beneath"), tree)
			for _, at := range []string{root, beneath} {
				if r, err := Tree(t.Context(), at, usrLabel, nil); err != nil || !trusts(t, at, usrLabel) {
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
				if !changed && trusts(t, root, usrLabel) {
					t.Errorf("it is trusted when %s is written", path)
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
				if got := trusts(t, root, label); got != (c.trusts && label == usrLabel) {
					t.Errorf("it is trusted for %s: %t", label, got)
				}
			}
			untouched := c.trusts || c.stop || c.rules.RootOnly
			if got := trusts(t, beneath, usrLabel); got != untouched {
				t.Errorf("what is mounted in it is trusted: %t", got)
			}
			if r, err := Tree(t.Context(), root, usrLabel, nil); err != nil || !trusts(t, root, usrLabel) || len(bearing(t, root, usrLabel)) != 124 {
				t.Errorf("committed again: %+v, %v", r, err)
			}
		})
	}
}

// TestApplyOvertaken: what a run that shares no lock has committed in the middle is trusted for
// nothing when the rules have come to their end.
func TestApplyOvertaken(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), "default label="+usrLabel+"\ndir .\nfile f%02d x40\n")
	n := 0
	r, err := Apply(t.Context(), root, Rules{Contexts: contextsFor(t, root, "@(/.*)? "+usrLabel+"\n@/f.* "+tmpLabel+"\n")}, &Options{Workers: 1, Trace: &Trace{Change: func(string, string, string) {
		if n++; n == 1 {
			treetest.Check(t, unix.Removexattr(root, commit.ClaimName))
		}
	}}})
	if err != nil || r.Written != 40 || labelOf(t, root) != usrLabel || trusts(t, root, usrLabel) {
		t.Errorf("%+v, %v, the root has %s", r, err, labelOf(t, root))
	}
}
