// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/order"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/internal/walk"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// summary is what the command's last line of JSON says.
type summary struct {
	Type     string `json:"message_type"`
	Way      string `json:"way"`
	Written  int64  `json:"written"`
	Failed   int64  `json:"failed"`
	Complete bool   `json:"complete"`

	Seconds float64 `json:"seconds"`
}

// lastSummary reads the command's JSON lines. Whatever went wrong stops the test.
func lastSummary(t *testing.T, out []byte, err error) summary {
	t.Helper()
	var s summary
	for line := range bytes.Lines(out) {
		if json.Unmarshal(line, &s) != nil {
			break
		}
	}
	if err != nil || s.Type != "summary" || !s.Complete || s.Failed != 0 {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	return s
}

// join merges answers; later ones win.
func join(all ...map[int]syscall.Errno) map[int]syscall.Errno {
	out := map[int]syscall.Errno{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// TestWayByAnswers runs the command under a kernel that lacks some calls, or refuses them,
// and tells by its own word which way that led it: each of the calls refused that the profiles of container
// runtimes refuse, all of them, and all but one. What is labelled is the same.
func TestWayByAnswers(t *testing.T) {
	treetest.Need(t, "root", "ext4", "seccomp")
	type answers = map[int]syscall.Errno
	no := func(e syscall.Errno) answers { return answers{unix.SYS_SETXATTRAT: e, unix.SYS_GETXATTRAT: e} }
	noMounts := answers{unix.SYS_OPEN_TREE: unix.ENOSYS, unix.SYS_OPENAT2: unix.ENOSYS}
	type leg struct {
		way  string // "" for any
		deny answers
	}
	legs := map[string]leg{
		"nothing":             {"clone/setxattrat", nil},
		"no-xattrat":          {"clone/fchdir", no(unix.ENOSYS)},
		"xattrat-forbidden":   {"clone/fchdir", no(unix.EPERM)},
		"setxattrat-alone":    {"clone/fchdir", answers{unix.SYS_GETXATTRAT: unix.ENOSYS}},
		"unshare-forbidden":   {"clone/fd", join(no(unix.ENOSYS), answers{unix.SYS_UNSHARE: unix.EPERM})},
		"open_tree-forbidden": {"openat2/fd", answers{unix.SYS_OPEN_TREE: unix.EPERM}},
		"no-mount_setattr":    {"openat2/fd", answers{unix.SYS_MOUNT_SETATTR: unix.ENOSYS}},
		"no-openat2":          {"mountid/fd", noMounts},
		"no-mount-ids":        {"mountid/fd", join(noMounts, answers{unix.SYS_STATX: unix.ENOSYS})},
		"no-handles":          {"mountid/fd", join(noMounts, answers{unix.SYS_STATX: unix.ENOSYS, unix.SYS_NAME_TO_HANDLE_AT: unix.ENOTSUP})},
		"linux-4.18":          {"mountid/fd", join(noMounts, no(unix.ENOSYS), answers{unix.SYS_MOUNT_SETATTR: unix.ENOSYS})},
		"handles-EACCES":      {"", answers{unix.SYS_NAME_TO_HANDLE_AT: unix.EACCES, unix.SYS_STATX: unix.ENOSYS, unix.SYS_OPEN_TREE: unix.EPERM, unix.SYS_OPENAT2: unix.EPERM}},
	}
	calls := map[string]int{
		"open_tree": unix.SYS_OPEN_TREE, "mount_setattr": unix.SYS_MOUNT_SETATTR, "openat2": unix.SYS_OPENAT2,
		"name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT, "statx": unix.SYS_STATX,
		"setxattrat": unix.SYS_SETXATTRAT, "getxattrat": unix.SYS_GETXATTRAT,
	}
	for _, e := range []syscall.Errno{unix.EPERM, unix.ENOSYS} {
		all := answers{}
		for _, nr := range calls {
			all[nr] = e
		}
		legs["all-"+unix.ErrnoName(e)] = leg{"", all}
		for name, nr := range calls {
			others := maps.Clone(all)
			delete(others, nr)
			legs[name+"-"+unix.ErrnoName(e)] = leg{"", answers{nr: e}}
			legs["all-but-"+name+"-"+unix.ErrnoName(e)] = leg{"", others}
		}
	}
	bin := treetest.Command(t)
	dir := treetest.Filesystems(t)[0].Dir(t)
	oracle, ours := filepath.Join(dir, "oracle"), filepath.Join(dir, "ours")
	for _, root := range []string{oracle, ours} {
		treetest.Build(t, root, treetest.Load(t, "nested-mounts"))
	}
	n := 0
	for name, leg := range legs {
		n++ // a label that nothing has yet
		label := fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d", n)
		treetest.Label(t, oracle, label)
		cmd := exec.Command(bin, "--json", "-T", "2", "--label", label, ours)
		if leg.deny != nil {
			treetest.Deny(t, cmd, leg.deny)
		}
		out, err := cmd.Output()
		if s := lastSummary(t, out, err); s.Written == 0 || leg.way != "" && s.Way != leg.way && sys.HasXattrat() {
			t.Errorf("%s: %+v, want %s", name, s, leg.way)
		}
		if d := treetest.Diff(treetest.Read(t, oracle), treetest.Read(t, ours)); len(d) > 0 {
			t.Errorf("%s: differs from the oracle's:\n%s", name, lines(d))
		}
	}
}

// TestThreadsLeaveNoTrace: on the way that gives threads a working directory of
// their own, none of those threads is left, so that none holds the volume or serves other
// goroutines, and the main one is not among them: it could not end.
func TestThreadsLeaveNoTrace(t *testing.T) {
	treetest.Need(t, "root")
	stand := func(want string) {
		t.Helper()
		threads, err := filepath.Glob("/proc/self/task/*/cwd")
		treetest.Must(t, err)
		for _, thread := range append(threads, "/proc/self/cwd") {
			if at, err := os.Readlink(thread); err == nil && at != want {
				t.Errorf("a thread stands in %s, not %s", at, want)
			}
		}
	}
	here, err := os.Getwd()
	treetest.Must(t, err)
	volume := mkdir(t, treetest.Fresh(t, "tmpfs"), "volume")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // threads change hands rarely
	for range 20 {
		treetest.Must(t, unix.Mount("treetest", volume, "tmpfs", 0, ""))
		treetest.Build(t, volume, treetest.Text(t, "dir d%02d x20\nfile d%02d/f x20"))
		r, err := tree(t.Context(), volume, newLabel, Options{Workers: 16},
			as(capabilities{kernel: walk.Kernel{Way: sys.ByThread}, clones: true, openat2: true}))
		if err != nil || strings.TrimSuffix(r.Way, "/slow") != "clone/fchdir" || r.Written != 41 {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := unix.Unmount(volume, 0); err != nil {
			t.Fatalf("the volume is still in use: %v", err)
		}
		stand(here)
	}
	t.Chdir(volume) // all threads move with the process
	stand(volume)
}

const (
	oldLabel = "system_u:object_r:container_file_t:s0:c7,c9"
	newLabel = "system_u:object_r:container_file_t:s0:c1,c2"
)

// engines are the ways to label, each forced as a kernel that has no better
// one would force it. That the kernel's answers lead to the right one of them
// is TestWayByAnswers' business.
func engines() map[string]capabilities {
	all := map[string]capabilities{
		"clone-fchdir": {kernel: walk.Kernel{Way: sys.ByThread, Sorting: scant}, clones: true, openat2: true},
		"clone-fd":     {kernel: walk.Kernel{Way: sys.ByDescriptor}, clones: true, openat2: true},
		"openat2-fd":   {kernel: walk.Kernel{Way: sys.ByName}, openat2: true},
		"mountid-fd":   {kernel: walk.Kernel{Way: sys.ByName}},
	}
	for name, way := range map[string]sys.Way{"small-at": sys.ByName, "small-fd": sys.ByDescriptor} {
		if way != sys.ByName || sys.HasXattrat() {
			all[name] = capabilities{kernel: walk.Kernel{Way: way}, clones: true, openat2: true, small: true, always: true}
		}
	}
	if sys.HasXattrat() {
		all["clone-xattrat"] = capabilities{kernel: walk.Kernel{Way: sys.ByName, Sorting: scant}, clones: true, openat2: true}
	}
	return all
}

// scant memory makes sorting, and several readings of a directory, a matter of
// small trees. The ways without it show that the order changes nothing else.
var scant = order.Sorting{From: 1, Budget: 8 << 10}

func as(m capabilities) inner { return inner{can: &m} }

// TestEveryWay holds the engine against a naive labeller on another walker:
// each tree, on each filesystem, each way, with few and many workers.
func TestEveryWay(t *testing.T) {
	treetest.Need(t, "root")
	for _, name := range treetest.All(t) {
		tree := treetest.Load(t, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			treetest.Each(t, func(t *testing.T, dir string) {
				oracle := filepath.Join(dir, "oracle")
				treetest.Build(t, oracle, tree)
				label := newLabel
				if name == "half" {
					label = "system_u:object_r:container_file_t:s0" // that of one half
				}
				counts := treetest.Label(t, oracle, label)
				want := treetest.Read(t, oracle)
				if counts.Written == 0 {
					t.Fatal("the oracle changed nothing: the tree proves nothing")
				}
				for engine, m := range engines() {
					for i, threads := range []int{1, 2, 16} {
						if testing.Short() && i != len(engine+t.Name())%3 {
							continue // each cell has one of its own
						}
						m.served = threads == 16
						t.Run(fmt.Sprintf("%s-%d", engine, threads), func(t *testing.T) {
							ours := filepath.Join(dir, fmt.Sprintf("%s-%d", engine, threads))
							treetest.Build(t, ours, tree)
							same(t, ours, label, want, counts, m, threads)
						})
					}
				}
			})
		})
	}
}

// same labels the tree at root and compares it, and the counts, with what the oracle made. A dry
// run before it counts as many, and touches nothing; nor does a second run, for a write moves ctime.
func same(t *testing.T, root, label string, want map[string]string, counts treetest.Tally, m capabilities, threads int) {
	t.Helper()
	o := Options{Workers: threads, Exact: true}
	left := map[string]bool{} // mounts that were skipped
	o.Trace = &Trace{Skip: func(path, _ string) { left[path] = true }}
	labelled := int64(0)
	for _, l := range want {
		if l == label {
			labelled++
		}
	}
	before := treetest.Snapshot(t, root+"/...")
	r, err := tree(t.Context(), root, label, o, inner{can: &m, dry: true})
	if err != nil || r.Complete || r.Written+r.Right != counts.Written+counts.Right || r.Written < counts.Written { // by another name it is wrong twice
		t.Errorf("a dry run: %+v, %v; want %+v", r, err, counts)
	}
	most := r.Written
	if d := treetest.Diff(before, treetest.Snapshot(t, root+"/...")); len(d) > 0 {
		t.Errorf("a dry run touched:\n%s", lines(d))
	}
	for _, turn := range []struct {
		name          string
		written, most int64 // two workers may write a file by two names at once
		all           int64 // written or right
	}{
		{"first", counts.Written, most, counts.Written + counts.Right},
		{"second", 0, 0, labelled},
	} {
		clear(left)
		o.Progress = new(Progress)
		before := treetest.Snapshot(t, root+"/...")
		r, err := tree(t.Context(), root, label, o, as(m))
		o.Exact = false // for the second run
		if d := treetest.Diff(before, treetest.Snapshot(t, root+"/...")); turn.written == 0 && len(d) > 0 {
			t.Errorf("the %s run touched:\n%s", turn.name, lines(d))
		}
		if err != nil || !r.Complete {
			t.Fatalf("%s run: complete %t, %v", turn.name, r.Complete, err)
		}
		if s, _ := o.Progress.State(); s.Counts != r.Counts || s.Found != s.Entered || s.Path != "" {
			t.Errorf("%s run: at the end it is told to be at %+v", turn.name, s)
		}
		if d := treetest.Diff(want, treetest.Read(t, root)); len(d) > 0 {
			t.Errorf("%s run differs from the oracle's:\n%s", turn.name, lines(d))
		}
		adds(t, r)
		unseen := 0 // what lies in them, but for their tops
		for p, l := range want {
			if l == label {
				continue // on a mount of its own beneath them
			}
			for up := filepath.Join(root, p); up != root && !left[up]; {
				if up = filepath.Dir(up); left[up] {
					unseen++
				}
			}
		}
		if r.Seen != int64(len(want)-unseen) {
			t.Errorf("%s run saw %d entries of %d: %+v", turn.name, r.Seen, len(want)-unseen, r)
		}
		if r.Written < turn.written || r.Written > turn.most || threads == 1 && r.Written != turn.written || r.Written+r.Right != turn.all {
			t.Errorf("%s run wrote %d and found %d right; want %d, and %d of both", turn.name, r.Written, r.Right, turn.written, turn.all)
		}
	}
}

func lines(d []string) (s string) {
	for _, l := range d {
		s += "\t" + l + "\n"
	}
	return s
}
