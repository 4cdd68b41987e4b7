// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// wrong are labels that are right for few of the machine's files, some of a type that
// the policy lists as customizable, some with another user or level than any rule has.
var wrong = []string{
	"system_u:object_r:etc_t:s0", "system_u:object_r:usr_t:s0", "system_u:object_r:tmp_t:s0", "system_u:object_r:default_t:s0",
	"unconfined_u:object_r:user_home_t:s0", "unconfined_u:object_r:var_t:s0", "system_u:object_r:usr_t:s0:c1,c2",
	"system_u:object_r:public_content_t:s0", "unconfined_u:object_r:swapfile_t:s0:c3",
}

// whole is the machine's tree but for what takes an emulated processor long: sixty
// thousand objects of the kernel's, all of which have one label.
var whole = []string{"-R", "-e", "/sys/devices", "-e", "/sys/module", "-e", "/sys/kernel", "/"}

// system lists what is in the filesystem of each of these tops.
func system(t *testing.T, tops ...string) []string {
	t.Helper()
	var all []string
	for _, top := range tops {
		var on uint64
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil {
				return err
			}
			if path == top {
				on = st.Dev
			}
			if st.Dev != on {
				return filepath.SkipDir
			}
			all = append(all, path)
			return nil
		})
		treetest.Must(t, err)
	}
	return all
}

// labels are those of the paths.
func labels(t *testing.T, paths []string) map[string]string {
	t.Helper()
	all := make(map[string]string, len(paths))
	for _, p := range paths {
		all[p] = labelOf(t, p)
	}
	return all
}

// scramble gives two of three paths a wrong label, the same ones for the same seed.
func scramble(t *testing.T, paths []string, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 22))
	for _, p := range paths {
		if r.IntN(3) == 0 {
			continue
		}
		to := wrong[r.IntN(len(wrong))]
		err := unix.Lsetxattr(p, treetest.Attr, []byte(to), 0)
		if err != nil && !errors.Is(err, fs.ErrPermission) { // few types may be on some of the kernel's filesystems
			t.Fatalf("%s: %s: %v", p, to, err)
		}
	}
}

// restorecon is the machine's, beneath a name and with a label that no policy and no
// test changes: it runs in the domain of the test.
func restorecon(t *testing.T, args ...string) string {
	t.Helper()
	const program = "/volumes/tmpfs/restorecon"
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		text, err := os.ReadFile("/usr/sbin/setfiles")
		treetest.Must(t, err)
		treetest.Must(t, os.WriteFile(program, text, 0o755))
	}
	return treetest.Output(t, exec.Command(program, args...))
}

var (
	theirs = regexp.MustCompile(`^Would relabel (.*) from (\S+) to (\S+)$`)
	ours   = regexp.MustCompile(`^would relabel "(.*)" from (\S+) to (\S+)$`)
	leftBe = regexp.MustCompile(`^(.*) not reset as customized by admin to \S+$`)
)

// wouldChange is what restorecon with these arguments would change: of each path, the
// label that it is to have.
func wouldChange(t *testing.T, args ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(restorecon(t, append([]string{"-n", "-v"}, args...)...)) {
		line = strings.TrimSuffix(line, "\n")
		if m := theirs.FindStringSubmatch(line); m != nil {
			all[m[1]] = m[3]
		} else if !leftBe.MatchString(line) {
			t.Errorf("restorecon says: %s", line)
		}
	}
	return all
}

// weWouldChange is the same of ours.
func weWouldChange(t *testing.T, args ...string) map[string]string {
	t.Helper()
	out, err := exec.Command(command, append([]string{"restorecon", "-n", "-v"}, args...)...).Output()
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if m := ours.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			all[m[1]] = m[3]
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 4 == (len(all) > 0) || err == nil && len(all) == 0 {
		return all
	}
	t.Errorf("%v, and %d changes\n%s", err, len(all), out)
	return all
}

// kinds makes entries of each kind where the policy has rules for some kinds alone.
func kinds(t *testing.T) {
	t.Helper()
	for i, mode := range []uint32{unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK, unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFCHR, unix.S_IFBLK} {
		for _, dir := range []string{"/etc", "/dev", "/run", "/srv", "/home/someone", "/usr/local/bin", "/var/log", "/var/spool"} {
			treetest.Must(t, os.MkdirAll(dir, 0o755))
			for _, name := range []string{"log", "sda9", "shadow", "initctl", "web"} {
				path := fmt.Sprintf("%s/%s", dir, name)
				if i > 0 {
					path = fmt.Sprintf("%s/kind%d-%s", dir, i, name)
				}
				var err error
				switch mode {
				case unix.S_IFDIR:
					err = os.Mkdir(path, 0o755)
				case unix.S_IFLNK:
					err = os.Symlink("nowhere", path)
				default:
					err = unix.Mknod(path, mode|0o644, int(unix.Mkdev(1, 3)))
				}
				if err != nil && !errors.Is(err, fs.ErrExist) {
					t.Fatal(path, err)
				}
			}
		}
	}
}

