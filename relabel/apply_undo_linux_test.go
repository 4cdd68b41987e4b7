// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/undo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// scrambled builds a tree in which labels differ, and of which mixedRule says what they are
// to be. Without SELinux some entries have none.
func scrambled(t *testing.T) (root string, was map[string]string) {
	t.Helper()
	root = grow(t, on(t, "ext4"), "dir .\nfile a\nfile b.conf\ndir b\nfile b/x.conf\nlink c.conf a\nfifo p.conf\ndir links\nlink links/l a\n"+
		"dir none\nfile none/f\ndir deep\ndir deep/a\ndir deep/a/b\nfile deep/a/b/end\nfile kept\nfile many%03d x100\n")
	for n, p := range slices.Sorted(maps.Keys(treetest.Read(t, root))) {
		if n%11 != 3 || treetest.Policed() { // else it has none
			treetest.Set(t, root, p, []string{usrLabel, etcLabel, tmpLabel, "unconfined_u:object_r:tmp_t:s0:c1,c2", custom}[(n+1)%5])
		}
	}
	return root, treetest.Read(t, root)
}

// undone are rules to be undone.
func undone(t *testing.T, root string) map[string]Rules {
	contexts := contextsFor(t, root, mixedRule)
	return map[string]Rules{
		"type":  {Contexts: contexts, Parts: PartType},
		"whole": {Contexts: contexts},
		"top":   {Contexts: contexts, RootOnly: true},
		"from":  {Label: "system_u:object_r:var_t:s0:c3", Parts: PartType | PartLevel, From: "*:*:tmp_t"},
	}
}

// TestApplyUndo: in every way and by all rules, a run with a record counts and writes as
// one without; an entry has what the record says of it while that is being kept; and
// Restore gives back exactly what was, and writes nothing the second time.
func TestApplyUndo(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	for name, o := range everyWay(t) {
		root, was := scrambled(t)
		for which, rules := range undone(t, root) {
			o.OneFilesystem = true
			o.Advanced.Recorder = nil
			plan, err := CheckApply(t.Context(), root, rules, &o)
			if err != nil || plan.Written == 0 {
				t.Fatalf("%s %s: %+v, %v", name, which, plan, err)
			}
			f := &former{keep: func(p undo.Page) error {
				for _, e := range p.Entries {
					if now, none := raw(t, filepath.Join(root, p.Dir, e.Name)); now != e.Label || none != e.None || e.Given == now {
						t.Errorf("%s %s: %q has %q while %+v is being recorded", name, which, path.Join(p.Dir, e.Name), now, e)
					}
				}
				return nil
			}}
			o.Advanced.Recorder = f
			r, err := Apply(t.Context(), root, rules, &o)
			adds(t, r)
			if err != nil || f.begun != 1 || r.Seen != plan.Seen || r.Written != plan.Written || r.Right != plan.Right || r.Skipped != plan.Skipped {
				t.Errorf("%s %s: %d beginnings, %+v, want %+v, %v", name, which, f.begun, r, plan, err)
			}
			o.Advanced.Recorder = nil
			if again, err := CheckApply(t.Context(), root, rules, &o); err != nil || again.Written != 0 {
				t.Errorf("%s %s: it lacks %+v, %v", name, which, again, err)
			}
			for turn := range 2 {
				back, err := Restore(t.Context(), "", f.head, f.all, &Options{Workers: o.Workers})
				adds(t, back)
				if err != nil || !back.Complete || back.Written != plan.Written*int64(1-turn) {
					t.Errorf("%s %s: restore %d: %+v, %v", name, which, turn, back, err)
				}
				if got := treetest.Read(t, root); !maps.Equal(got, was) {
					t.Errorf("%s %s: restore %d:\n%s", name, which, turn, lines(treetest.Diff(was, got)))
				}
			}
		}
	}
}

// TestApplyUndoLeavesAlone: what was changed since is named, and not written; the rest is
// put back, and the root is trusted by no label.
func TestApplyUndoLeavesAlone(t *testing.T) {
	root, was := scrambled(t)
	f := &former{}
	if r, err := Apply(t.Context(), root, Rules{Label: tmpLabel}, &Options{Advanced: Advanced{Recorder: f}}); err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	treetest.Set(t, root, "many001", "system_u:object_r:var_t:s0")
	if err := errors.Join(os.Remove(filepath.Join(root, "many002")), os.WriteFile(filepath.Join(root, "new"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	changed := 1
	if was["many001"] == tmpLabel { // it was right, and is on no record
		changed = 0
	}
	var left []string
	r, err := Restore(t.Context(), "", f.head, f.all, &Options{Trace: &Trace{Skip: func(p, _ string) { left = append(left, p) }}})
	adds(t, r)
	if err != nil || r.Complete != (changed == 0) || len(left) != changed || r.Skipped != int64(changed) {
		t.Errorf("%+v, %v, %q", r, err, left)
	}
	got := treetest.Read(t, root)
	for p, label := range was {
		if got[p] != label && p != "many001" && p != "many002" {
			t.Errorf("%s has %s, and had %s", p, got[p], label)
		}
	}
	if vouches(t, root, got["."]) {
		t.Error("it vouches")
	}
}

// TestApplyUndoStopped: a run that is stopped, at any page, and the next have a record
// each; the last first, they give back what was, whatever was stopped. What cannot be
// recorded is not written.
func TestApplyUndoStopped(t *testing.T) {
	root, was := scrambled(t)
	rules := undone(t, root)["whole"]
	full := errors.New("no room for the record")
	for after := range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		pages := 0
		first, second := &former{}, &former{}
		first.keep = func(undo.Page) error {
			switch pages++; {
			case pages <= after:
			case after%2 == 0:
				cancel()
			default:
				return full
			}
			return nil
		}
		r, err := Apply(ctx, root, rules, &Options{Workers: 1 + after%3, Advanced: Advanced{Recorder: first}})
		adds(t, r)
		if after == 0 && !errors.Is(err, context.Canceled) || err != nil && !errors.Is(err, full) && !errors.Is(err, context.Canceled) {
			t.Errorf("after %d pages: %+v, %v", after, r, err)
		}
		cancel()
		kept := map[string]bool{".": true}
		for _, p := range first.pages {
			for _, e := range p.Entries {
				kept[path.Join(p.Dir, e.Name)] = true
			}
		}
		for p, label := range treetest.Read(t, root) {
			if label != was[p] && !kept[p] {
				t.Errorf("after %d pages: %s has %s and is not on record", after, p, label)
			}
		}
		if r, err := Apply(t.Context(), root, rules, &Options{Advanced: Advanced{Recorder: second}}); err != nil || !r.Complete {
			t.Errorf("the next: %+v, %v", r, err)
		}
		for i, f := range []*former{second, first} {
			f.head.Partial = true
			if r, err := Restore(t.Context(), "", f.head, f.all, nil); err != nil || !r.Complete {
				t.Errorf("after %d pages: record %d: %+v, %v", after, 2-i, r, err)
			}
		}
		if d := treetest.Diff(was, treetest.Read(t, root)); len(d) > 0 {
			t.Error(fmt.Sprintf("after %d pages:\n", after) + lines(d))
		}
	}
}
