// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// fewFiles is the limit on open files that the command gets here, and mostKiB
// the most memory that it may use, whatever the tree. Three times what it takes
// with two workers; a walk that keeps a list of a million names takes as much.
const (
	fewFiles = 32
	mostKiB  = 48 << 10
)

// sized gives whole, or small in the short form.
func sized(whole, small int) int {
	if testing.Short() {
		return small
	}
	return whole
}

// roomy is a tmpfs without a limit on entries.
func roomy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(treetest.Fresh(t, "tmpfs"), "roomy")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("treetest", dir, "tmpfs", 0, "mode=0755,nr_inodes=0"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// bounded runs the command with few descriptors, and gives the peak of its
// resident memory in KiB. The shell becomes the command: it is no child of it.
func bounded(t *testing.T, args ...string) (out []byte, peakKiB int, err error) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, fewFiles)}, args...)...)
	peak := treetest.Peak(t, cmd)
	out, err = cmd.CombinedOutput()
	return out, peak(), err
}

// TestMemory: a million files in one directory, and three hundred thousand
// directories beside each other, fit into the memory that small trees take.
func TestMemory(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	bin := treetest.Command(t)
	t.Run("files", func(t *testing.T) {
		root := roomy(t)
		n := sized(1_000_000, 400_000) // ls takes 64 MiB for the latter
		flat(t, root, n)
		inMemory(t, bin, root, int64(n)+1)
		if _, peak, err := bounded(t, "ls", root); err != nil || peak <= mostKiB {
			t.Errorf("control: ls took %d KiB: %v", peak, err)
		}
	})
	t.Run("directories", func(t *testing.T) {
		root := roomy(t)
		n := sized(300_000, 60_000)
		families(t, root, n)
		inMemory(t, bin, root, 2*int64(n)+1)
	})
}

func inMemory(t *testing.T, bin, root string, entries int64) {
	out, peak, err := bounded(t, bin, "--json", "--label", newLabel, root)
	s := lastSummary(t, out, err)
	t.Logf("%d entries: %d MiB, %.1f s", entries, peak>>10, s.Seconds)
	if s.Written != entries || peak > mostKiB {
		t.Errorf("wrote %d entries of %d, with %d KiB of memory at most; want no more than %d", s.Written, entries, peak, mostKiB)
	}
}

// TestFirstSoon: where entries are not gathered first, the first of many is labelled
// while hardly any has been read. ext4, where they are, is the control.
func TestFirstSoon(t *testing.T) {
	treetest.Need(t, "root", "strace")
	bin := treetest.Command(t)
	treetest.Each(t, func(t *testing.T, dir string) {
		root := filepath.Join(dir, "root")
		flat(t, root, 3*bufferSize/32)
		settle(t, root)
		before, all, writes := 0, 0, 0
		for _, c := range below(t, nil, root, bin, "-T1", "--label", newLabel) {
			switch c.Class() {
			case treetest.Entries:
				if all++; writes < 3 { // the root's seal, and what asks whether it is kept
					before++
				}
			case treetest.WriteAttr:
				writes++
			}
		}
		if gathers := filepath.Base(t.Name()) == "ext4"; all < 4 || gathers != (before == all) {
			t.Errorf("of %d readings of names %d came before the first label", all, before)
		}
	})
}

// BenchmarkFirst measures how soon the first of 30,000 files in one directory is
// labelled, by one worker.
func BenchmarkFirst(b *testing.B) {
	for _, fs := range []string{"xfs", "btrfs", "tmpfs"} {
		b.Run(fs, func(b *testing.B) {
			root := filepath.Join(on(b, fs), "root")
			flat(b, root, 30_000)
			var firsts time.Duration
			for i := 0; b.Loop(); i++ {
				first, began := time.Duration(0), time.Now()
				r, err := Tree(b.Context(), root, []string{newLabel, oldLabel}[i%2], &Options{Trace: &Trace{Change: func(string, string, string) {
					if first == 0 {
						first = time.Since(began)
					}
				}}, Workers: 1})
				if err != nil || r.Written != 30_001 {
					b.Fatalf("%+v, %v", r, err)
				}
				firsts += first
			}
			b.ReportMetric(firsts.Seconds()*1000/float64(b.N), "ms-first/op")
		})
	}
}

