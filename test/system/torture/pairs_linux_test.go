// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// pair is what two relabels of one tree, begun at once, have left.
type pair struct {
	codes  [2]int
	labels map[string]int
	waited bool // one told that it waits for the other
}

// whole reports whether one has won whole.
func (p pair) whole() bool { return len(p.labels) == 1 && p.labels[oldLabel] == 0 }

// ordered reports whether one came after the other, and both completed.
func (p pair) ordered() bool { return p.whole() && p.codes == [2]int{} }

// TestPairs relabels one volume to two labels at once (R5).
func TestPairs(t *testing.T) {
	treetest.Need(t, "root")
	filesystems := treetest.Filesystems(t)
	r := row{
		check: "R5 two relabels at once: one wins whole", where: fsNames(filesystems), runs: pick(10, 100, 500),
		control: "go-selinux, twice",
	}
	dirs := make([]string, len(filesystems))
	for i, f := range filesystems {
		dirs[i] = filepath.Join(f.Dir(t), "volume")
		treetest.Build(t, dirs[i], treetest.Text(t, pairTree))
	}
	one := func(i int, stopped bool, command func(i int, dir string) [2]*exec.Cmd) pair {
		return relabelTwice(t, dirs[i%len(dirs)], stopped, command(i, dirs[i%len(dirs)]))
	}
	waited := 0
	for i := range r.runs {
		p := one(i, i/4%2 == 1, func(i int, dir string) [2]*exec.Cmd { return commands(fastlabel(t), i, dir) })
		if p.waited {
			waited++
		}
		if !p.ordered() {
			r.bad++
			t.Logf("pair %d on %s: %+v", i, filesystems[i%len(dirs)].Name, p)
		}
	}
	if 2*waited < r.runs {
		t.Errorf("of %d pairs only %d were at work at once", r.runs, waited)
	}
	r.note = fmt.Sprintf("one waited for the other in %d", waited)
	exits := 0
	for ; r.controlRuns < pick(10, 40, 100) || r.controlBad == 0 && r.controlRuns < 100; r.controlRuns++ {
		p := one(r.controlRuns, false, func(_ int, dir string) [2]*exec.Cmd {
			return [2]*exec.Cmd{gochcon(newLabel, dir), gochcon(nextLabel, dir)}
		})
		if !p.whole() {
			r.controlBad++
			if p.codes == [2]int{} {
				exits++
			}
		}
	}
	r.note += fmt.Sprintf("; go-selinux said 0 twice in %d of its %d", exits, r.controlBad)
	r.add(t)

	// Without the lock a pair ends well if one has ended before the other begins;
	// else the first finds the root's claim replaced, and fails. So it is tried
	// until a few have fallen.
	m := row{check: "R5 the same, a mutant", where: r.where, control: "lock-skipped", note: "tried until some have fallen"}
	bin := broken(t, "lock-skipped")
	for m.runs < pick(80, 200, 400) && m.controlBad < pick(2, 5, 10) {
		p := one(m.runs, m.runs/4%2 == 1, func(i int, dir string) [2]*exec.Cmd { return commands(bin, i, dir) })
		if m.runs++; !p.ordered() {
			m.controlBad++
		}
	}
	m.controlRuns = m.runs
	m.add(t)
}

func fsNames(all []treetest.FS) string {
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// pairTree takes a few milliseconds.
const pairTree = "dir .\nfile a%03d x1200\ndir d\nfile d/b%03d x1200\ndir d/e\nfile d/e/c%03d x1200\ndir f\nfile f/g%03d x1200\n"

// commands are the two. The first is slow, for it reads every label before it
// writes one, so that the second, if nothing held it, would overtake it.
func commands(bin string, i int, dir string) [2]*exec.Cmd {
	sync := "--sync" // the disk keeps the two apart
	if i/8%2 == 1 {
		sync = "--sync=false"
	}
	return [2]*exec.Cmd{
		exec.Command(bin, "-T", "1", "--exact", sync, "--label", newLabel, dir),
		exec.Command(bin, "-T", strconv.Itoa(1+i%3), sync, "--label", nextLabel, dir),
	}
}

// relabelTwice sets the old label and lets both loose: nearly at once, or if
// stopped, the second while the first stands still in the midst of its work,
// until the second has ended or has waited for long.
func relabelTwice(t testing.TB, dir string, stopped bool, cmds [2]*exec.Cmd) pair {
	t.Helper()
	treetest.Label(t, dir, oldLabel)
	p := pair{labels: map[string]int{}}
	var all sync.WaitGroup
	var out [2]func() string
	begin := func(i int) (ended chan struct{}) {
		out[i], ended = collect(t, cmds[i]), make(chan struct{})
		treetest.Check(t, cmds[i].Start())
		all.Go(func() {
			_ = cmds[i].Wait() // its exit code is looked at
			close(ended)
		})
		return ended
	}
	first := begin(0)
	if stopped {
		have := make([]byte, len(oldLabel))
		for working := false; !working; { // until it is deeper than the root
			n, err := unix.Lgetxattr(dir+"/d", treetest.Attr, have)
			select {
			case <-first:
				working = true
			default:
				working = err != nil || string(have[:n]) != oldLabel
			}
		}
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
		_ = cmds[0].Process.Signal(unix.SIGSTOP) // it may have ended
	}
	if !stopped {
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
	}
	second := begin(1)
	if stopped {
		select {
		case <-second:
		case <-time.After(100 * time.Millisecond):
		}
		_ = cmds[0].Process.Signal(unix.SIGCONT)
	}
	all.Wait()
	for i := range cmds {
		p.codes[i] = cmds[i].ProcessState.ExitCode()
		p.waited = p.waited || strings.Contains(out[i](), "waiting for another relabel")
	}
	for _, l := range treetest.Read(t, dir) {
		p.labels[l]++
	}
	return p
}
