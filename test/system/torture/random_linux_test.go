// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestRandomTrees labels twins of random trees, one with the command and one
// with "chcon -R -h" (Q1). TORTURE_SEED runs one tree again.
func TestRandomTrees(t *testing.T) {
	treetest.Need(t, "root", "seccomp", "chcon")
	filesystems := treetest.Filesystems(t)
	r := row{
		check: "Q1 random trees, against chcon -R -h", where: fsNames(filesystems) + "; all ways", runs: pick(40, 1000, 5000),
		control: "skip-links", controlRuns: pick(8, 40, 100),
	}
	first := uint64(time.Now().UnixNano())
	if text := os.Getenv("TORTURE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		must(t, err)
		first, r.runs = seed, 1
	}
	dirs := make([]string, len(filesystems))
	for i, f := range filesystems {
		dirs[i] = f.Dir(t)
	}
	entries, deepest, kinds := 0, 0, map[treetest.Kind]int{}
	for i := range r.runs + r.controlRuns {
		seed := first + uint64(i)
		bin := fastlabel(t)
		if i >= r.runs {
			bin = broken(t, "skip-links")
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		at := int(seed % uint64(len(dirs)))
		tree := randomTree(rng, filesystems[at].Name)
		diff, args := twins(t, bin, dirs[at], tree, rng)
		switch {
		case i >= r.runs:
			if len(diff) > 0 {
				r.controlBad++
			}
			continue
		case len(diff) > 0:
			r.bad++
			t.Logf("TORTURE_SEED=%d on %s, %v:\n%s", seed, filesystems[at].Name, args, strings.Join(diff, "\n"))
		}
		for _, e := range tree.Entries {
			entries++
			kinds[e.Kind]++
			deepest = max(deepest, strings.Count(e.Path, "/")+1)
		}
	}
	r.note = fmt.Sprintf("%d entries, up to %d deep, of %d kinds; first seed %d", entries, deepest, len(kinds), first)
	if os.Getenv("TORTURE_SEED") == "" && len(kinds) != 8 {
		t.Errorf("kinds: %v", kinds)
	}
	r.add(t)
}

// twins builds the tree twice, labels the one with the command and the other
// with chcon, and gives what differs.
func twins(t testing.TB, bin, dir string, tree *treetest.Tree, rng *rand.Rand) (diff, args []string) {
	t.Helper()
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	for _, d := range []string{ours, theirs} {
		treetest.Build(t, d, tree)
		defer func() { must(t, os.RemoveAll(d)) }()
	}
	types := treetest.Types(t, ours)
	w := ways[rng.IntN(len(ways))]
	args = []string{"-q", "-T", strconv.Itoa(1 + rng.IntN(8)), "--label", newLabel}
	for _, flag := range []string{"--exact", "--no-seal", "--sync", "-x"} {
		if rng.IntN(3) == 0 {
			args = append(args, flag)
		}
	}
	out, err := w.on(t, exec.Command(bin, append(args, ours)...)).CombinedOutput()
	args = append(args, w.name)
	if err != nil {
		diff = append(diff, fmt.Sprintf("%v: %s", err, out))
	}
	if out, err := exec.Command("chcon", "-R", "-h", newLabel, theirs).CombinedOutput(); err != nil {
		diff = append(diff, fmt.Sprintf("chcon: %v: %s", err, out))
	}
	diff = append(diff, treetest.Diff(treetest.Read(t, ours), treetest.Read(t, theirs))...)
	return append(diff, treetest.Diff(types, treetest.Types(t, ours))...), args
}

// randomTree makes up a tree: mostly small, now and then deep or wide.
func randomTree(rng *rand.Rand, fs string) *treetest.Tree {
	g := &growing{rng: rng, fs: fs, names: map[string]bool{}, dirs: []string{"."}}
	g.tree.Name = "random"
	g.add(treetest.Entry{Kind: treetest.Dir, Path: "."})
	switch rng.IntN(6) {
	case 0: // deep: longer than PATH_MAX, if the names are
		at := "."
		for range 1 + rng.IntN(40) {
			at = g.dir(at)
		}
	case 1: // wide
		at := g.dir(".")
		for range rng.IntN(600) {
			g.add(treetest.Entry{Kind: treetest.File, Path: g.name(at)})
		}
	}
	for range rng.IntN(120) {
		g.grow()
	}
	return &g.tree
}

type growing struct {
	rng   *rand.Rand
	fs    string
	tree  treetest.Tree
	names map[string]bool
	dirs  []string
	files []string // what a hard link can be made of
}

func (g *growing) add(e treetest.Entry) {
	if e.Kind != treetest.Hardlink {
		e.Label = g.label()
	}
	g.tree.Entries = append(g.tree.Entries, e)
}

func (g *growing) dir(in string) string {
	p := g.name(in)
	g.add(treetest.Entry{Kind: treetest.Dir, Path: p})
	g.dirs = append(g.dirs, p)
	return p
}

// grow adds one entry somewhere.
func (g *growing) grow() {
	in := g.dirs[g.rng.IntN(len(g.dirs))]
	if g.rng.IntN(2) == 0 {
		in = g.dirs[len(g.dirs)-1]
	}
	p := g.name(in)
	e := treetest.Entry{Path: p}
	switch what := g.rng.IntN(16); {
	case what < 4 && strings.Count(in, "/") < 39:
		g.dir(in)
		return
	case what < 7:
		e.Kind = treetest.File
	case what < 10:
		e.Kind, e.Target = treetest.Link, g.target(p)
	case what < 12:
		if len(g.files) > 0 {
			e.Kind, e.Target = treetest.Hardlink, g.files[g.rng.IntN(len(g.files))]
			break
		}
		fallthrough
	case what < 13:
		e.Kind = treetest.Fifo
	case what < 14:
		e.Kind = treetest.Socket
	case what < 15:
		e.Kind, e.Major, e.Minor = treetest.Char, uint32(g.rng.IntN(512)), uint32(g.rng.IntN(512))
	default:
		e.Kind, e.Major, e.Minor = treetest.Block, uint32(g.rng.IntN(512)), uint32(g.rng.IntN(512))
	}
	// A hard link is made by paths, which must not pass PATH_MAX.
	if e.Kind != treetest.Hardlink && len(p) < 2000 {
		g.files = append(g.files, p)
	}
	g.add(e)
}

// longestLink is what a link on XFS can hold.
const longestLink = 1023

// target is where a link leads: nowhere, out of the tree, to another entry, to
// itself, upwards.
func (g *growing) target(self string) string {
	switch g.rng.IntN(7) {
	case 0:
		return "nowhere/at/all"
	case 1:
		return "/etc/passwd"
	case 2:
		return path.Base(self)
	case 3:
		return ".."
	case 4:
		return "."
	case 5:
		return strings.Repeat("x", 1+g.rng.IntN(longestLink))
	}
	e := g.tree.Entries[g.rng.IntN(len(g.tree.Entries))]
	to := strings.Repeat("../", strings.Count(self, "/")) + e.Path
	return to[:min(len(to), longestLink)]
}

// name makes a new name in a directory.
func (g *growing) name(in string) string {
	odd := treetest.AwkwardNames()
	for {
		var name string
		switch g.rng.IntN(4) {
		case 0:
			name = odd[g.rng.IntN(len(odd))]
		case 1:
			name = g.bytes(1 + g.rng.IntN(255))
		case 2:
			name = g.bytes(255)
		default:
			name = strconv.Itoa(g.rng.IntN(1e6))
		}
		p := path.Join(in, name)
		if name != "." && name != ".." && !g.names[p] {
			g.names[p] = true
			return p
		}
	}
}

func (g *growing) bytes(n int) string {
	b := make([]byte, n)
	for i := range b {
		for b[i] == 0 || b[i] == '/' {
			b[i] = byte(g.rng.IntN(256))
		}
	}
	return string(b)
}

// label is what an entry has at first.
func (g *growing) label() treetest.Context {
	given := func(s string) treetest.Context { return treetest.Context{Says: treetest.Given, Raw: s} }
	switch g.rng.IntN(12) {
	case 0:
		return treetest.Context{Says: treetest.Absent}
	case 1:
		return given(newLabel)
	case 2:
		return given(newLabel + "\x00")
	case 3:
		return given(newLabel + "\x00\x00")
	case 4:
		return given(oldLabel + "\x00")
	case 5:
		return given(g.bytes(1 + g.rng.IntN(64)))
	case 6:
		return given(strings.Repeat("long,", 1+g.rng.IntN(200)))
	case 7:
		return given(newLabel[:g.rng.IntN(len(newLabel))])
	}
	return given(oldLabel)
}