// families makes n directories in dir, each with a file in it.
func families(t *testing.T, dir string, n int) {
	t.Helper()
	var all sync.WaitGroup
	for part := range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := part; i < n; i += runtime.GOMAXPROCS(0) {
				d := filepath.Join(dir, strconv.Itoa(i))
				if err := unix.Mkdir(d, 0o755); err != nil {
					t.Error(err)
					return
				}
				if err := unix.Mknod(d+"/f", unix.S_IFREG|0o644, 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestFewDescriptors labels trees that are deeper, or wider at each depth, than
// there may be open files: directories are closed, and found again by name.
func TestFewDescriptors(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	bin := treetest.Command(t)
	var comb, broad strings.Builder
	for i := range 300 {
		// Whatever the order, something beside m waits when m is entered;
		// nothing does in the two directories above, which are closed
		// for good as far as they themselves are concerned.
		at := "x/y/" + strings.Repeat("m/", i)
		fmt.Fprintf(&comb, "file %sa/f\nfile %[1]sm/f\nfile %[1]sz/f\n", at)
	}
	for i := range fewFiles + sized(8, 2) {
		fmt.Fprintf(&broad, "file %sf%%011d x3000\n", strings.Repeat("d/", i))
	}
	for _, tree := range []struct{ name, text string }{
		{"chain", "deep a x2000 60"},
		{"comb", comb.String()},
		{"broad", broad.String()}, // each directory is more than a buffer
	} {
		t.Run(tree.name, func(t *testing.T) {
			root := filepath.Join(roomy(t), "tree")
			treetest.Build(t, root, treetest.Text(t, tree.text))
			entries := treetest.Count(t, root).All
			for n, threads := range []int{16, 1}[:sized(2, 1)] {
				label := fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d", n)
				out, peak, err := bounded(t, bin, "--json", "-T", strconv.Itoa(threads), "--label", label, root)
				s := lastSummary(t, out, err)
				t.Logf("%d entries, %d threads: %d MiB, %.1f s", entries, threads, peak>>10, s.Seconds)
				if s.Written != entries || peak > mostKiB {
					t.Errorf("%d threads: wrote %d entries of %d, with %d KiB", threads, s.Written, entries, peak)
				}
				for p, l := range treetest.Read(t, root) {
					if l != label {
						t.Fatalf("%d threads: %s has %s", threads, p, l)
					}
				}
			}
		})
	}
}

// TestAllocations: what Tree allocates does not depend on how many files there
// are, on any way.
func TestAllocations(t *testing.T) {
	treetest.Need(t, "root", "setxattrat")
	dir := treetest.Fresh(t, "tmpfs")
	few, many := filepath.Join(dir, "few"), filepath.Join(dir, "many")
	more := sized(50_000, 10_000)
	most := int64(more / 20) // a walk that takes long makes some by the clock: 125 in a minute
	flat(t, few, 10_000)
	flat(t, many, 10_000+more)
	allocated := func(root, label string, m capabilities, o Options) int64 {
		settle(t, root)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := tree(t.Context(), root, label, o, as(m))
		runtime.ReadMemStats(&after)
		if err != nil || !r.Complete {
			t.Fatalf("%+v, %v", r, err)
		}
		return int64(after.Mallocs - before.Mallocs)
	}
	n := 0
	for name, m := range engines() {
		n++ // another label: everything is wrong
		for i, state := range []string{"wrong", "right"} {
			label := fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d", n)
			o := Options{Workers: 1, Advanced: Advanced{NoSync: true}}
			if d := allocated(many, label, m, o) - allocated(few, label, m, o); d >= most {
				t.Errorf("%s, all %s: %d more allocations for %d more files", name, state, d, more)
			}
			o.Progress, o.Throttle = new(Progress), func(context.Context, int) error { return nil }
			if d := allocated(many, label, m, o) - allocated(few, label, m, o); d >= most {
				t.Errorf("%s: held back: %d more allocations for %d more files", name, d, more)
			}
			if i == 0 || m.kernel.Way != xattrio.ByName || !m.clones {
				continue
			}
			// A path for each change is what Trace.Change costs: the control.
			label += ",c999"
			o.Trace = &Trace{Change: func(string, string, string) {}}
			if d := allocated(many, label, m, o) - allocated(few, label, m, o); d < int64(more) {
				t.Errorf("control: %s: only %d more allocations with Trace.Change", name, d)
			}
		}
	}
}
