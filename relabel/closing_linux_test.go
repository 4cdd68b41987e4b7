// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/internal/commit"
	"github.com/fastlabel/fastlabel/relabel/undo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// changing are the calls by which a run changes something, or has it on disk. Killed before
// any other it leaves what it leaves before the next of these.
var changing = []int{
	unix.SYS_FSETXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_FSYNC, unix.SYS_SYNCFS, unix.SYS_SETXATTRAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR,
}

// closed has cmd killed before its call n from the root's label on, while others create
// entries of another label in the root: one when all else is labelled, one right before
// the root's label. Where claimed is false no claim can be left.
func closed(t *testing.T, cmd *exec.Cmd, root string, n int, claimed bool) treetest.Ended {
	t.Helper()
	add := func(name string) {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Error(err)
		}
		treetest.Set(t, root, name, oldLabel)
	}
	after, synced := 0, false
	return treetest.Supervise(t, cmd, changing, func(c treetest.Notice) treetest.Answer {
		switch {
		case after > 0 || labelOf(t, root) == newLabel:
			after++
		case !claimed && c.Nr == unix.SYS_FSETXATTR && c.Same == 1:
			return treetest.Answer{Errno: syscall.EPERM}
		case c.Nr == unix.SYS_SYNCFS && !synced:
			synced = true
			time.Sleep(20 * time.Millisecond) // the root's times tell it from the seal
			add("early")
		case c.Nr == unix.SYS_FSETXATTR && synced:
			add("late")
		}
		return treetest.Answer{Kill: after == n}
	})
}

// TestKilledClosing: a run that is killed anywhere from its root's
// label on leaves no root that vouches for what was created there during the run, and the
// next run labels that. To who reads the label alone it vouches for no more than what was
// created since the root was read a last time before.
func TestKilledClosing(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	dir := on(t, "tmpfs")
	const few = "default label=" + oldLabel + "\ndir .\nfile f%d x3\ndir d\nfile d/f\n"
	late := func(root string) bool { return labelOf(t, filepath.Join(root, "late")) == newLabel }
	killed, wrong := true, 0
	for n := 1; killed; n++ {
		root := filepath.Join(dir, fmt.Sprint(n))
		treetest.Build(t, root, treetest.Text(t, few))
		killed = closed(t, exec.Command(treetest.Command(t), "-q", "-T", "1", "--label", newLabel, root), root, n, true).Killed
		s, err := Inspect(root, newLabel, TrustRoot)
		if err != nil || s.Label != newLabel || s.Interrupted == s.Labelled || s.Labelled && !late(root) || !killed && !s.Labelled {
			t.Errorf("killed before call %d: %+v, %v", n, s, err)
		}
		if labelOf(t, filepath.Join(root, "early")) != newLabel {
			t.Errorf("killed before call %d: the root has the label, and what came before does not", n)
		}
		if !late(root) {
			wrong++
		}
		r, err := Tree(t.Context(), root, newLabel, &Options{Trust: TrustRoot, Trace: &Trace{Change: func(path, _, _ string) {
			if path != root && labelOf(t, root) == newLabel {
				t.Errorf("after call %d: the root has the label when %s is written", n, path)
			}
		}}})
		if err != nil || !r.Complete || !late(root) || vouching(t, root, newLabel) != newLabel {
			t.Errorf("after call %d: %+v, %v", n, r, err)
		}
		unclaimed(t, root)
	}
	if wrong == 0 {
		t.Error("nothing was wrong when it was killed")
	}
	root := grow(t, dir, few)
	closed(t, exec.Command(treetest.Command(t), "-q", "--label", newLabel, root), root, 1, false)
	if ok, err := isLabelled(root, newLabel, TrustRoot); err != nil || !ok || late(root) || len(bearing(t, root, oldLabel)) != 1 {
		t.Errorf("without a claim: %t, %v, %q", ok, err, bearing(t, root, oldLabel))
	}
}

