// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// recorder labels by the binary, and records what was there, each run in a file of
// its own on the other filesystem of that disk: what takes the labels to the disk,
// such as another's fsync, leaves that alone.
func recorder(name string, binary func(t *testing.T) string) relabeller {
	runs := 0
	return relabeller{name, func(t *testing.T, root string) *exec.Cmd {
		runs++
		file := filepath.Join(root, "../../records", fmt.Sprintf("record-%06d", runs))
		return exec.Command(binary(t), "-q", "--record", file, "--label", newLabel, root)
	}}
}

// TestUndoPowerLoss cuts the power at points between the command's start and a
// little after its end, loses at random what was not flushed by then, and has
// fastlabel restore put back what is on record, the last run's first: whatever of
// the labels had reached the disk, the tree then has what it had.
func TestUndoPowerLoss(t *testing.T) {
	treetest.Need(t, "root", "ext4", "xfs", "btrfs", "tmpfs", "fuse")
	for _, v := range volumes {
		if len(v.fsck) > 0 {
			continue // without a journal a file's name may be lost with all that is in it
		}
		t.Run(v.name, func(t *testing.T) {
			t.Parallel() // most of the time is waiting for disks
			v.records = 32
			g := grow(t, v)
			ours, points := g.undone(t, recorder("fastlabel --record", func(t *testing.T) string { return fastlabel(t) }), pick(15, 300, 2000), false)
			r := row{check: "R2 power loss, then restore", where: v.name, runs: points, bad: ours}
			r.control = "record-unsynced"
			r.controlBad, r.controlRuns = g.undone(t, recorder(r.control, func(t *testing.T) string { return broken(t, r.control) }), pick(100, 500, 2000), true)
			r.add(t)
		})
	}
}

// undone attacks a relabeller at so many points, or only until one of them is bad, and says
// at how many restore did not bring back all.
func (g *ground) undone(t *testing.T, who relabeller, most int, first bool) (bad, points int) {
	t.Helper()
	for seed := uint64(1); points < most; seed++ {
		rng := rand.New(rand.NewPCG(seed, 0))
		rec := g.record(t, who, seed, rng)
		r := newReplay(g.pages, rec.log)
		for _, at := range places(rng, rec.start, rec.end, 5) {
			r.to(at)
			left, lost := r.cut(rng)
			points++
			p := g.boot(t, left, func(string) point { return g.restored(t) })
			if p.verdict == vouchesOld {
				continue
			}
			bad++
			if first {
				return bad, points
			}
			where := fmt.Sprintf("%s, seed %d, point %d (the command: %d to %d), %s", who.name, seed, at, rec.start, rec.done, lost)
			t.Errorf("%s: %s: %s", where, p.verdict, p.found)
			g.keep(t, left, where)
		}
	}
	return bad, points
}

// restored puts back what the records say, and judges what the tree has then.
func (g *ground) restored(t *testing.T) point {
	t.Helper()
	volume, where := g.mounts()
	records, err := filepath.Glob(filepath.Join(where, "record-*"))
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for i := len(records) - 1; i >= 0; i-- { // Glob sorts them
		out, err := exec.Command(fastlabel(t), "restore", "-q", "--partial", records[i]).CombinedOutput()
		said += fmt.Sprintf("; restore %d: %v %s", i+1, err, out)
	}
	p, _ := g.find(filepath.Join(volume, "root"))
	p.found += said
	return p
}
