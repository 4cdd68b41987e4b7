// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// corpus is a tree of directories, one after the other, each with files in it. It is
// always the same for one n.
type corpus struct {
	dir   func(p *planter, i int) string // the path of the i-th directory
	files func(p *planter, i int) int    // how many files the i-th directory has
	file  func(p *planter, k int) string // the name of the k-th file in a directory
}

var corpora = map[string]corpus{
	// Files alone, as in the small volumes of a pod.
	"files": {numbered("."), endless, numbered("f%d")},
	// One directory, names in the order of their making.
	"flat": {numbered("flat"), endless, numbered("file-%08d")},
	// One directory, names like hashes: a content-addressed store.
	"hash": {numbered("store"), endless, func(p *planter, _ int) string {
		return fmt.Sprintf("%016x%016x", p.rand.Uint64(), p.rand.Uint64())
	}},
	// Directories of 19 files, each a volume by itself.
	"volumes": {numbered("pvc-%05d"), func(*planter, int) int { return 19 }, numbered("f%d")},
	// Directories of one to three files, a hundred in each of theirs.
	"tiny": {
		func(_ *planter, i int) string { return fmt.Sprintf("t%06d/d%02d", i/100, i%100) },
		func(p *planter, _ int) int { return 1 + p.rand.IntN(3) },
		numbered("f%d"),
	},
	// Directories whose sizes are lognormal (median 6 files, one in a hundred over 100),
	// each beneath one of those before it, twelve deep at most.
	"realistic": {
		func(p *planter, i int) string {
			above := p.dirs[p.rand.IntN(len(p.dirs))]
			for strings.Count(above, "/") == 12 {
				above = p.dirs[p.rand.IntN(len(p.dirs))]
			}
			return fmt.Sprintf("%s/dir-%x", above, i)
		},
		func(p *planter, _ int) int { return int(math.Exp(1.8 + 1.2*p.rand.NormFloat64())) },
		func(p *planter, k int) string { return fmt.Sprintf("%x-%d.dat", p.rand.Uint32(), k) },
	},
	// Users with cur, new and tmp, long names, some hundreds of messages each.
	"maildir": {
		func(_ *planter, i int) string {
			return fmt.Sprintf("user%05d/%s", i/3, []string{"new", "tmp", "cur"}[i%3])
		},
		func(p *planter, i int) int { return i % 3 / 2 * (50 + p.rand.IntN(700)) },
		func(p *planter, k int) string {
			return fmt.Sprintf("%d.M%dP%d.mail.example,S=%d,W=%d:2,S",
				1700000000+k, p.rand.IntN(1000000), p.rand.IntN(32768), p.rand.IntN(100000), p.rand.IntN(100000))
		},
	},
}

// numbered names by number, if the format has one.
func numbered(format string) func(*planter, int) string {
	if !strings.Contains(format, "%") {
		return func(*planter, int) string { return format }
	}
	return func(_ *planter, i int) string { return fmt.Sprintf(format, i) }
}

func endless(*planter, int) int { return math.MaxInt }

// planter makes a tree.
type planter struct {
	root  string
	rand  *rand.Rand
	dirs  []string // made so far, beneath the root
	count int
}

// plant makes the corpus beneath root and returns how many entries it has: about n.
func plant(root, name string, n int) (int, error) {
	c, ok := corpora[name]
	if !ok {
		return 0, fmt.Errorf("no such corpus: %s", name)
	}
	p := &planter{root: root, rand: rand.New(rand.NewPCG(1, uint64(n))), dirs: []string{"."}}
	for i := 0; p.count < n; i++ {
		dir := c.dir(p, i)
		if err := p.mkdir(dir); err != nil {
			return 0, err
		}
		for k, files := 0, c.files(p, i); k < files && p.count < n; k++ {
			path := filepath.Join(root, dir, c.file(p, k))
			if err := unix.Mknod(path, unix.S_IFREG|0o644, 0); err != nil {
				return 0, &fs.PathError{Op: "mknod", Path: path, Err: err}
			}
			p.count++
		}
	}
	return p.count, nil
}

// mkdir makes a directory, and those above it that are missing.
func (p *planter) mkdir(dir string) error {
	err := os.Mkdir(filepath.Join(p.root, dir), 0o755)
	switch {
	case err == nil:
		p.dirs = append(p.dirs, dir)
		p.count++
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err = p.mkdir(filepath.Dir(dir)); err == nil {
			err = p.mkdir(dir)
		}
	}
	return err
}
