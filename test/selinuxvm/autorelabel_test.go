// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestRestoreconBoot: a machine whose root has no label on one entry of three, and a wrong
// one on another, boots permissive, as for an autorelabel; fastlabel restorecon -F labels
// all as setfiles had. Then it boots enforcing: restorecon would change nothing, and the
// policy refuses only what it does in the machine as it was made. The control is the boot
// before that, where restorecon would change thousands, and more is refused.
func TestRestoreconBoot(t *testing.T) {
	m := image(t)
	files := map[string]string{"fastlabel": build(t, house, "./cmd/fastlabel", false)}
	const look = "cp /usr/sbin/setfiles /volumes/tmpfs/restorecon && /volumes/tmpfs/restorecon -R -F -n -v -x -e /lost+found / | wc -l" // mkfs makes that, without a label
	for _, k := range m.Kernels {
		t.Run(k.Release, func(t *testing.T) {
			disk := filepath.Join(t.TempDir(), "root.img")
			if _, err := run(exec.Command("cp", "--sparse=always", filepath.Join(m.dir, "root.img"), disk)); err != nil {
				t.Fatal(err)
			}
			boot := func(permissive bool, script string) (would int, denied map[string]bool) {
				t.Helper()
				r, err := m.Run(t.Context(), k, Command{
					Args: []string{"sh", "-c", script}, Files: files, Root: disk, Permissive: permissive, Timeout: 30 * time.Minute,
				})
				t.Logf("%s%s", r.Stdout, tail(r.Stderr, 8))
				if err == nil {
					would, err = strconv.Atoi(strings.TrimSpace(r.Stdout))
				}
				if err != nil || r.Exit != 0 {
					t.Fatalf("exit code %d, %v\n%s", r.Exit, err, refusals(r.Log))
				}
				return would, denials(r.Log)
			}
			would, asMade := boot(false, look)
			if would != 0 {
				t.Fatalf("as it was made, restorecon would change %d", would)
			}
			right := spoil(t, disk)
			would, spoiled := boot(true, look+" && /payload/fastlabel restorecon -R -F -x / >&2 && sync && mount -o remount,ro /")
			if would < len(right)/2 || maps.Equal(spoiled, asMade) {
				t.Errorf("of %d entries restorecon would change %d; refused was %v", len(right), would, spoiled)
			}
			onRoot(t, disk, func(dir string) {
				if diff := treetest.Diff(right, visible(t, dir)); diff != nil {
					t.Errorf("not as setfiles had it:\n%s", strings.Join(diff, "\n"))
				}
			})
			would, after := boot(false, look)
			if diff := treetest.Diff(asMade, after); would != 0 || diff != nil {
				t.Errorf("restorecon would change %d; refused as made, and after it:\n%s", would, strings.Join(diff, "\n"))
			}
			word := "pass"
			if t.Failed() {
				word = "fail"
			}
			table.add(m, k, "selinuxvm", "TestRestoreconBoot", word)
		})
	}
}

// onRoot has look done where the disk is mounted.
func onRoot(t *testing.T, disk string, look func(dir string)) {
	t.Helper()
	dir := t.TempDir()
	if _, err := run(exec.Command("mount", "-o", "loop", disk, dir)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := run(exec.Command("umount", dir)); err != nil {
			t.Error(err)
		}
	}()
	look(dir)
}

// covered are the directories of the root that have something mounted on them while
// the machine runs, and what mkfs makes.
var covered = []string{"dev", "payload", "proc", "lost+found", "run", "sys", "tmp", "volumes"}

// visible are the labels in the root mounted on dir, but for what is covered and
// what no rule names.
func visible(t *testing.T, dir string) map[string]string {
	all := treetest.Read(t, dir)
	maps.DeleteFunc(all, func(path, label string) bool {
		top, _, _ := strings.Cut(path, "/")
		return label == treetest.None || slices.Contains(covered, top)
	})
	return all
}

// spoil takes the label off one entry of three and gives another a wrong one. It returns
// what they had.
func spoil(t *testing.T, disk string) (right map[string]string) {
	onRoot(t, disk, func(dir string) {
		right = visible(t, dir)
		random := rand.New(rand.NewPCG(22, 22))
		for _, path := range slices.Sorted(maps.Keys(right)) {
			var err error
			switch random.IntN(3) {
			case 0:
				err = unix.Lremovexattr(filepath.Join(dir, path), treetest.Attr)
			case 1:
				treetest.Set(t, dir, path, "system_u:object_r:user_home_t:s0")
			}
			if err != nil {
				t.Fatal(path, err)
			}
		}
	})
	return right
}

var denial = regexp.MustCompile(`avc:  denied  (\{.*\}) .*comm=("\S+").* scontext=(\S+) tcontext=(\S+) tclass=(\S+)`)

// denials are what a kernel's log says was refused, and to whom.
func denials(log string) map[string]bool {
	all := map[string]bool{}
	for _, m := range denial.FindAllStringSubmatch(log, -1) {
		all[strings.Join(m[1:], " ")] = true
	}
	return all
}
