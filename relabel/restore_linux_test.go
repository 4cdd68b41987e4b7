// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/undo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// recorded labels the tree at root and returns the record.
func recorded(t *testing.T, root string) *former {
	t.Helper()
	time.Sleep(10 * time.Millisecond) // what was built is older than the run
	f := &former{}
	if r, err := Tree(t.Context(), root, newLabel, &Options{Advanced: Advanced{Recorder: f}, OneFilesystem: true}); err != nil || !r.Complete {
		t.Fatalf("%+v, %v", r, err)
	}
	return f
}

// TestRecorderFails: when the record cannot be kept, the run ends with that
// error, the root is sealed, and nothing is written that is not on record.
func TestRecorderFails(t *testing.T) {
	full := errors.New("no room for the record")
	for _, after := range []int{0, 1, 2} {
		root := grow(t, on(t, "ext4"), plain)
		time.Sleep(10 * time.Millisecond) // it is older than the run
		f := &former{}
		f.keep = func(undo.Page) error {
			if len(f.pages) >= after {
				return full
			}
			return nil
		}
		r, err := Tree(t.Context(), root, newLabel, &Options{Advanced: Advanced{Recorder: f}, Workers: 2})
		if !errors.Is(err, full) || r.Complete || secctx.IsSeal(labelOf(t, root), newLabel) != true {
			t.Errorf("after %d pages: %+v, %v, the root has %s", after, r, err, labelOf(t, root))
		}
		kept := map[string]bool{}
		for _, p := range f.pages {
			for _, e := range p.Entries {
				kept[filepath.Join(p.Dir, e.Name)] = true
			}
		}
		for p, label := range treetest.Read(t, root) {
			if p != "." && label != oldLabel && !kept[p] {
				t.Errorf("after %d pages: %s has %s and is not on record", after, p, label)
			}
		}
		if back, err := Restore(t.Context(), "", f.head, f.all, nil); err != nil || !back.Complete {
			t.Errorf("after %d pages: %+v, %v", after, back, err)
		}
		if n := len(bearing(t, root, oldLabel)); n != 46 {
			t.Errorf("after %d pages: %d of 46 have what they had", after, n)
		}
	}
}