// kernels mounts the kernel's own filesystems on their places, as systemd does.
func kernels(t *testing.T) {
	t.Helper()
	for _, m := range [][2]string{
		{"debugfs", "/sys/kernel/debug"},
		{"tracefs", "/sys/kernel/tracing"},
		{"securityfs", "/sys/kernel/security"},
		{"pstore", "/sys/fs/pstore"},
		{"bpf", "/sys/fs/bpf"},
		{"cgroup2", "/sys/fs/cgroup"},
		{"mqueue", "/dev/mqueue"},
		{"hugetlbfs", "/dev/hugepages"},
	} {
		treetest.Must(t, os.MkdirAll(m[1], 0o755))
		mount(t, m[0], m[1], m[0], 0, "")
	}
}

// TestRestoreconChroot: the kernel's devices have one label, wherever they are mounted, and
// get none by the path of a chroot, which restorecon would give them.
func TestRestoreconChroot(t *testing.T) {
	const at = "/srv/chroot/dev"
	treetest.Must(t, os.MkdirAll(at, 0o755))
	mount(t, "devtmpfs", at, "devtmpfs", 0, "")
	before := labelOf(t, "/dev/null")
	if would := wouldChange(t, "-R", "/srv"); would[at+"/null"] == "" {
		t.Errorf("restorecon would leave the devices alone: %v", would)
	}
	told(t, label(t, 0, "restorecon", "-R", "-v", "/srv"), at+`": skipped: it lies in the kernel's own filesystem (devtmpfs)`)
	if after := labelOf(t, "/dev/null"); after != before {
		t.Errorf("/dev/null had %s and has %s", before, after)
	}
}

// TestRestoreconAlias: a rule may name a type by an alias, which the kernel reads back as the
// type itself. A second run writes nothing all the same.
func TestRestoreconAlias(t *testing.T) {
	root := grow(t, fresh(t, "ext4"))
	contexts := filepath.Join(t.TempDir(), "file_contexts")
	treetest.Must(t, os.WriteFile(contexts, []byte(root+"(/.*)? system_u:object_r:svirt_lxc_file_t:s0\n"), 0o600))
	for _, flags := range [][]string{{"-R"}, {"-R", "-F"}} {
		args := append(append([]string{"restorecon", "--contexts", contexts}, flags...), root)
		told(t, label(t, 0, args...), " 0 failed, ")
		all(t, root, shared)
		told(t, label(t, 0, args...), " 0 written, ")
		treetest.Label(t, root, "system_u:object_r:tmp_t:s0")
	}
}

// TestRestoreconImage: labels of an image that the machine's policy does not know are stored
// by whom the policy lets do so, and by nobody else.
func TestRestoreconImage(t *testing.T) {
	root := grow(t, fresh(t, "ext4"))
	contexts := filepath.Join(t.TempDir(), "file_contexts")
	treetest.Must(t, os.WriteFile(contexts, []byte("/.* system_u:object_r:of_an_image_t:s0\n"), 0o600))
	flags := []string{"-R", "-F", "--root", root, "--contexts", contexts, root}
	told(t, label(t, 1, append([]string{"restorecon"}, flags...)...), "invalid argument")
	boolean := func(value string) {
		for _, w := range [][2]string{{"booleans/makes_images", value}, {"commit_pending_bools", "1"}} {
			treetest.Must(t, os.WriteFile("/sys/fs/selinux/"+w[0], []byte(w[1]), 0))
		}
	}
	boolean("1")
	defer boolean("0")
	told(t, label(t, 0, append([]string{"restorecon"}, flags...)...), " 0 failed, ")
	all(t, root, "system_u:object_r:of_an_image_t:s0") // as who may do so reads it
	told(t, label(t, 0, append([]string{"restorecon"}, flags...)...), " 0 written, ")
}

// TestRestoreconTree: on the machine's whole tree, with wrong labels on two of three
// entries of each kind, restorecon and ours would change the same entries to the same
// labels; after ours restorecon changes nothing, after restorecon ours writes nothing,
// and both leave the same labels. So it is with -F and without.
func TestRestoreconTree(t *testing.T) {
	kernels(t)
	kinds(t)
	paths := system(t, "/", "/dev", "/run", "/sys/fs/cgroup")
	for seed, force := range []string{"", "-F"} {
		t.Run("restorecon "+force, func(t *testing.T) {
			args := whole
			if force != "" {
				args = append([]string{force}, whole...)
			}
			scramble(t, paths, uint64(seed))
			before := labels(t, paths)
			their := wouldChange(t, args...)
			if diff := treetest.Diff(their, weWouldChange(t, args...)); diff != nil || len(their) < len(paths)/3 {
				t.Errorf("of %d entries restorecon would change %d, and ours not all or others:\n%s", len(paths), len(their), strings.Join(diff, "\n"))
			}
			label(t, 0, append([]string{"restorecon"}, args...)...)
			if left := wouldChange(t, args...); len(left) > 0 {
				t.Errorf("after ours restorecon would change %v", left)
			}
			after := labels(t, paths)
			for p, want := range before {
				if to := their[p]; to != "" {
					want = to
				}
				if after[p] != want {
					t.Errorf("%s had %s and has %s, not %s", p, before[p], after[p], want)
				}
			}

			scramble(t, paths, uint64(seed))
			restorecon(t, args...)
			if left := weWouldChange(t, args...); len(left) > 0 {
				t.Errorf("after restorecon ours would change %v", left)
			}
			if diff := treetest.Diff(labels(t, paths), after); diff != nil {
				t.Errorf("restorecon and ours left:\n%s", strings.Join(diff, "\n"))
			}
		})
	}
}
