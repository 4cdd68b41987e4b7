// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// volume is a kind of filesystem whose power is cut.
type volume struct {
	name, kind string
	mib        int64
	mkfs       []string
	fsck       []string // what has to run at the boot before it is mounted
	control    string   // which of the rivals must fall
}

// volumes are those of the bar. Where there is a journal, it keeps the order of
// labels by itself, and builds without syncfs stand: only a run that seals nothing
// fails. Nothing is initialised lazily: that would write to the log.
var volumes = []volume{
	{
		name: "ext4", kind: "ext4", mib: 256, control: "go-selinux",
		mkfs: []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"},
	},
	{
		name: "ext4 without journal", kind: "ext4", mib: 256, control: "commit-before-sync",
		mkfs: []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^has_journal", "-E", "lazy_itable_init=0"},
		fsck: []string{"e2fsck", "-f", "-y"},
	},
	{name: "xfs", kind: "xfs", mib: 300, control: "go-selinux", mkfs: []string{"mkfs.xfs", "-q", "-f"}},
	{name: "btrfs", kind: "btrfs", mib: 256, control: "commit-before-sync", mkfs: []string{"mkfs.btrfs", "-q", "-f"}},
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
	// rivals are attacked the same way. The first two break the order that the
	// engine keeps, the next two are told to give it up, and the last one is a
	// peer. The last two seal nothing: the root vouches for the old label until
	// it has the new.
	rivals = []relabeller{
		{"commit-before-sync", func(t *testing.T, root string) *exec.Cmd {
			return exec.Command(broken(t, "commit-before-sync"), "-q", "--label", newLabel, root)
		}},
		{"sync-dropped", func(t *testing.T, root string) *exec.Cmd {
			return exec.Command(broken(t, "sync-dropped"), "-q", "--label", newLabel, root)
		}},
		{"--no-sync", func(t *testing.T, root string) *exec.Cmd {
			return exec.Command(fastlabel(t), "-q", "--no-sync", "--label", newLabel, root)
		}},
		{"--no-seal", func(t *testing.T, root string) *exec.Cmd {
			return exec.Command(fastlabel(t), "-q", "--no-seal", "--label", newLabel, root)
		}},
		{"go-selinux", func(_ *testing.T, root string) *exec.Cmd { return gochcon(newLabel, root) }},
	}
)

// TestPowerLoss cuts the power at points between the command's start and a
// little after its end, loses at random what was not flushed by then, and asks
// the root what it vouches for (R2). All the while an application calls fsync
// on the root: it takes the root's label to the disk by a way that leaves the
// labels beneath it where they are.
func TestPowerLoss(t *testing.T) {
	treetest.Need(t, "root", "ext4", "xfs", "btrfs", "tmpfs", "fuse", "e2fsck")
	for _, v := range volumes {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel() // most of the time is waiting for disks
			powerLoss(t, v)
		})
	}
}

func powerLoss(t *testing.T, v volume) {
	g := grow(t, v)
	points := pick(25, 500, 3000)
	ours := g.attackAll(t, intact, func(s *tally) bool { return s.points < points })
	r := row{check: "R2 power loss, fsync of the root", where: v.name, runs: ours.points, bad: ours.false()}
	r.note = ours.String()
	theirs, others := pick(10, 50, 200), pick(0, 50, 200)
	for _, rival := range rivals {
		if rival.name == v.control {
			// What must fall may be in luck a few times.
			s := g.attackAll(t, rival, func(s *tally) bool {
				return s.points < theirs || s.false() == 0 && s.points < 10*theirs
			})
			r.control, r.controlRuns, r.controlBad = rival.name, s.points, s.false()
		} else if others > 0 {
			s := g.attackAll(t, rival, func(s *tally) bool { return s.points < others })
			r.note += fmt.Sprintf("; %s: %d of %d false", rival.name, s.false(), s.points)
		}
	}
	r.add(t)
	if ours.verdicts[unmountable]+ours.verdicts[damaged]+ours.undone > 0 {
		t.Errorf("%s: %s", v.name, ours)
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
		undone := at >= rec.done && p.verdict != vouchesNew
		sum.add(p.verdict, undone)
		where := fmt.Sprintf("%s, seed %d, point %d (the command: %d to %d), %s", who.name, seed, at, rec.start, rec.done, lost)
		switch {
		case who.name == intact.name && (p.verdict.isBad() || undone):
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