// TestRestoreLeavesAlone: what was changed since is named, and not written;
// the root vouches for it by no label.
func TestRestoreLeavesAlone(t *testing.T) {
	root := grow(t, on(t, "ext4"), plain)
	f := recorded(t, root)
	at := func(p string) string { return filepath.Join(root, p) }
	treetest.Set(t, root, "f01", "system_u:object_r:usr_t:s0")
	other := treetest.None
	if treetest.Policed() {
		other = "system_u:object_r:var_t:s0" // nobody may take one away
	}
	treetest.Set(t, root, "f02", other)
	for _, err := range []error{
		os.Remove(at("f03")), os.Rename(at("f05"), at("f04")), os.Rename(at("d/e"), at("moved")), os.Symlink("/etc", at("d/e")),
		os.WriteFile(at("new"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	left := map[string]string{}
	o := Options{Trace: &Trace{Skip: func(p, why string) { left[strings.TrimPrefix(p, root+"/")] = why }}}
	r, err := Restore(t.Context(), "", f.head, f.all, &o)
	adds(t, r)
	// d/e/f and f03, f05 are gone; d/e and f04 are others; and the root.
	if err != nil || r.Complete || r.Skipped != 5 || r.Vanished != 3 || r.Written != 38 || r.Seen != 46 || len(left) != 4 {
		t.Errorf("%+v, %v, %v", r, err, left)
	}
	if got := labelOf(t, root); !secctx.IsSeal(got, oldLabel) {
		t.Errorf("the root has %s", got)
	}
	if l := labelOf(t, at("f01")); l != "system_u:object_r:usr_t:s0" {
		t.Errorf("f01 has %s", l)
	}
	if l, _ := raw(t, "/etc"); l == oldLabel {
		t.Error("/etc was labelled")
	}
	if back, err := Tree(t.Context(), root, oldLabel, nil); err != nil || !back.Complete {
		t.Errorf("the run that makes it so: %+v, %v", back, err)
	}
}

// TestRestoreElsewhere: another directory at the path is refused and nothing is
// changed; the tree itself is found where it was moved to, if that is said.
func TestRestoreElsewhere(t *testing.T) {
	treetest.Each(t, func(t *testing.T, dir string) {
		root := grow(t, dir, plain)
		f := recorded(t, root)
		if err := os.Rename(root, root+"-moved"); err != nil {
			t.Fatal(err)
		}
		other := grow(t, dir, strings.ReplaceAll(plain, oldLabel, newLabel))
		if r, err := Restore(t.Context(), "", f.head, f.all, nil); !errors.Is(err, undo.ErrOtherTree) || r.Seen > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := Restore(t.Context(), root+"/f01", f.head, f.all, nil); !errors.Is(err, undo.ErrOtherTree) || r.Seen > 0 {
			t.Errorf("a file: %+v, %v", r, err)
		}
		if n := len(bearing(t, other, newLabel)); n != 46 {
			t.Errorf("%d of 46 are as they were", n)
		}
		if r, err := Restore(t.Context(), root+"-moved", f.head, f.all, nil); err != nil || !r.Complete || r.Written != 46 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestRestoreBare: a root that lost its label is named with what it has now.
func TestRestoreBare(t *testing.T) {
	treetest.Need(t, "root", "plain")
	root := grow(t, on(t, "ext4"), plain)
	f := recorded(t, root)
	if err := syscall.Removexattr(root, "security.selinux"); err != nil {
		t.Fatal(err)
	}
	var why string
	r, err := Restore(t.Context(), "", f.head, f.all, &Options{Trace: &Trace{Skip: func(_, reason string) { why = reason }}})
	if err != nil || r.Complete || why != "it has no label now" {
		t.Errorf("%+v, %v, %q", r, err, why)
	}
}

// TestRestoreSeals: a root that was right before is not made to vouch for what is
// wrong again; and one that is cut short is nobody's.
func TestRestoreSeals(t *testing.T) {
	root := grow(t, on(t, "ext4"), plain)
	treetest.Set(t, root, ".", newLabel)
	f := recorded(t, root)
	r, err := Restore(t.Context(), "", f.head, f.all, nil)
	if err != nil || r.Written != 45 || !secctx.IsSeal(labelOf(t, root), newLabel) {
		t.Errorf("%+v, %v, the root has %s", r, err, labelOf(t, root))
	}
	root = grow(t, on(t, "ext4"), plain)
	f = recorded(t, root)
	f.head.Partial, f.pages = true, f.pages[:1]
	r, err = Restore(t.Context(), "", f.head, f.all, nil)
	if err != nil || r.Complete || !secctx.IsSeal(labelOf(t, root), oldLabel) {
		t.Errorf("a part: %+v, %v, the root has %s", r, err, labelOf(t, root))
	}
	root = grow(t, on(t, "ext4"), strings.Replace(plain, oldLabel, secctx.Seals("", newLabel)[0], 1))
	f = recorded(t, root)
	for _, left := range []bool{false, true} {
		r, err = Restore(t.Context(), "", f.head, f.all, nil)
		if has := labelOf(t, root); err != nil || r.Complete == left || left && vouching(t, root, has) != "" {
			t.Errorf("a label like a seal: %+v, %v, the root has %s", r, err, has)
		}
		if err := os.WriteFile(filepath.Join(root, "late"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root = grow(t, on(t, "ext4"), plain)
	f = recorded(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err = Restore(ctx, "", f.head, f.all, &Options{Workers: 1, Trace: &Trace{Change: func(string, string, string) { cancel() }}})
	if !errors.Is(err, context.Canceled) || r.Complete || !secctx.IsSeal(labelOf(t, root), newLabel) {
		t.Errorf("%+v, %v, the root has %s", r, err, labelOf(t, root))
	}
	if r, err = Restore(t.Context(), "", f.head, f.all, nil); err != nil || !r.Complete || r.Right == 0 || len(bearing(t, root, oldLabel)) != 46 {
		t.Errorf("the next: %+v, %v", r, err)
	}
}

// TestRestoreRootFails: a root that cannot get its label back is one failure, counted
// once, and vouches for nothing.
func TestRestoreRootFails(t *testing.T) {
	root := grow(t, on(t, "ext4"), plain)
	f := recorded(t, root)
	f.head.Former.Label = strings.Repeat("x", 70<<10) // longer than an attribute may be
	r, err := Restore(t.Context(), "", f.head, f.all, nil)
	adds(t, r)
	if err == nil || r.Complete || r.Failed != 1 || r.Written != 45 || r.Seen != 46 || !secctx.IsSeal(labelOf(t, root), newLabel) {
		t.Errorf("%+v, %v, the root has %s", r, err, labelOf(t, root))
	}
}

// TestRestoreEscape: whatever its owner does to the tree during the run, nothing outside
// is touched.
func TestRestoreEscape(t *testing.T) {
	treetest.Need(t, "root")
	for engine, m := range engines() {
		t.Run(engine, func(t *testing.T) {
			written := int64(0)
			strayed, turns := attack(t, sized(150, 40), true, true, func(root, label string) {
				unclaim(t, root)
				f := &former{}
				if _, err := tree(t.Context(), root, label, Options{Advanced: Advanced{NoSync: true, Recorder: f}, OneFilesystem: true}, as(m)); err != nil && !errors.Is(err, unix.ESTALE) {
					t.Error(err)
				}
				// The owner's next label would be ours as well as not.
				r, err := restore(t.Context(), "", f.head, f.all, Options{Advanced: Advanced{NoSync: true}}, as(m))
				adds(t, r)
				written += r.Written
				if err != nil {
					t.Errorf("%+v, %v", r, err)
				}
			})
			if strayed || turns < 10 || written < 20 {
				t.Errorf("strayed %t in %d turns, %d labels written", strayed, turns, written)
			}
		})
	}
}

// TestRecordNested: a mount beneath the root is refused before anything is
// changed, or left alone.
func TestRecordNested(t *testing.T) {
	dir := on(t, "tmpfs")
	root := grow(t, dir, plain)
	bind(t, root+"/d/e", root+"/d")
	f := &former{}
	if r, err := Tree(t.Context(), root, newLabel, &Options{Advanced: Advanced{Recorder: f}}); !errors.Is(err, errors.ErrUnsupported) || f.begun > 0 || r.Written > 0 || labelOf(t, root) != oldLabel {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Tree(t.Context(), root, newLabel, &Options{Advanced: Advanced{Recorder: f}, OneFilesystem: true}); err != nil || r.Skipped != 1 || f.begun != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRecordFile: a root that is no directory.
func TestRecordFile(t *testing.T) {
	root := filepath.Join(grow(t, on(t, "ext4"), plain), "f01")
	f := recorded(t, root)
	if r, err := Restore(t.Context(), "", f.head, f.all, nil); err != nil || !r.Complete || r.Written != 1 || labelOf(t, root) != oldLabel {
		t.Errorf("%+v, %v", r, err)
	}
}
