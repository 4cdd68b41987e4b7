// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"
)

// corpora are trees of about n entries, always the same for one n.
var corpora = map[string]func(*planter, int){
	"files":     plantFiles,
	"flat":      plantFlat,
	"fifty":     plantFifty,
	"hash":      plantHash,
	"tiny":      plantTiny,
	"realistic": plantRealistic,
	"maildir":   plantMaildir,
	"volumes":   plantVolumes,
	"system":    plantSystem,
}

// planter makes a tree. The first error stops it.
type planter struct {
	rand  *rand.Rand
	count int
	named []named // of a system
	err   error
}

// plant makes the corpus beneath root and returns how many entries it has. A system goes
// by file contexts, if these are given.
func plant(root, corpus string, n int, contexts string) (int, error) {
	make, ok := corpora[corpus]
	if !ok {
		return 0, fmt.Errorf("no such corpus: %s", corpus)
	}
	p := &planter{rand: rand.New(rand.NewPCG(1, uint64(n)))}
	if contexts != "" {
		var err error
		if p.named, err = namedBy(contexts); err != nil {
			return 0, err
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	if err := os.Chdir(root); err != nil {
		return 0, err
	}
	make(p, n)
	return p.count, errors.Join(p.err, os.Chdir(here))
}

// file makes a file in the working directory or beneath it.
func (p *planter) file(name string) { p.node(name, unix.S_IFREG) }

// node makes a file of that kind.
func (p *planter) node(name string, kind uint32) {
	if p.err == nil {
		p.count++
		if err := unix.Mknod(name, kind|0o644, 0); err != nil {
			p.err = &os.PathError{Op: "mknod", Path: name, Err: err}
		}
	}
}

func (p *planter) link(name string) {
	if p.err == nil {
		p.count++
		p.err = os.Symlink("nowhere", name)
	}
}

func (p *planter) dir(name string) {
	if p.err == nil {
		p.count++
		if err := unix.Mkdir(name, 0o755); err != nil {
			p.err = &os.PathError{Op: "mkdir", Path: name, Err: err}
		}
	}
}

func (p *planter) full(n int) bool { return p.err != nil || p.count >= n }

// plantFiles is files alone, as in the small volumes of a pod.
func plantFiles(p *planter, n int) {
	for !p.full(n) {
		p.file(fmt.Sprintf("f%d", p.count))
	}
}

// plantFlat is one directory, names in the order of their making.
func plantFlat(p *planter, n int) {
	p.dir("flat")
	for i := 0; !p.full(n); i++ {
		p.file(fmt.Sprintf("flat/file-%08d", i))
	}
}

// plantFifty is directories of fifty files, side by side.
func plantFifty(p *planter, n int) {
	for i := 0; !p.full(n); i++ {
		dir := fmt.Sprintf("d%06d", i)
		p.dir(dir)
		for k := 0; k < 50 && !p.full(n); k++ {
			p.file(fmt.Sprintf("%s/f%d", dir, k))
		}
	}
}

// plantHash is one directory, names like hashes: a content-addressed store.
func plantHash(p *planter, n int) {
	p.dir("store")
	for !p.full(n) {
		p.file(fmt.Sprintf("store/%016x%016x", p.rand.Uint64(), p.rand.Uint64()))
	}
}

// plantTiny is directories of one to three files, a hundred in each of theirs.
func plantTiny(p *planter, n int) {
	top := ""
	for i := 0; !p.full(n); i++ {
		if i%100 == 0 {
			top = fmt.Sprintf("t%06d", i/100)
			p.dir(top)
		}
		dir := fmt.Sprintf("%s/d%02d", top, i%100)
		p.dir(dir)
		for k := range 1 + p.rand.IntN(3) {
			p.file(fmt.Sprintf("%s/f%d", dir, k))
		}
	}
}

// plantRealistic has directories whose sizes are lognormal (median 6 files,
// one in a hundred over 100), each beneath one of those before it, twelve deep
// at most.
func plantRealistic(p *planter, n int) {
	type place struct {
		path  string
		depth int
	}
	places := []place{{".", 0}}
	for i := 0; !p.full(n); i++ {
		parent := places[p.rand.IntN(len(places))]
		at := place{fmt.Sprintf("%s/dir-%x", parent.path, i), parent.depth + 1}
		p.dir(at.path)
		if at.depth < 12 {
			places = append(places, at)
		}
		files := int(math.Exp(1.8 + 1.2*p.rand.NormFloat64()))
		for k := 0; k < files && !p.full(n); k++ {
			p.file(fmt.Sprintf("%s/%x-%d.dat", at.path, p.rand.Uint32(), k))
		}
	}
}

// plantMaildir is users with cur, new and tmp, long names, some hundreds of
// messages each.
func plantMaildir(p *planter, n int) {
	for user := 0; !p.full(n); user++ {
		box := fmt.Sprintf("user%05d", user)
		p.dir(box)
		for _, d := range []string{"cur", "new", "tmp"} {
			p.dir(box + "/" + d)
		}
		for k := range 50 + p.rand.IntN(700) {
			if p.full(n) {
				return
			}
			p.file(fmt.Sprintf("%s/cur/%d.M%dP%d.mail.example,S=%d,W=%d:2,S", box,
				1700000000+k, p.rand.IntN(1000000), p.rand.IntN(32768), p.rand.IntN(100000), p.rand.IntN(100000)))
		}
	}
}

// plantVolumes is directories of 19 files, each a volume by itself.
func plantVolumes(p *planter, n int) {
	for i := 0; !p.full(n); i++ {
		dir := fmt.Sprintf("pvc-%05d", i)
		p.dir(dir)
		for k := 0; k < 19 && !p.full(n); k++ {
			p.file(fmt.Sprintf("%s/f%d", dir, k))
		}
	}
}
