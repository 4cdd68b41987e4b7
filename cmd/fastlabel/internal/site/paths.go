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
// It is not certain behind a mount (-x, or a mount that bears no labels: the
// walk skips that, who lists it should hear of it), beneath an exclusion, or
// if the walk above may trust a label and stop.
//
// trusts says that the walk may trust a label. at counts the looks, each of which
// may hang.
func Covers(ctx context.Context, paths, exclude []string, trusts bool, at *atomic.Int64) []Root {
	roots := Bare(paths)
	places := make([]place, len(paths))
	mounts, err := mountPoints()
	above := map[string]bool{} // what something is mounted beneath
	for m := range mounts {
		for dir := filepath.Dir(m); !above[dir]; dir = filepath.Dir(dir) {
			above[dir] = true
		}
	}
	excluded := exclusions{ids: excludedIDs(exclude), known: map[string]bool{}}
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
	if trusts || err != nil {
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
			if _, mounted := mounts[dir]; mounted || excluded.has(dir) {
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

// excludedIDs knows each exclusion by itself and by what it links to.
func excludedIDs(paths []string) map[Identity]bool {
	ids := map[Identity]bool{}
	for _, p := range paths {
		for _, stat := range []func(string) (fs.FileInfo, error){os.Stat, os.Lstat} {
			if info, err := stat(p); err == nil {
				if id, ok := Identify(info); ok {
					ids[id] = true
				}
			}
		}
	}
	return ids
}

// exclusions remembers what was looked up.
type exclusions struct {
	ids   map[Identity]bool
	known map[string]bool
}

func (e exclusions) has(path string) bool {
	if len(e.ids) == 0 {
		return false
	}
	excluded, known := e.known[path]
	if !known {
		info, err := os.Lstat(path)
		id, ok := Identity{}, false
		if err == nil {
			id, ok = Identify(info)
		}
		excluded = !ok || e.ids[id]
		e.known[path] = excluded
	}
	return excluded
}

// Bare has no path take in another.
func Bare(paths []string) []Root {
	roots := make([]Root, len(paths))
	for i, p := range paths {
		roots[i] = Root{p, -1}
	}
	return roots
}
