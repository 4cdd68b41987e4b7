// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	// raceHangs is how long no run takes: they take some ten milliseconds.
	raceHangs = treetest.Patience
	// scarce is the limit on open files that leaves the walk three
	// directories to keep open.
	scarce = "28"
	// A control may need this long to fall, on a machine that does other
	// things too; one that falls at once goes on a little, so that it can
	// be told how often.
	preyMost, preyLeast = 5 * time.Minute, 300 * time.Millisecond
)

// lasting is how long an attack on each way takes. What confines a walk is the
// same in the first three ways, with other calls behind it: of those, one has
// three seconds in a short run.
func lasting(way string) time.Duration {
	switch way {
	case setxattrat, openat2, mountid:
		return pick(3*time.Second, time.Minute, 5*time.Minute)
	}
	return pick(500*time.Millisecond, time.Minute, 5*time.Minute)
}

// TestRace: whatever its owner does to the tree during a run, nothing outside of
// it is touched (S1). The short run takes each mode and way on one filesystem
// only, and each mode on all three. As many modes are at work at a time as there
// are processors, so that a full run fits into 75 minutes on two.
func TestRace(t *testing.T) {
	treetest.Need(t, "root", "seccomp")
	bin := fastlabel(t)
	disks := slices.DeleteFunc(treetest.Filesystems(t), func(fs treetest.FS) bool { return fs.Name == "tmpfs" })
	for i, r := range races {
		t.Run(r.id, func(t *testing.T) {
			t.Parallel()
			for j, fs := range disks {
				t.Run(fs.Name, func(t *testing.T) {
					r.on(t, fs, bin, func(way int) bool { return pick((i+way)%len(disks) == j, true, true) })
				})
			}
		})
	}
}

// on attacks the command on one filesystem, by those ways that are chosen, and
// then the controls.
func (r race) on(t *testing.T, fs treetest.FS, bin string, chosen func(way int) bool) {
	top := r.grow(t, fs)
	out := row{check: "S1 " + r.name}
	var all toll
	var where []string
	for i, w := range ways {
		if !chosen(i) {
			continue
		}
		t.Run(strings.ReplaceAll(w.name, "/", "-"), func(t *testing.T) {
			span := lasting(w.name)
			r.size(t, top, w.name)
			r.calm(t, w, bin, top, newLabel)
			got := r.strike(t, top, span, span, func(n int, label string) *exec.Cmd { return r.command(t, w, bin, n, label, top) }, true)
			t.Logf("%+v", got)
			all.add(got)
			where = append(where, fmt.Sprintf("%s %v", w.name, span))
			r.calm(t, w, bin, top, "system_u:object_r:container_file_t:s0:c7,c8")
		})
	}
	if len(where) == 0 {
		return // -run asks for others
	}
	out.where, out.runs, out.bad = fs.Name+": "+strings.Join(where, ", "), all.runs, all.bad
	var notes []string
	for _, c := range r.preys {
		got := r.hunt(t, c, top, chosen)
		out.controlRuns += got.runs
		out.controlBad += got.bad
		out.control = strings.TrimPrefix(out.control+", "+c.name, ", ")
		notes = append(notes, fmt.Sprintf("%s: first after %v", c.name, got.first.Round(100*time.Microsecond)))
	}
	if r.why != "" {
		notes = append(notes, r.why)
	}
	out.note = strings.Join(notes, "; ")
	out.add(t)
}

// hunt attacks what must fall: in each of its ways that are chosen, at least
// in one.
func (r race) hunt(t *testing.T, c prey, top string, chosen func(way int) bool) toll {
	t.Helper()
	var all toll
	names := slices.DeleteFunc(slices.Clone(c.ways), func(name string) bool {
		return !chosen(slices.IndexFunc(ways, func(w way) bool { return w.name == name }))
	})
	switch {
	case c.peer != nil:
		names = []string{""}
	case len(names) == 0:
		names = c.ways[:1]
	}
	for _, name := range names {
		command := func(_ int, label string) *exec.Cmd { return c.peer(label, filepath.Join(top, "root")) }
		if c.peer == nil {
			bin := broken(t, c.mutant)
			w := ways[slices.IndexFunc(ways, func(w way) bool { return w.name == name })]
			command = func(n int, label string) *exec.Cmd { return r.command(t, w, bin, n, label, top) }
		}
		r.size(t, top, name)
		got := r.strike(t, top, preyLeast, preyMost, command, false)
		t.Logf("control %s %s: %+v", c.name, name, got)
		if got.bad == 0 {
			t.Errorf("the control %s %s stood in %d runs: the attack proves nothing", c.name, name, got.runs)
		}
		all.add(got)
	}
	return all
}

