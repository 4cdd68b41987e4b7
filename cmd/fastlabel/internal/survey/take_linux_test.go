// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

// generous never end a survey of these tests.
var generous = Limits{Time: time.Minute, Entries: 1_000_000}

// take surveys dir; mounts are names beneath it.
func take(ctx context.Context, t testing.TB, dir string, l Limits, mounts ...string) Sample {
	t.Helper()
	fd, err := syscall.Open(dir, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	return Take(ctx, fd, dir, func(path string) bool {
		return slices.ContainsFunc(mounts, func(m string) bool { return dir+"/"+m == path })
	}, l)
}

// expected counts what the oracle reads.
func expected(t *testing.T, dir string, without ...string) []Count {
	t.Helper()
	c := counts{of: map[string]*Count{}}
	for path, label := range treetest.Read(t, dir) {
		if label == treetest.None {
			label = ""
		}
		if path != "." && !slices.ContainsFunc(without, func(w string) bool { return path == w || strings.HasPrefix(path, w+"/") }) {
			c.add(label, !strings.Contains(path, "/"))
		}
	}
	return c.list()
}

const mixed = `default label=system_u:object_r:container_file_t:s0:c1,c2
dir .
file f%d x300
dir a%d x5
file a0/f%d x700
file a1/g%d x3 label=system_u:object_r:unlabeled_t:s0
dir a1/b/c
file a1/b/c/none label=-
link a2/up ..
link a2/root /
link out /usr
fifo a2/fifo
socket a2/socket
char a2/null 1:3
names a3/every every-byte
hardlink a4/again f0
`

// TestWhole: of a tree that fits into the limits all is read, and no more, as
// the oracle reads it, and nothing is written.
func TestWhole(t *testing.T) {
	treetest.Need(t, "root")
	treetest.Each(t, func(t *testing.T, dir string) {
		treetest.Build(t, dir, treetest.Text(t, mixed))
		before := treetest.Snapshot(t, dir)
		want, n := expected(t, dir), treetest.Count(t, dir).All
		for _, l := range []Limits{generous, {}} {
			s := take(t.Context(), t, dir, l)
			if !slices.Equal(s.Labels, want) {
				t.Errorf("%+v: %+v\nand not\n%+v", l, s.Labels, want)
			}
			if !s.Whole || s.Failed > 0 || s.Entries != n || s.Least != n || s.Most != n || s.Each <= 0 {
				t.Errorf("%+v: %d entries: %+v", l, n, s)
			}
		}
		if d := treetest.Diff(before, treetest.Snapshot(t, dir)); len(d) > 0 {
			t.Error(d)
		}
	})
}

// TestMounts: what is mounted in the tree is passed over, a file's place too.
func TestMounts(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	dir := treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, `default label=system_u:object_r:container_file_t:s0
file a/f%d x3
dir a/mnt
mount a/mnt tmpfs
file a/mnt/f%d x9
file a/over
file a/under
mount a/over bind a/under
`))
	s := take(t.Context(), t, dir, generous, "a/mnt", "a/over")
	want := expected(t, dir, "a/mnt", "a/over")
	if !slices.Equal(s.Labels, want) || !s.Whole {
		t.Errorf("%+v\nand not\n%+v", s, want)
	}
}

// TestLimits: each limit ends a survey, which says that it is not the whole.
func TestLimits(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	dir := treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, "default label=system_u:object_r:usr_t:s0\ndir d%02d x50\nfile d%02d/x x50\ndir big\nfile big/f%d x3000\n"))
	n := treetest.Count(t, dir).All
	if s := take(t.Context(), t, dir, Limits{time.Minute, 500}); s.Whole || s.Entries != 500 || s.Least < 500 {
		t.Errorf("500 entries: %+v", s)
	}
	if s := take(t.Context(), t, dir, Limits{time.Minute, int(n) - 1}); s.Whole || s.Entries != n-1 || !s.Counted || s.Least != n || s.Most != n {
		t.Errorf("all but one: %+v", s)
	}
	if s := take(t.Context(), t, dir, Limits{time.Nanosecond, 1 << 20}); s.Whole || s.Entries > 1 {
		t.Errorf("no time: %+v", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, l := range []Limits{generous, {}} {
		if s := take(ctx, t, dir, l); s.Whole || s.Entries > 1 {
			t.Errorf("cancelled: %+v", s)
		}
	}
}

// TestLarge: a directory that takes longer to list than there is time still has
// some of its labels read.
func TestLarge(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	dir := treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, "default label=system_u:object_r:usr_t:s0\nfile f%d x60000\n"))
	for range 50 { // a busy machine may take all the time for itself
		s := take(t.Context(), t, dir, Limits{4 * time.Millisecond, 1 << 20})
		if s.Whole || s.Counted {
			t.Fatalf("60,000 files in 4 ms: %+v", s)
		}
		if s.Entries > 1 && s.Most == 0 {
			return
		}
	}
	t.Error("no label was ever read")
}

