// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// survey is one under way. It belongs to one goroutine.
type survey struct {
	Sample
	ctx       context.Context // of Take
	limits    Limits
	begun     time.Time
	path      string // of the root, as the kernel names it
	root      int
	mounted   func(path string) bool
	counts    counts
	attribute []byte
	buf       [4096]byte // the kernel's own limit on a context is a page

	all      bool // there are no limits
	kept     int  // names
	dropped  bool // a name, whose label cannot be read then
	missed   bool // a directory was not listed to its end
	cut      bool // a descent, or a listing, before its end
	names    int64
	readings int64
	listing  time.Duration
	reading  time.Duration
}

const (
	descents = 200 // that tell the size
	share    = 64  // labels read of a directory before others have their turn
)

// Take surveys the tree beneath a directory: root is an O_PATH descriptor of it
// and path its name in the mount table; mounted tells where something is mounted
// in it, which is passed over. The end of ctx ends the survey, and is no error.
//
// First some random descents, which tell how large the tree is; then some labels
// of directories drawn from all that are known; then what is left of these.
func Take(ctx context.Context, root int, path string, mounted func(path string) bool, l Limits) Sample {
	s := &survey{ctx: ctx, limits: l, begun: time.Now(), path: path, root: root, mounted: mounted}
	s.counts.of = map[string]*Count{}
	s.attribute = []byte("security.selinux\x00")
	top := &dir{}
	s.Entries++ // the root, which the caller has read
	var tree size
	var all []*dir
	if l == (Limits{}) {
		s.all = true
		s.walk(top)
	} else {
		for range descents {
			if !s.descend(top, &tree) {
				break
			}
		}
		if s.cut { // none of the largest are among those that came to their end
			tree = size{}
		}
		all = s.wander(top)
		s.finish(all)
	}
	s.conclude(tree, all)
	return s.Sample
}

// walk reads everything, depth first.
func (s *survey) walk(top *dir) {
	for open := []*dir{top}; len(open) > 0; {
		d := open[len(open)-1]
		open = open[:len(open)-1]
		s.visit(d, 0)
		open = append(open, d.sub...)
		if d.sub = nil; s.over() {
			s.missed = true
			return
		}
	}
}

// over says that a limit was reached.
func (s *survey) over() bool {
	return s.ctx.Err() != nil || !s.all && (s.Entries >= int64(s.limits.Entries) || time.Since(s.begun) >= s.limits.Time)
}

func (s *survey) failed(op, path string, err error) {
	s.Failed++
	if s.First == nil {
		s.First = &fs.PathError{Op: op, Path: path, Err: err}
	}
}

// with opens d for f.
func (s *survey) with(d *dir, f func(fd int)) {
	fd, err := d.reach(s.root)
	if err != nil {
		d.unread = nil
		if !errors.Is(err, fs.ErrNotExist) { // or removed meanwhile
			s.failed("openat", d.path(s.path), err)
		}
		return
	}
	f(fd)
	_ = syscall.Close(fd)
}

// visit lists d, if it was not yet, and then reads n of its labels.
func (s *survey) visit(d *dir, n int) {
	if d.listed && (n == 0 || len(d.unread) == 0) {
		return
	}
	s.with(d, func(fd int) {
		if !d.listed {
			s.list(d, fd)
		}
		s.read(d, fd, n)
	})
	d.listed = true
}

// descend goes down once, and tells whether there was time to.
func (s *survey) descend(top *dir, tree *size) bool {
	found, weight := 1.0, 1.0
	for d := top; ; {
		s.visit(d, 0)
		if s.over() || s.cut || time.Since(s.begun) > s.limits.Time/2 {
			return false
		}
		found += weight * float64(d.entries)
		if len(d.sub) == 0 {
			break
		}
		weight *= float64(d.dirs)
		d = d.sub[rand.IntN(len(d.sub))]
	}
	tree.add(found)
	return true
}

// wander visits directories drawn from all that are known, and returns those
// that it visited.
func (s *survey) wander(top *dir) []*dir {
	var visited, open []*dir
	for open = append(open, top); len(open) > 0; {
		i, last := rand.IntN(len(open)), len(open)-1
		d := open[i]
		open[i] = open[last]
		open = open[:last]
		if !d.listed && s.over() {
			s.missed = true
			continue
		}
		s.visit(d, share)
		visited = append(visited, d)
		open = append(open, d.sub...)
	}
	return visited
}

// finish reads what was left of the directories, in any order.
func (s *survey) finish(all []*dir) {
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, d := range all {
		if len(d.unread) > 0 && !s.over() {
			s.visit(d, len(d.unread))
		}
	}
}

// conclude works out what the sample tells of the whole.
func (s *survey) conclude(tree size, all []*dir) {
	s.Labels, s.Others = s.counts.list(), s.counts.others
	s.Elapsed = time.Since(s.begun)
	s.Counted = !s.missed
	s.Whole = s.Counted && !s.dropped && !slices.ContainsFunc(all, func(d *dir) bool { return len(d.unread) > 0 })
	s.Least = s.names + 1
	if s.Counted {
		s.Most = s.Least
	} else if least, most, ok := tree.bounds(); ok {
		s.Least, s.Most = max(s.Least, int64(least)), max(s.Least, int64(most))
	}
	if s.names > 0 {
		s.Each = s.listing / time.Duration(s.names)
	}
	if s.readings > 0 {
		s.Each += s.reading / time.Duration(s.readings)
	}
}
