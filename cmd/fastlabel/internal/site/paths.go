// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

// Root is one PATH. cover is the index of another that takes it in, or -1.
type Root struct {
	Path  string
	Cover int
}

// place is where a path leads: links on the way resolved, the last name not.
type place struct {
	path  string // "" if it could not be resolved
	info  fs.FileInfo
	id    Identity
	hasID bool
}

// Covers finds the paths that another takes in: the same file, or one that lies
// beneath a listed directory and is certain to be met there. In doubt a path
// is walked by itself; the second walk finds its labels right and writes none.
// It is not certain behind a mount (-x, or a mount that has no labels: the
// walk skips that, who lists it should hear of it), or if the walk above may leave
// something out.
//
// whole says that a walk leaves nothing out: it has no exclusions, and trusts no
// label. at counts the looks, each of which may hang.
func Covers(ctx context.Context, paths []string, whole bool, at *atomic.Int64) []Root {
	roots := Bare(paths)
	places := make([]place, len(paths))
	mounts, err := mountPoints()
	above := map[string]bool{} // what something is mounted beneath
	for m := range mounts {
		for dir := filepath.Dir(m); !above[dir]; dir = filepath.Dir(dir) {
			above[dir] = true
		}
	}
	wd, resolved := workingDirectory(), map[string]string{}
	byPath, byID := map[string]int{}, map[Identity]int{}
	for i, p := range paths {
		if at.Add(1); ctx.Err() != nil {
			return roots
		}
		here := locate(wd, p, resolved)
		places[i] = here
		if here.path == "" {
			continue
		}
		if first, ok := byPath[here.path]; ok {
			roots[i].Cover = first
			continue
		}
		byPath[here.path] = i
		if !here.hasID {
			continue
		}
		// Another name of the same file. Two places of one directory can have
		// different things mounted beneath them.
		first, ok := byID[here.id]
		if ok && (!here.info.IsDir() || err == nil && !above[here.path] && !above[places[first].path]) {
			roots[i].Cover = first
		} else if !ok {
			byID[here.id] = i
		}
	}
	if !whole || err != nil {
		return roots
	}
	for i, here := range places {
		if ctx.Err() != nil {
			return roots
		}
		if roots[i].Cover >= 0 || here.path == "" {
			continue
		}
		for dir := here.path; ; {
			at.Add(1)
			if _, mounted := mounts[dir]; mounted {
				break
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
			if above, ok := byPath[dir]; ok && places[above].info.IsDir() && sameDevice(here, places[above]) {
				roots[i].Cover = above
				break
			}
		}
	}
	return roots
}

// CoverOf returns which root, walked by itself, takes in that one, or -1.
func CoverOf(roots []Root, i int) int {
	by := roots[i].Cover
	for by >= 0 && roots[by].Cover >= 0 { // a twin of one that lies in a third
		by = roots[by].Cover
	}
	return by
}

// locate resolves path as the walk will reach it: a link at its end is itself,
// unless a slash follows. resolved keeps what directories are.
func locate(wd, path string, resolved map[string]string) place {
	if !filepath.IsAbs(path) {
		if wd == "" {
			return place{}
		}
		path = wd + string(filepath.Separator) + path // Join would clean a/../b by name
	}
	dir, base := filepath.Split(path)
	if base == "" || base == "." || base == ".." {
		dir, base = path, ""
	}
	real, known := resolved[dir]
	if !known {
		var err error
		if real, err = filepath.EvalSymlinks(dir); err != nil {
			return place{}
		}
		resolved[dir] = real
	}
	at := place{path: filepath.Join(real, base)}
	var err error
	if at.info, err = os.Lstat(at.path); err != nil {
		return place{}
	}
	at.id, at.hasID = Identify(at.info)
	return at
}

// workingDirectory is "" where there is none any more, or its path is longer than the
// kernel tells. os.Getwd would look at all that lies beside it then.
func workingDirectory() string {
	wd, err := syscall.Getwd()
	if err != nil {
		return ""
	}
	return wd
}

func sameDevice(a, b place) bool { return a.hasID && b.hasID && a.id.Dev == b.id.Dev }

// Bare has no path take in another.
func Bare(paths []string) []Root {
	roots := make([]Root, len(paths))
	for i, p := range paths {
		roots[i] = Root{p, -1}
	}
	return roots
}
