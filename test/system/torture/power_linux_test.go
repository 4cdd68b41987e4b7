// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// volume is a kind of filesystem whose power is cut.
type volume struct {
	name, kind string
	mib        int64
	mkfs       []string
	options    string   // of its mount
	fsck       []string // what has to run at the boot before it is mounted
	controls   []string // which of the rivals must fall
	shuts      bool     // it can be shut down without its log
}

// ext4 makes one: nothing is initialised lazily, which would write to the log.
func ext4(name, options string, mkfs ...string) volume {
	return volume{
		name: name, kind: "ext4", mib: 256, options: options, controls: []string{rootFirst.name}, shuts: true,
		mkfs: append([]string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"}, mkfs...),
	}
}

// volumes are those of the bar. Where the filesystem keeps the order of labels no run waits
// for the disk, and the control is one that labels the root first. Elsewhere it is a build
// that takes each filesystem for one that keeps it, and one that waits for all but the seal.
var volumes = []volume{
	ext4("ext4", ""),
	ext4("ext4, writeback", "data=writeback"),
	ext4("ext4, fast commits", "", "-O", "fast_commit"),
	ext4("ext4, inodes of 128 bytes", "", "-I", "128"),
	{
		name: "ext4 without journal", kind: "ext4", mib: 256, controls: waiting,
		mkfs: []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^has_journal", "-E", "lazy_itable_init=0"},
		fsck: []string{"e2fsck", "-f", "-y"},
	},
	{name: "xfs", kind: "xfs", mib: 300, controls: []string{rootFirst.name}, shuts: true, mkfs: []string{"mkfs.xfs", "-q", "-f"}},
	{name: "btrfs", kind: "btrfs", mib: 256, controls: waiting, mkfs: []string{"mkfs.btrfs", "-q", "-f"}},
}

// relabeller is a command under attack.
type relabeller struct {
	name string
	cmd  func(t *testing.T, root string) *exec.Cmd
}

var (
	intact = relabeller{"fastlabel", func(t *testing.T, root string) *exec.Cmd {
		return exec.Command(fastlabel(t), "-q", "--label", newLabel, root)
	}}
	synced = relabeller{"fastlabel --sync", func(t *testing.T, root string) *exec.Cmd {
		return exec.Command(fastlabel(t), "-q", "--sync", "--label", newLabel, root)
	}}
	// rootFirst writes the labels in an order that proves nothing, and waits for no disk.
	rootFirst = relabeller{"root first", func(t *testing.T, root string) *exec.Cmd {
		return exec.Command("sh", "-c", `chcon -h "$1" "$2" && exec "$0" -q --label "$1" "$2"`, fastlabel(t), newLabel, root)
	}}
	// rivals are attacked the same way. The first three break the order that the
	// engine keeps, the next is told to seal nothing, and the last one is a
	// peer. The last two leave the old label until the root has the new.
	rivals = []relabeller{
		rootFirst,
		unordered("order-assumed"),
		unordered("seal-unsynced"),
		{"--no-seal", func(t *testing.T, root string) *exec.Cmd {
			return exec.Command(fastlabel(t), "-q", "--no-seal", "--label", newLabel, root)
		}},
		{"go-selinux", func(_ *testing.T, root string) *exec.Cmd { return gochcon(newLabel, root) }},
	}
)

var waiting = []string{"order-assumed", "seal-unsynced"}

// unordered is a build that is broken so.
func unordered(mutant string) relabeller {
	return relabeller{mutant, func(t *testing.T, root string) *exec.Cmd {
		return exec.Command(broken(t, mutant), "-q", "--label", newLabel, root)
	}}
}

// TestPowerLoss cuts the power at points between the command's start and a
// little after its end, loses at random what was not flushed by then, and asks
// the root what it is trusted for (R2). All the while an application calls fsync
// on the root, on entries and on files beside it: it takes their labels to the disk by a
// way that leaves others where they are.
func TestPowerLoss(t *testing.T) {
	treetest.Need(t, "root", "ext4", "xfs", "btrfs", "tmpfs", "fuse", "e2fsck", "chcon")
	for _, v := range volumes {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel() // most of the time is waiting for disks
			powerLoss(t, v)
		})
	}
}

