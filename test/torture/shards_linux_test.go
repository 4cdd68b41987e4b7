// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// step is the command line of shard i of so many or, behind the last, of the commit.
func (s subject) step(bin string, i, of int) *exec.Cmd {
	cmd := exec.Command(bin, "-q", "--label", newLabel)
	if i < of {
		cmd.Args = append(cmd.Args, "--shard", fmt.Sprintf("%d/%d", i, of), s.root)
	} else {
		cmd.Args = append(cmd.Args, "--commit-shards", strconv.Itoa(of), s.root)
	}
	return cmd
}

// fresh gives every entry the old label, and takes off what shards have left.
func (s subject) fresh(t testing.TB, of int) {
	t.Helper()
	s.paint(t, oldLabel)
	names := []string{"trusted.fastlabel.seal"}
	for i := range of {
		names = append(names, fmt.Sprintf("trusted.fastlabel.shard.%d", i))
	}
	for _, name := range names {
		if err := unix.Removexattr(s.root, name); err != nil && !errors.Is(err, unix.ENODATA) {
			t.Fatal(err)
		}
	}
}

// TestKillShards kills one of three shards, or the commit, before each call N that reads
// or writes a label or waits for the disk. Whatever N: the root vouches for nothing that
// not every entry has, also after a commit that nobody should have asked for; and all
// steps again complete.
func TestKillShards(t *testing.T) {
	const of = 3
	for _, p := range patient {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := plant(t, p.fs, p.text)
			r := row{check: "R1 kill -9 of a shard before call N", where: p.name + ", " + p.fs, note: "a second reading of the root heals it all, or one shard has all"}
			points := pick(8, 300, 2000)
			for i := range points {
				r.runs++
				if !s.survivesShards(t, of, i, points) {
					r.bad++
				}
			}
			if p.name == "mixed" {
				r.control, r.note = "a commit without shard 1", ""
			}
			for r.control != "" && r.controlRuns < 4 {
				r.controlRuns++
				if s.shardKilled(t, broken(t, "shard-missing"), 1, of, 5); s.lies(t) {
					r.controlBad++
				}
			}
			r.add(t)
		})
	}
}

// shardKilled has a step killed before its call n, and those before and behind it done.
func (s subject) shardKilled(t *testing.T, bin string, victim, of, n int) {
	t.Helper()
	s.fresh(t, of)
	for i := range of + 1 {
		if i == victim {
			s.killed(t, s.step(bin, i, of), n)
			continue
		}
		if out, err := s.step(bin, i, of).CombinedOutput(); err != nil && i < of {
			t.Errorf("step %d of %d: %v\n%s", i, of, err, out)
		}
	}
}

// survivesShards is one point of so many.
func (s subject) survivesShards(t *testing.T, of, i, points int) bool {
	t.Helper()
	bin, victim := fastlabel(t), i%(of+1)
	s.fresh(t, of)
	for j := range victim {
		if out, err := s.step(bin, j, of).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	calls := s.killed(t, s.step(bin, victim, of), 0).Calls
	n := 1 + i*calls/points
	s.shardKilled(t, bin, victim, of, n)
	if s.lies(t) {
		t.Errorf("step %d killed before call %d of %d: the root says %s of %v", victim, n, calls, read(t, s.root), s.bearing(t))
		return false
	}
	for j := range of + 1 {
		if out, err := s.step(bin, j, of).CombinedOutput(); err != nil {
			t.Errorf("step %d, after step %d was killed before call %d: %v\n%s", j, victim, n, err, out)
			return false
		}
		if s.lies(t) {
			t.Errorf("after step %d the root says %s of %v", j, read(t, s.root), s.bearing(t))
			return false
		}
	}
	return s.bearing(t)[newLabel] == len(s.paths)
}

// TestShardsLarge labels a large tree by 1, 3 and 8 shards at once, each with a /run of
// its own, as nodes have: together they meet each entry once.
func TestShardsLarge(t *testing.T) {
	treetest.Need(t, "root")
	n := pick(100, 10_000, 10_000)
	s := plant(t, "tmpfs", fmt.Sprintf("default label=%s\ndir a\nfile a/f%%05d x%d\ndir b%%02d x19\ndir c/d/e\nfile c/d/e/f%%05d x%d\nfile c/g%%05d x%d\n", oldLabel, 10*n, 10*n, 10*n))
	for _, of := range []int{1, 3, 8} {
		r := row{check: "R5 shards at once", where: fmt.Sprintf("%d entries, %d shards", len(s.paths), of), runs: of}
		s.fresh(t, of)
		seen := make([]int64, of+1)
		var all sync.WaitGroup
		for i := range of {
			all.Go(func() { seen[i] = s.apart(t, i, of) })
		}
		all.Wait()
		if read(t, s.root) == newLabel || s.lies(t) {
			r.bad++
		}
		seen[of] = s.apart(t, of, of)
		sum := int64(0)
		for _, n := range seen {
			sum += n
		}
		if sum != int64(len(s.paths)) || s.bearing(t)[newLabel] != len(s.paths) {
			t.Errorf("%d shards met %v, of %d", of, seen, len(s.paths))
			r.bad++
		}
		r.note = fmt.Sprintf("each met %v", seen)
		r.add(t)
	}
}

// apart does a step with a /run of its own until it is done, and says how many entries it met.
func (s subject) apart(t *testing.T, i, of int) int64 {
	t.Helper()
	for {
		cmd := s.step(fastlabel(t), i, of)
		cmd = exec.Command("unshare", append([]string{"-m", "sh", "-c", `mount -t tmpfs none /run && exec "$@"`, "sh"}, append(cmd.Args, "--json")...)...)
		out, err := cmd.Output()
		var summary struct {
			Seen int64 `json:"seen"`
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if wrong := json.Unmarshal([]byte(lines[len(lines)-1]), &summary); wrong != nil {
			t.Errorf("%v, %v: %s", err, wrong, out)
			return 0
		}
		if err == nil {
			return summary.Seen
		}
		if !strings.Contains(string(out), "another relabel seems to be at work") {
			t.Errorf("step %d of %d: %v\n%s", i, of, err, out)
			return 0
		}
	}
}