// TestSize: the bounds hold the truth on trees of several shapes, in most of
// many surveys that see a small part.
func TestSize(t *testing.T) {
	treetest.Need(t, "tmpfs", "root")
	for shape, text := range map[string]string{
		"even":     "dir a%02d x40\n" + each(40, "file a%02d/f%%d x200\n"),
		"deep":     "dir a\n" + chain(60),
		"lopsided": "dir a%02d x40\nfile a07/f%d x4000\nfile a08/x/y/f%d x2000\n" + each(40, "file a%02d/g%%d x20\n"),
		"flat":     "file f%d x9000\n",
	} {
		dir := treetest.Fresh(t, "tmpfs")
		treetest.Build(t, dir, treetest.Text(t, text))
		n := treetest.Count(t, dir).All
		held, rounds := 0, 50
		for range rounds {
			s := take(t.Context(), t, dir, Limits{time.Minute, 3000})
			if s.Least <= n && n <= s.Most {
				held++
			}
			if s.Least > n {
				t.Errorf("%s: %d entries, and at least %d said", shape, n, s.Least)
			}
		}
		if held < rounds*8/10 {
			t.Errorf("%s: %d of %d bounds hold %d", shape, held, rounds, n)
		}
	}
}

func each(n int, line string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

func chain(n int) string {
	var b strings.Builder
	at := "a"
	for range n {
		fmt.Fprintf(&b, "file %s/f%%d x60\n", at)
		at += "/d"
	}
	return b.String()
}

// TestRaces: while the owner of the tree exchanges directories for links to
// others, nothing of those others is counted.
func TestRaces(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	dir, outside := treetest.Fresh(t, "tmpfs"), treetest.Fresh(t, "tmpfs")
	treetest.Build(t, dir, treetest.Text(t, "default label=system_u:object_r:usr_t:s0\ndir a%d x9\n"+each(9, "file a%d/f%%d x9\n")))
	treetest.Build(t, outside, treetest.Text(t, "default label=system_u:object_r:shadow_t:s0\nfile f%d x9\n"))
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
			}
			name := filepath.Join(dir, fmt.Sprint("a", rand.IntN(9)))
			_ = os.Rename(name, dir+"/aside")
			_ = os.Symlink(outside, name)
			_ = os.Remove(name)
			_ = os.Rename(dir+"/aside", name)
		}
	}()
	seen := map[string]bool{}
	for range 300 {
		for _, c := range take(t.Context(), t, dir, generous).Labels {
			seen[c.Label] = true
		}
	}
	close(done)
	<-ended
	delete(seen, "") // links that were just made
	if !maps.Equal(seen, map[string]bool{"system_u:object_r:usr_t:s0": true}) {
		t.Errorf("seen %v", seen)
	}
}

// TestHostile: many labels, long ones and odd ones take bounded memory.
func TestHostile(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	dir := treetest.Fresh(t, "tmpfs")
	for i := range maxLabels + 10 {
		name := filepath.Join(dir, fmt.Sprint("f", i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Setxattr(name, "security.selinux", []byte(fmt.Sprintf("\x1b%d", i)), 0); err != nil {
			t.Fatal(err)
		}
	}
	if s := take(t.Context(), t, dir, generous); len(s.Labels) != maxLabels || s.Others != 10 || !s.Whole {
		t.Errorf("%d labels, %d others", len(s.Labels), s.Others)
	}
}
