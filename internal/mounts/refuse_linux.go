// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
)

// Refused is a place that is never relabelled.
type Refused struct {
	Path  string // free of links but for the last name
	mount uint64 // in which it lies; 0 where the kernel does not report it
}

func (p Refused) String() string { return "it is " + p.Path + ", which is never relabelled" }

// OfDevices reports whether root lies on devtmpfs, where a node is the whole machine's. The table of
// mounts is read for a device alone, and for what lies on the filesystem of /dev.
func (p *Proc) OfDevices(root *Mount, all map[ID]Refused) bool {
	var slash, dev uint64
	for id, place := range all {
		switch place.Path {
		case "/":
			slash = id.Dev
		case "/dev":
			dev = id.Dev
		}
	}
	if root.Stat.Kind != sys.KindChar && root.Stat.Kind != sys.KindBlock && (root.Stat.Dev != dev || dev == slash) {
		return false
	}
	table, err := p.readTable()
	m := mountinfo.ByID(table, root.Stat.Mount)
	return err != nil || m != nil && m.FSType == "devtmpfs"
}

// refusals are the places that were found last: to find them takes some forty calls.
type refusals struct {
	mu     sync.Mutex // guards the rest; held while the places are looked at
	found  map[ID]Refused
	home   string // HOME
	sudo   string // SUDO_USER, whose home may be known by a server
	sudoer string // that home
	event  uint64 // the last change of the mounts before they were looked at
	since  time.Time
}

// again is the time for which the places are taken for unchanged while the mounts are.
const again = time.Second

// now returns the system's paths, the caller's home and that of the user behind sudo, as they were
// after the change of the mounts with the number event.
func (r *refusals) now(event uint64, a *run.Activity) map[ID]Refused {
	a.At("statx", "/home or another refused place") // another run may be looking
	defer a.At("", "")
	r.mu.Lock()
	defer r.mu.Unlock()
	begin, home, sudo := time.Now(), os.Getenv("HOME"), os.Getenv("SUDO_USER")
	if r.found != nil && home == r.home && sudo == r.sudo && event <= r.event && begin.Sub(r.since) < again {
		return r.found
	}
	if sudo != r.sudo {
		r.sudoer = ""
		if u, err := user.Lookup(sudo); err == nil {
			r.sudoer = u.HomeDir
		}
	}
	r.home, r.sudo, r.event, r.since = home, sudo, max(r.event, event), begin
	found := make(places)
	found.look("/", a)
	for _, path := range append([]string{home, r.sudoer}, mountinfo.NeverWhole...) {
		if filepath.IsAbs(path) { // else no home is known
			found.resolve(path, a)
		}
	}
	r.found = found
	return found
}

// places are what paths lead to and all that is passed on the way there, links and what they lead
// to; what lies in them is not.
type places map[ID]Refused

// resolve looks at all on the way from / to path, as the kernel would go it.
func (p places) resolve(path string, a *run.Activity) {
	const most = 40 // links: the kernel's own limit
	at := "/"
	for links := 0; path != "" && links <= most; {
		var name string
		name, path, _ = strings.Cut(path, "/")
		next := filepath.Join(at, name)
		if name == "" || name == "." || name == ".." {
			at = next
			continue
		}
		target, there := p.look(next, a)
		if !there {
			return
		}
		if target == "" {
			at = next
			continue
		}
		links++
		if filepath.IsAbs(target) {
			at = "/"
		}
		path = target + "/" + path
	}
}

// look adds what is at path, free of links but for the last name, and returns where a link leads.
func (p places) look(path string, a *run.Activity) (target string, there bool) {
	a.At("statx", path)
	st, e := sys.Statx(sys.AtFdcwd, sys.Cname(path))
	if e != 0 {
		return "", false
	}
	if _, known := p[IDOf(st)]; !known {
		p[IDOf(st)] = Refused{path, st.Mount}
	}
	if st.Kind == sys.KindLink {
		target, _ = os.Readlink(path) // if it is none by now, what follows is not there
	}
	return target, true
}
