// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
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
	steps      []*step // all that was looked at
	named      map[string]*step
	look       look
}

// step is one path on the way to a place, free of links but for its last name.
type step struct {
	path   string
	name   *byte
	is     seen
	target string // of a link
	above  bool   // it is a place, or a directory above one
}

type look func(dir int, name *byte) (sys.Stat, sys.Errno)

// refusals are the places that were found last: to find them takes some reading, to see
// that they are the same one call for each.
type refusals struct {
	look look

	mu    sync.Mutex // guards the rest; held while the places are looked at
	found *places
	event uint64    // the last change of the mounts before they were looked at
	since time.Time // when that was
}

// again is how long the places are taken for unchanged while the mounts are: who moves
// /home, or has a link lead elsewhere, does not relabel within the same second.
const again = time.Second

// now gives the places, as they were after the change of the mounts with the number
// event.
func (r *refusals) now(event uint64) map[ID]Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	begin := time.Now()
	switch p := r.found; {
	case p == nil || p.home != os.Getenv("HOME") || p.sudo != os.Getenv("SUDO_USER"):
		r.found = findPlaces(r.look)
	case event <= r.event && begin.Sub(r.since) < again:
		return p.refused
	case !p.unchanged():
		r.found = findPlaces(r.look)
	}
	r.event, r.since = max(r.event, event), begin
	return r.found.refused
}

func findPlaces(look look) *places {
	p := &places{
		home: os.Getenv("HOME"), sudo: os.Getenv("SUDO_USER"),
		refused: make(map[ID]Refused), named: make(map[string]*step), look: look,
	}
	homes := []string{p.home}
	if p.sudo != "" {
		if u, err := user.Lookup(p.sudo); err == nil {
			homes = append(homes, u.HomeDir)
		}
	}
	for _, path := range append(homes, systemPaths[:]...) {
		if filepath.IsAbs(path) { // else no home is known
			p.resolve(path)
		}
	}
	for _, link := range [...]bool{false, true} { // the first name of a place is free of links
		for _, s := range p.steps {
			if _, known := p.refused[s.is.id]; !known && s.is.errno == 0 && s.above != link {
				p.refused[s.is.id] = Refused{s.path, link, s.is.mount}
			}
		}
	}
	return p
}

// resolve looks at all on the way to path, as the kernel would go it.
func (p *places) resolve(path string) {
	const most = 40 // links: the kernel's own limit
	at := "/"
	p.step(at)
	for links := 0; path != ""; {
		var name string
		name, path, _ = strings.Cut(path, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		s := p.step(filepath.Join(at, name))
		if s.is.errno != 0 {
			return
		}
		if s.target == "" {
			at = s.path
			continue
		}
		if links++; links > most {
			return
		}
		if filepath.IsAbs(s.target) {
			at = "/"
		}
		path = s.target + "/" + path
	}
	for ; !p.named[at].above; at = filepath.Dir(at) {
		p.named[at].above = true
	}
}

// step looks at path, once.
func (p *places) step(path string) *step {
	if s := p.named[path]; s != nil {
		return s
	}
	s := &step{path: path, name: sys.Cname(path)}
	st, e := p.look(sys.AtFdcwd, s.name)
	s.is = seenOf(st, e)
	if st.Kind == sys.KindLink {
		s.target, _ = os.Readlink(path) // if it is none by now, the next look sees another file
	}
	p.named[path], p.steps = s, append(p.steps, s)
	return s
}

// unchanged says whether the places are still what they were.
func (p *places) unchanged() bool {
	for _, s := range p.steps {
		if seenOf(p.look(sys.AtFdcwd, s.name)) != s.is {
			return false
		}
	}
	return true
}
