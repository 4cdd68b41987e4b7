// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	// moved begins the names of what a writer has renamed, in its directory.
	moved = "moved-"
	// writers create at once; each thinks now and then, or on two processors
	// the command would hardly get its turn.
	writers = 3
	// overlapping is how many creations a run must see, on average, between
	// the seal on the root and its label.
	overlapping = 10
)

// liveRun is one relabel beside writers.
type liveRun struct {
	code    int
	entries int // at the end
	missed  int // that do not have the label
	renamed int // such ones that were renamed during the run, or lie beneath what was
	inRoot  int // those among them that are the root's own entries
	during  int // created between the first and the last label on the root
	example string
}

// TestCreators relabels a tree in which others create files, links and
// directories, rename and remove, all the while (R4). The filesystem inherits
// labels, as SELinux has it.
func TestCreators(t *testing.T) {
	treetest.Need(t, "root", "fuse", "tmpfs")
	r := row{check: "R4 creators during the run: 0 unlabelled", where: "FUSE that inherits", runs: pick(15, 1000, 5000)}
	var m *fuseMount
	during, missed, entries, renamed, inRoot := 0, 0, 0, 0, 0
	for i := range r.runs {
		threads := 1 + i%4
		l := live(t, onFUSE(t, &m, i), uint64(i), func(root string) *exec.Cmd {
			return exec.Command(fastlabel(t), "-q", "-T", strconv.Itoa(threads), "--label", newLabel, root)
		})
		during, entries, renamed, inRoot = during+l.during, entries+l.entries, renamed+l.renamed, inRoot+l.inRoot
		if missed += l.missed - l.renamed; l.missed > l.renamed || l.code != 0 {
			r.bad++
			t.Logf("run %d, %d threads: code %d, %d of %d missed, such as %s", i, threads, l.code, l.missed-l.renamed, l.entries, l.example)
		}
	}
	r.note = fmt.Sprintf("%d entries, %d missed; %d created between seal and label; of those renamed during it %d missed, %d of them in the root",
		entries, missed, during, renamed, inRoot)
	if during < overlapping*r.runs {
		t.Errorf("only %d entries were created during %d runs", during, r.runs)
	}
	for i, peer := range []string{"go-selinux", "reread-dropped", "label-after-read"} {
		r := r
		if i > 0 { // once is enough for our own figures
			r.runs, r.bad, r.note = 0, 0, ""
		}
		r.control = peer
		lost := 0
		for ; r.controlRuns < pick(5, 100, 200) || r.controlBad == 0 && r.controlRuns < 200; r.controlRuns++ {
			l := live(t, onFUSE(t, &m, r.controlRuns), uint64(r.controlRuns), func(root string) *exec.Cmd {
				if peer == "go-selinux" {
					return gochcon(newLabel, root)
				}
				return exec.Command(broken(t, peer), "-q", "-T", strconv.Itoa(1+r.controlRuns%4), "--label", newLabel, root)
			})
			if lost += l.missed - l.renamed; l.missed > l.renamed {
				r.controlBad++
			}
		}
		t.Logf("%s missed %d entries in %d of %d runs", peer, lost, r.controlBad, r.controlRuns)
		if i > 0 {
			r.check, r.runs, r.note = "R4 the same, a mutant", r.controlRuns, fmt.Sprintf("it missed %d entries", lost)
		}
		r.add(t)
	}
}

// onFUSE gives the filesystem for run i: a new one now and then, which costs
// less than to remove the trees.
func onFUSE(t *testing.T, m **fuseMount, i int) *fuseMount {
	t.Helper()
	if i%50 == 0 {
		if *m != nil {
			(*m).end(t)
		}
		*m = mountFUSE(t, time.Hour)
	}
	return *m
}

