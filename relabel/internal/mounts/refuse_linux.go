// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// systemPaths are never relabelled themselves; what lies below them may be.
// The list is go-selinux's, which every container runtime goes by.
var systemPaths = [...]string{
	"/", "/bin", "/boot", "/dev", "/etc", "/etc/passwd", "/etc/pki",
	"/etc/shadow", "/home", "/lib", "/lib64", "/media", "/opt", "/proc",
	"/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var",
	"/var/lib", "/var/log",
}

// Refused is a place that is never relabelled.
type Refused struct {
	Path  string
	link  bool   // the path may lead over links
	mount uint64 // in which it lies
}

func (p Refused) String() string { return "it is " + p.Path + ", which is never relabelled" }

// places are the system's paths, the caller's home and that of the user behind
// sudo, with all directories above them, resolved to what they are. Where one of
// them is a link, as on systems that keep what changes in /var, both the link and
// what it leads to are such places; what lies in them is not.
type places struct {
	home, sudo string // of the environment
	refused    map[ID]Refused
	seen       map[string]sight // all that was looked at
}

// sight is what was at a path. Of what is no directory the change time tells
// whether its content is the same.
type sight struct {
	name  *byte
	id    ID
	ctime time.Time
	errno sys.Errno
}

// resolved are the places that were found last: to find them takes some hundred
// calls, to see that they are the same one for each. Nothing depends on who
// looked last.
var resolved atomic.Pointer[places]

// Refusals gives the places as they are now.
func Refusals() map[ID]Refused {
	p := resolved.Load()
	if p == nil || !p.unchanged() {
		p = findPlaces()
		resolved.Store(p)
	}
	return p.refused
}

func findPlaces() *places {
	p := &places{
		home: os.Getenv("HOME"), sudo: os.Getenv("SUDO_USER"),
		refused: make(map[ID]Refused), seen: make(map[string]sight),
	}
	homes := []string{p.home}
	if p.sudo != "" {
		if u, err := user.Lookup(p.sudo); err == nil {
			homes = append(homes, u.HomeDir)
		}
	}
	paths := slices.DeleteFunc(append(homes, systemPaths[:]...), func(path string) bool {
		return !filepath.IsAbs(path) // no home is known
	})
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			p.add(real, false)
		}
	}
	for _, path := range paths {
		p.add(filepath.Clean(path), true)
	}
	return p
}

// add adds path and all above it, and what links among them lead to.
func (p *places) add(path string, link bool) {
	for {
		if _, known := p.seen[path]; known {
			return
		}
		now, st := sightOf(sys.Cname(path))
		p.seen[path] = now
		if _, known := p.refused[now.id]; !known && now.errno == 0 {
			p.refused[now.id] = Refused{path, link, st.Mount}
		}
		if target, err := os.Readlink(path); err == nil {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			p.add(filepath.Clean(target), true)
		}
		if path == "/" {
			return
		}
		path = filepath.Dir(path)
	}
}

// unchanged says whether the places are still what they were.
func (p *places) unchanged() bool {
	if p.home != os.Getenv("HOME") || p.sudo != os.Getenv("SUDO_USER") {
		return false
	}
	for _, was := range p.seen {
		if now, _ := sightOf(was.name); now != was {
			return false
		}
	}
	return true
}

func sightOf(name *byte) (sight, sys.Stat) {
	st, e := sys.Statx(sys.AtFdcwd, name)
	now := sight{name: name, errno: e}
	if e == 0 {
		now.id = IDOf(st)
	}
	if st.Kind != sys.KindDir {
		now.ctime = st.Ctime
	}
	return now, st
}