// TestRestoreClaimed: a root that a run, or an earlier restore, was killed on is sealed
// before anything beneath it is put back, and vouches again when all is.
func TestRestoreClaimed(t *testing.T) {
	treetest.Need(t, "root")
	root := grow(t, on(t, "tmpfs"), plain)
	f := recorded(t, root)
	for _, has := range []string{newLabel, oldLabel} {
		claim := "version=2 want=" + newLabel + " seal=" + secctx.Seals("", newLabel)[0] + " former="
		if err := unix.Setxattr(root, commit.ClaimName, []byte(claim), 0); err != nil {
			t.Fatal(err)
		}
		if ok, err := isLabelled(root, has, TrustRoot); ok || err != nil {
			t.Errorf("%s: labelled %t, %v", has, ok, err)
		}
		pages := func(yield func(undo.Page, error) bool) {
			if l := labelOf(t, root); l == newLabel {
				t.Errorf("%s: the root has %s when entries are put back", has, l)
			}
			f.all(yield)
		}
		r, err := Restore(t.Context(), "", f.head, pages, nil)
		adds(t, r)
		if err != nil || !r.Complete || vouching(t, root, oldLabel) != oldLabel {
			t.Errorf("%s: %+v, %v", has, r, err)
		}
		unclaimed(t, root)
	}
}

// TestRestoreDisavowed: a root that vouched for nothing when the run began, whatever label it
// had, does not vouch when the run is taken back.
func TestRestoreDisavowed(t *testing.T) {
	treetest.Need(t, "root")
	for name, before := range map[string]func(ctx context.Context, root string, o *Options) (Report, error){
		"rules": func(ctx context.Context, root string, o *Options) (Report, error) {
			return Apply(ctx, root, Rules{Contexts: contextsFor(t, root, "@(/.*)? "+oldLabel+"\n@/d/.* "+etcLabel+"\n")}, o)
		},
		"run": func(ctx context.Context, root string, o *Options) (Report, error) {
			return Tree(ctx, root, etcLabel, o)
		},
	} {
		for _, o := range []*Options{nil, {Advanced: Advanced{NoSeal: true}}} {
			root := grow(t, on(t, "tmpfs"), plain)
			ctx, cancel := context.WithCancel(t.Context())
			changed := 0
			stop := &Options{Workers: 1, Trace: &Trace{Change: func(string, string, string) {
				if changed++; changed == 5 {
					cancel()
				}
			}}}
			if _, err := before(ctx, root, stop); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v", name, err)
			}
			cancel()
			had := labelOf(t, root)
			f := recorded(t, root)
			if r, err := Restore(t.Context(), "", f.head, f.all, o); err != nil || !r.Complete || labelOf(t, root) != had {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
			if label := vouching(t, root, had, oldLabel, etcLabel, newLabel); label != "" {
				t.Errorf("%s: it vouches for %s", name, label)
			}
		}
	}
}

// TestRestoreCreated: what others create in the root, or in a directory, while that is
// restored, is not vouched for if it has the label of the run.
func TestRestoreCreated(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	dir := on(t, "tmpfs")
	program, record, wrong := treetest.Command(t), filepath.Join(dir, "record"), map[string]int{}
	for n, ended := 1, false; !ended; n++ {
		root := filepath.Join(dir, fmt.Sprint(n))
		treetest.Build(t, root, treetest.Text(t, "default label="+oldLabel+"\ndir .\ndir d\nfile d/f\n"))
		time.Sleep(20 * time.Millisecond) // what was built is older than the run
		if out, err := exec.Command(program, "-q", "--record", record, "--label", newLabel, root).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		calls := 0
		restoring := exec.Command(program, "restore", "-q", "-T", "1", record)
		at := []string{"d", "."}[n%2]
		treetest.Supervise(t, restoring, changing, func(treetest.Notice) treetest.Answer {
			if calls++; calls == (n+1)/2 {
				inherits := newLabel
				if labelOf(t, filepath.Join(root, at)) == oldLabel {
					inherits = oldLabel
				}
				if err := os.WriteFile(filepath.Join(root, at, "late"), nil, 0o600); err != nil {
					t.Error(err)
				}
				treetest.Set(t, root, filepath.Join(at, "late"), inherits)
				if inherits == newLabel {
					wrong[at]++
				}
			}
			return treetest.Answer{}
		})
		if err := os.Remove(record); err != nil {
			t.Fatal(err)
		}
		ended = calls < (n+1)/2
		if label := vouching(t, root, oldLabel, newLabel); ended && label != oldLabel {
			t.Errorf("nothing was created, and it vouches for %q", label)
		}
	}
	if wrong["."] == 0 || wrong["d"] == 0 {
		t.Errorf("nothing had the label of the run: %v", wrong)
	}
}