// live builds a tree, lets writers loose on it, and runs the command.
func live(t testing.TB, m *fuseMount, seed uint64, command func(root string) *exec.Cmd) liveRun {
	t.Helper()
	name := fmt.Sprintf("run-%d", seed)
	root := filepath.Join(m.dir, name)
	must(t, os.Mkdir(root, 0o755))
	treetest.Set(t, root, ".", oldLabel)
	// The directories that stay where they are. The root is read before
	// the walk goes deeper, and there is something deeper to go to.
	dirs := []string{root}
	for i := range 4 {
		dir := fmt.Sprintf("%s/d%d", root, i)
		dirs = append(dirs, dir, dir+"/e", dir+"/e/f")
		must(t, os.MkdirAll(dir+"/e/f", 0o755))
		for j := range 12 {
			must(t, unix.Mknod(fmt.Sprintf("%s/e/f/%02d", dir, j), unix.S_IFREG|0o644, 0))
			must(t, unix.Mknod(fmt.Sprintf("%s/%02d", dir, j), unix.S_IFREG|0o644, 0))
		}
	}
	m.ask(t, "watch %s", name)

	var stop atomic.Bool
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			x := &writer{rng: rand.New(rand.NewPCG(seed, uint64(w))), name: fmt.Sprintf("w%d-", w), dirs: dirs}
			for !stop.Load() {
				if err := x.step(); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("writer: %v", err)
					return
				}
				time.Sleep(time.Duration(x.rng.IntN(300)) * time.Microsecond)
			}
		})
	}
	cmd := command(root)
	out, err := cmd.CombinedOutput()
	stop.Store(true)
	all.Wait()
	l := liveRun{code: cmd.ProcessState.ExitCode()}
	if err != nil {
		t.Logf("%s: %v\n%s", filepath.Base(cmd.Path), err, brief(string(out)))
	}
	l.during, _ = strconv.Atoi(m.ask(t, "overlap"))
	for p, label := range treetest.Read(t, root) {
		l.entries++
		if label == newLabel {
			continue
		}
		l.missed++
		if strings.Contains("/"+p, "/"+moved) {
			if l.renamed++; !strings.Contains(p, "/") {
				l.inRoot++
			}
		} else {
			l.example = fmt.Sprintf("%s (%s)", p, label)
		}
	}
	return l
}

// writer creates, renames and removes. It renames within a directory and
// removes only what it has made itself.
type writer struct {
	rng  *rand.Rand
	name string
	n    int
	dirs []string // where it creates; its own come and go at the end
	mine []string // what it may rename or remove
}

func (w *writer) step() error {
	w.n++
	dir := w.dirs[w.rng.IntN(len(w.dirs))]
	if w.rng.IntN(3) == 0 {
		dir = w.dirs[0] // the root, which is labelled last
	}
	at := filepath.Join(dir, w.name+strconv.Itoa(w.n))
	switch what := w.rng.IntN(20); {
	case what < 8:
		w.mine = append(w.mine, at)
		return os.WriteFile(at, nil, 0o644)
	case what < 11:
		w.mine = append(w.mine, at)
		return os.Symlink("nowhere", at)
	case what < 14: // stays, and others are made in it
		w.dirs = append(w.dirs, at)
		return os.Mkdir(at, 0o755)
	case what < 16: // a whole tree
		if err := os.MkdirAll(at+"/a/b", 0o755); err != nil {
			return err
		}
		w.mine = append(w.mine, at)
		return errors.Join(os.WriteFile(at+"/a/b/c", nil, 0o644), os.WriteFile(at+"/a/d", nil, 0o644), os.Symlink("c", at+"/a/b/l"))
	case len(w.mine) == 0:
		return nil
	}
	i := w.rng.IntN(len(w.mine))
	what := w.mine[i]
	w.mine = append(w.mine[:i], w.mine[i+1:]...)
	if w.n%2 == 0 {
		return os.RemoveAll(what)
	}
	to := filepath.Join(filepath.Dir(what), moved+filepath.Base(what))
	return os.Rename(what, to)
}
