// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/relabel/undo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// former is a Recorder in memory. keep, if not nil, is asked before each page
// counts as kept.
type former struct {
	mu    sync.Mutex
	head  undo.Header
	begun int
	pages []undo.Page
	keep  func(p undo.Page) error
}

func (f *former) Begin(h undo.Header) error {
	f.begun++
	f.head = h
	return nil
}

func (f *former) Keep(pages []undo.Page) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range pages {
		if f.keep != nil {
			if err := f.keep(p); err != nil {
				return err
			}
		}
		f.pages = append(f.pages, undo.Page{Dir: p.Dir, Entries: append([]undo.Former(nil), p.Entries...)})
	}
	return nil
}

// all yields the pages.
func (f *former) all(yield func(undo.Page, error) bool) {
	for _, p := range f.pages {
		if !yield(p, nil) {
			return
		}
	}
}

// few is for a run that is after something else than each cell.
var few bool

// TestUndo: each tree, on each filesystem, each way, with few and many workers.
// An entry has what the record says of it while that is being kept; the counts
// are those of a run without a record; and Restore gives back exactly what was,
// and writes nothing the second time.
func TestUndo(t *testing.T) {
	treetest.Need(t, "root")
	for _, name := range treetest.All(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			treetest.Each(t, func(t *testing.T, dir string) {
				n := 0
				all := engines()
				for _, engine := range slices.Sorted(maps.Keys(all)) {
					for _, threads := range []int{1, 4} {
						n++
						if (few || testing.Short()) && n != 1+len(t.Name())%(2*len(all)) {
							continue // each cell has one of its own
						}
						root := filepath.Join(dir, fmt.Sprint(n))
						treetest.Build(t, root, treetest.Load(t, name))
						m := all[engine]
						m.served = threads == 4 && n%4 == 0
						recordAndRestore(t, root, m, Options{Workers: threads, Advanced: Advanced{NoSync: true}, OneFilesystem: true}, engine)
					}
				}
			})
		})
	}
}

func recordAndRestore(t *testing.T, root string, m capabilities, o Options, engine string) {
	t.Helper()
	labels := func() map[string]string {
		all := map[string]string{}
		for p, it := range treetest.List(t, root) {
			all[p] = it.Label
		}
		return all
	}
	before := labels()
	plan, err := tree(t.Context(), root, newLabel, Options{inner: inner{check: true}, OneFilesystem: true}, as(m))
	if err != nil {
		t.Fatal(err)
	}
	f := &former{keep: func(p undo.Page) error {
		for _, e := range p.Entries {
			at := path.Join(p.Dir, e.Name)
			want := e.Label
			if e.None {
				want = treetest.None
			}
			// A kernel that has SELinux on says the NUL that was not written, too.
			if strings.TrimSuffix(before[at], "\x00") != strings.TrimSuffix(want, "\x00") || e.Ino == 0 && e.Name == "" {
				t.Errorf("%s: %q is recorded with %q, and had %q", engine, at, want, before[at])
			}
			var st unix.Stat_t
			if len(at) > 3000 || unix.Lstat(filepath.Join(root, at), &st) != nil {
				continue
			}
			if st.Nlink < 2 || st.Mode&unix.S_IFMT == unix.S_IFDIR { // else it may be recorded, and written, by another name
				if now, none := raw(t, filepath.Join(root, at)); now != e.Label || none != e.None {
					t.Errorf("%s: %q has %q while %q is being recorded", engine, at, now, e.Label)
				}
			}
		}
		return nil
	}}
	o.Advanced.Recorder = f
	time.Sleep(tick) // what was built before is older than the run
	r, err := tree(t.Context(), root, newLabel, o, as(m))
	adds(t, r)
	if err != nil || !r.Complete || f.begun != 1 {
		t.Fatalf("%s: %d beginnings, %+v, %v", engine, f.begun, r, err)
	}
	if r.Seen != plan.Seen || r.Written > plan.Written || r.Written+r.Right != plan.Written+plan.Right {
		t.Errorf("%s: with a record %+v, without %+v", engine, r, plan)
	}
	for turn := range 2 {
		back, err := restore(t.Context(), "", f.head, f.all, o, as(m))
		adds(t, back)
		if err != nil || !back.Complete || turn == 1 && back.Written > 0 {
			t.Errorf("%s: restore %d: %+v, %v", engine, turn, back, err)
		}
		if d := treetest.Diff(before, labels()); len(d) > 0 {
			t.Errorf("%s: restore %d:\n%s", engine, turn, lines(d))
		}
	}
}

// raw reads the attribute as it is stored.
func raw(t testing.TB, at string) (label string, none bool) {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := unix.Lgetxattr(at, xattrio.Attribute, buf)
	if errors.Is(err, syscall.ENODATA) {
		return "", true
	}
	if err != nil {
		t.Error(at, err)
	}
	return string(buf[:max(n, 0)]), false
}

// TestRecordStopped: a run that is stopped while pages wait, or are about to be
// kept, or to be written, ends as others do, and has closed what it opened.
func TestRecordStopped(t *testing.T) {
	text := "default label=" + oldLabel + "\ndir .\ndir d%02d x30\n"
	for i := range 30 {
		text += fmt.Sprintf("dir d%02d/e%%d x3\nfile d%02d/e0/f%%d x3\n", i, i)
	}
	root := grow(t, on(t, "tmpfs"), text)
	stops := 0
	for after := range 150 {
		treetest.Label(t, root, oldLabel)
		unclaim(t, root)
		before := openFiles(t)
		ctx, cancel := context.WithCancel(t.Context())
		f, pages := &former{}, 0
		f.keep = func(undo.Page) error {
			if pages++; pages == after+1 {
				cancel()
			}
			return nil
		}
		r, err := Tree(ctx, root, newLabel, &Options{Advanced: Advanced{Recorder: f, NoSync: true}, Workers: 1 + after%4})
		adds(t, r)
		if errors.Is(err, context.Canceled) {
			stops++
		} else if err != nil {
			t.Fatal(err)
		}
		cancel()
		if hung := new(HungError); errors.As(err, &hung) {
			// The lock's file is on a disk that is busy, and removed.
			treetest.Wait(t, "what hung", func() bool { return openFiles(t) == before })
		}
		if now := openFiles(t); now != before {
			t.Fatalf("stopped after %d pages: %d files are open, and were %d: %+v, %v", after, now, before, r, err)
		}
	}
	if stops < 100 {
		t.Errorf("%d were stopped", stops)
	}
}
