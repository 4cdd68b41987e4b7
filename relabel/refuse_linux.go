// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os"
	"os/user"
	"path/filepath"

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

// refusals resolves the system's paths, the caller's home and that of the user
// behind sudo, with all directories above them, to what they are.
func refusals() map[identity]string {
	deny := make(map[identity]string)
	added := make(map[string]bool) // with all above it
	add := func(path string) {
		for !added[path] {
			added[path] = true
			st, e := statPath(path)
			if e == 0 {
				if _, known := deny[identify(st)]; !known {
					deny[identify(st)] = path
				}
			}
			if path == "/" {
				return
			}
			path = filepath.Dir(path)
		}
	}
	homes := []string{os.Getenv("HOME")}
	if name := os.Getenv("SUDO_USER"); name != "" {
		if u, err := user.Lookup(name); err == nil {
			homes = append(homes, u.HomeDir)
		}
	}
	for _, p := range append(homes, systemPaths[:]...) {
		if !filepath.IsAbs(p) {
			continue // no home is known
		}
		add(filepath.Clean(p))
		if real, err := filepath.EvalSymlinks(p); err == nil {
			add(real)
		}
	}
	return deny
}

// statPath asks what path is, without following a link at its end.
func statPath(path string) (sys.Stat, sys.Errno) {
	return sys.Statx(sys.AtFdcwd, sys.Cname(path))
}