// command is the nth run by the way w.
func (r race) command(t *testing.T, w way, bin string, n int, label, top string) *exec.Cmd {
	args := []string{bin, "--json", "--label", label}
	if r.mounts {
		args = append(args, "-x")
	}
	if r.few && n%2 == 1 {
		args = append([]string{"prlimit", "--nofile=" + scarce}, args...)
	}
	return w.on(t, exec.Command(args[0], append(args[1:], filepath.Join(top, "root"))...))
}

// calm runs the command without an attacker: it goes the way it should, and
// labels the tree.
func (r race) calm(t *testing.T, w way, bin, top, label string) {
	t.Helper()
	out, err := r.command(t, w, bin, 0, label, top).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(w.name)) || differing(t, filepath.Join(top, "root"), label) > 0 {
		t.Fatalf("%s without an attacker: %v\n%s", w.name, err, out)
	}
}

// toll is what an attack came to.
type toll struct {
	runs, bad int           // bad touched the outside
	first     time.Duration // until the first bad one
}

func (a *toll) add(b toll) {
	if b.bad > 0 && (a.bad == 0 || b.first < a.first) {
		a.first = b.first
	}
	a.runs, a.bad = a.runs+b.runs, a.bad+b.bad
}

// strike turns the tree while command runs over and over, for least, and on
// until most as long as nothing outside was touched. A strict command may
// fail, but neither crash nor hang, and its counts add up.
func (r race) strike(t *testing.T, top string, least, most time.Duration, command func(n int, label string) *exec.Cmd, strict bool) toll {
	t.Helper()
	before := outside(t, top)
	var sum toll
	begin := time.Now()
	a := r.attack(top)
	for took := time.Duration(0); took < least || took < most && sum.bad == 0; sum.runs++ {
		code, text := within(raceHangs, command(sum.runs, []string{newLabel, nextLabel}[sum.runs%2]))
		if what := summaryWrong(string(text), filepath.Join(top, "root"), code); strict && (code != 0 && code != 1 || what != "") {
			t.Errorf("run %d: exit code %d, summary: %s\n%s", sum.runs, code, what, text)
		}
		took = time.Since(begin)
		if !touched(before) {
			continue
		}
		now := outside(t, top)
		if sum.bad++; sum.bad == 1 {
			sum.first = took
			if strict {
				t.Errorf("run %d, outside:\n%s\n%s", sum.runs, strings.Join(treetest.Diff(before, now), "\n"), text)
			}
		}
		before = now
	}
	a.end(t)
	// touched looks at labels only; this sees one written that was there.
	if d := treetest.Diff(before, outside(t, top)); len(d) > 0 {
		if sum.bad++; sum.bad == 1 {
			sum.first = time.Since(begin)
		}
		if strict {
			t.Errorf("outside, in the end:\n%s", strings.Join(d, "\n"))
		}
	}
	return sum
}

// touched tells, quickly, whether a label is another than before.
func touched(before map[string]treetest.Item) bool {
	var buf [256]byte
	for p, it := range before {
		n, err := unix.Lgetxattr(p, treetest.Attr, buf[:])
		label := string(buf[:max(n, 0)])
		if errors.Is(err, unix.ENODATA) {
			label, err = treetest.None, nil
		}
		if err != nil || label != it.Label {
			return true
		}
	}
	return false
}

// within runs cmd and gives its exit code, -1 if a signal ended it or it hung.
func within(most time.Duration, cmd *exec.Cmd) (int, []byte) {
	ctx, stop := context.WithTimeout(context.Background(), most)
	defer stop()
	bound := exec.CommandContext(ctx, cmd.Path)
	bound.Args, bound.Env, bound.Err, bound.WaitDelay = cmd.Args, cmd.Env, cmd.Err, time.Second
	out, err := bound.CombinedOutput()
	if bound.ProcessState == nil {
		return -1, []byte(err.Error())
	}
	return bound.ProcessState.ExitCode(), out
}
