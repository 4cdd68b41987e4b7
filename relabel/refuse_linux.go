// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// identity tells a file from every other, however it is spelled or mounted.
type identity struct{ dev, ino uint64 }

func identify(st sys.Stat) identity { return identity{st.Dev, st.Ino} }

// systemPaths are never relabelled themselves; what lies below them may be.
// The list is go-selinux's, which every container runtime goes by.
var systemPaths = [...]string{
	"/", "/bin", "/boot", "/dev", "/etc", "/etc/passwd", "/etc/pki",
	"/etc/shadow", "/home", "/lib", "/lib64", "/media", "/opt", "/proc",
	"/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var",
	"/var/lib", "/var/log",
}

// forbidden is a place that is never relabelled.
type forbidden struct {
	path  string
	link  bool   // the path may lead over links
	mount uint64 // in which it lies
}

func (p forbidden) String() string { return "it is " + p.path + ", which is never relabelled" }

// refusals resolves the system's paths, the caller's home and that of the user
// behind sudo, with all directories above them, to what they are. Where one of
// them is a link, as on systems that keep what changes in /var, both the link and
// what it leads to are such places; what lies in them is not.
func refusals() map[identity]forbidden {
	homes := []string{os.Getenv("HOME")}
	if name := os.Getenv("SUDO_USER"); name != "" {
		if u, err := user.Lookup(name); err == nil {
			homes = append(homes, u.HomeDir)
		}
	}
	paths := slices.DeleteFunc(append(homes, systemPaths[:]...), func(p string) bool {
		return !filepath.IsAbs(p) // no home is known
	})
	deny := make(map[identity]forbidden)
	added := make(map[string]bool) // with all above it
	add := func(path string, link bool) {
		for !added[path] {
			added[path] = true
			if st, e := statPath(path); e == 0 {
				if _, known := deny[identify(st)]; !known {
					deny[identify(st)] = forbidden{path, link, st.Mount}
				}
			}
			if path == "/" {
				return
			}
			path = filepath.Dir(path)
		}
	}
	for _, p := range paths {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			add(real, false)
		}
	}
	for _, p := range paths {
		add(filepath.Clean(p), true)
	}
	return deny
}

// statPath asks what path is, without following a link at its end.
func statPath(path string) (sys.Stat, sys.Errno) {
	return sys.Statx(sys.AtFdcwd, sys.Cname(path))
}