func powerLoss(t *testing.T, v volume) {
	g := grow(t, v)
	points := pick(20, 400, 2000)
	ours := g.attackAll(t, intact, func(s *tally) bool { return s.points < points })
	onDisk := g.attackAll(t, synced, func(s *tally) bool { return s.points < points/4 })
	r := row{check: "R2 power loss, fsync of root and entries", where: v.name, runs: ours.points + onDisk.points, bad: ours.false() + onDisk.false()}
	r.note = fmt.Sprintf("%s; --sync: %s", ours, onDisk)
	theirs, others := pick(10, 50, 200), pick(0, 50, 200)
	for _, rival := range rivals {
		must := slices.Contains(v.controls, rival.name)
		if !must && others == 0 {
			continue
		}
		s := g.attackAll(t, rival, func(s *tally) bool {
			return s.points < cmp.Or(others, theirs) || must && s.false() == 0 && s.points < 20*theirs // what must fall may be in luck a few times
		})
		if must && (r.control == "" || s.false() == 0) {
			r.control, r.controlRuns, r.controlBad = rival.name, s.points, s.false()
			continue
		}
		r.note += fmt.Sprintf("; %s: %d of %d false", rival.name, s.false(), s.points)
	}
	r.add(t)
	if ours.lost()+onDisk.lost()+onDisk.undone > 0 {
		t.Errorf("%s: %s; --sync: %s", v.name, ours, onDisk)
	}
}

// TestShutdown shuts the filesystem down without its log at a random moment, by the
// filesystem's own call, and asks the root then.
func TestShutdown(t *testing.T) {
	treetest.Need(t, "root", "ext4", "xfs", "tmpfs", "chcon")
	for _, v := range volumes {
		if !v.shuts {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			g := grow(t, v)
			times, theirs := pick(6, 60, 300), pick(6, 20, 60)
			ours, control := &tally{}, &tally{}
			for seed := range uint64(times) {
				g.shutdown(t, intact, seed, ours)
			}
			for seed := uint64(0); control.points < theirs || control.false() == 0 && control.points < 20*theirs; seed++ {
				g.shutdown(t, rootFirst, seed, control)
			}
			row{
				check: "R2 shutdown without the log", where: v.name, runs: ours.points, bad: ours.false(), note: ours.String(),
				control: rootFirst.name, controlRuns: control.points, controlBad: control.false(),
			}.add(t)
			if ours.lost() > 0 {
				t.Errorf("%s: %s", v.name, ours)
			}
		})
	}
}

// attackAll attacks by one record after the other, as long as more says.
func (g *ground) attackAll(t *testing.T, who relabeller, more func(*tally) bool) *tally {
	t.Helper()
	s := &tally{}
	for seed := uint64(1); more(s); seed++ {
		g.attack(t, who, seed, pick(5, 25, 100), s)
	}
	t.Logf("%s: %s", who.name, s)
	return s
}

// attack runs the command once on a copy of the ground, and cuts the power at
// n points of what was recorded.
func (g *ground) attack(t *testing.T, who relabeller, seed uint64, n int, sum *tally) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	rec := g.record(t, who, seed, rng)
	t.Logf("%s, seed %d: start %d, done %d, end %d", who.name, seed, rec.start, rec.done, rec.end)
	r := newReplay(g.pages, rec.log)
	for i, at := range places(rng, rec.start, rec.end, n) {
		r.to(at)
		left, lost := r.cut(rng)
		p := g.look(t, left, i%4 == 0)
		undone := at >= rec.done && p.verdict != trustedNew
		sum.add(p.verdict, undone)
		where := fmt.Sprintf("%s, seed %d, point %d (the command: %d to %d), %s", who.name, seed, at, rec.start, rec.done, lost)
		switch {
		case who.name == intact.name && p.verdict.isBad(), who.name == synced.name && (p.verdict.isBad() || undone):
			t.Logf("%s: %s: %s", where, p.verdict, p.found)
			g.keep(t, left, where)
		case p.verdict >= damaged:
			t.Logf("%s: %s: %s", where, p.verdict, p.found)
		}
	}
}

// places gives n places behind from and up to to: one at random in each nth
// part, the last at the end.
func places(rng *rand.Rand, from, to, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + int(float64(to-from)*(float64(i)+rng.Float64())/float64(n))
	}
	out[n-1] = to
	return out
}
