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
	"testing"

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

// TestFewDescriptors labels a tree that is wider at each depth, each directory larger than
// a buffer, than there may be open files: directories are closed, and found again by name.
// Trees that are deeper, or have more directories, are TestBounds of test/torture.
func TestFewDescriptors(t *testing.T) {
	treetest.Need(t, "root", "tmpfs")
	bin := treetest.Command(t)
	var broad strings.Builder
	for i := range fewFiles + sized(8, 2) {
		fmt.Fprintf(&broad, "file %sf%%011d x3000\n", strings.Repeat("d/", i))
	}
	root := filepath.Join(roomy(t), "tree")
	treetest.Build(t, root, treetest.Text(t, broad.String()))
	entries := treetest.Count(t, root).All
	for n, threads := range []int{16, 1}[:sized(2, 1)] {
		label := fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d", n)
		out, peak, err := bounded(t, bin, "--json", "-T", strconv.Itoa(threads), "--label", label, root)
		s := lastSummary(t, out, err)
		t.Logf("%d entries, %d threads: %d MiB, %.1f s", entries, threads, peak>>10, s.Seconds)
		if has := len(bearing(t, root, label)); s.Written != entries || int64(has) != entries || peak > mostKiB {
			t.Errorf("%d threads: wrote %d entries of %d, %d have the label, with %d KiB", threads, s.Written, entries, has, peak)
		}
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
			o := Options{Workers: 1}
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
