// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// What "true" means, of all that a container has: the directories that are its
// volumes, and that it may write to. A runtime binds much else: the host's
// configuration, its devices, its kernel's filesystems, the kubelet's secrets. To
// give those the label of one container would break the host, or others.

// Host has the directories of the host itself.
type Host struct{ whole, closed, kubelet []string } // directories, by each of their names

// TheHost resolves links: a source is resolved too, and /etc or /var/lib/kubelet
// may be a link on this host.
func TheHost() Host {
	return Host{named(mountinfo.NeverWhole...), named(mountinfo.HostsOwn...), named("/var/lib/kubelet")}
}

func named(dirs ...string) (all []string) {
	for _, d := range dirs {
		all = append(all, d)
		if real, err := filepath.EvalSymlinks(d); err == nil && real != d {
			all = append(all, real)
		}
	}
	return all
}

// NeverWhole is NoVolume's reason where a list of destinations is refused too.
const NeverWhole = "a system directory or device, or holds one"

// NoVolume returns why the mount of source, which is resolved, is no volume; "" if
// it is one.
func (h Host) NoVolume(m Mount, source string) string {
	info, err := os.Lstat(source)
	if err == nil && info.Mode()&os.ModeDevice != 0 || slices.ContainsFunc(h.whole, func(p string) bool { return lies(source, p) }) {
		return NeverWhole
	}
	if slices.ContainsFunc(h.closed, func(p string) bool { return lies(p, source) }) {
		return "the host's own"
	}
	if h.isKubelets(source) {
		return "the kubelet's own"
	}
	switch {
	case err != nil: // the engine tells
		return ""
	case !info.IsDir():
		return kind(info.Mode())
	case m.readOnly():
		return "mounted read-only"
	}
	return ""
}

// beneathPods is what the kubelet keeps for a pod, wherever its directory is. Of
// a volume's directory it is the plugin, of a subpath the volume.
var beneathPods = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*?/pods/[^/]+)/(?:volumes/([^/]+)/|etc-hosts/|containers/|volume-subpaths/([^/]+)/)`)
})

// isKubelets reports whether source is written by the kubelet: its directory but
// for the volumes in it, and of those secrets, config maps and the like.
func (h Host) isKubelets(source string) bool {
	if at := beneathPods().FindStringSubmatch(source + "/"); at != nil {
		pod, plugin, volume := at[1], at[2], at[3]
		switch {
		case volume != "":
			return slices.ContainsFunc(kubeletWrites, func(name string) bool {
				info, err := os.Lstat(filepath.Join(pod, "volumes", name, volume))
				return err == nil && info.IsDir()
			})
		case plugin != "":
			return slices.Contains(kubeletWrites, plugin)
		}
		return true
	}
	return slices.ContainsFunc(h.kubelet, func(k string) bool { return lies(k, source) || lies(source, k) })
}

// kubeletWrites are the plugins whose volumes the kubelet writes and labels.
var kubeletWrites = []string{"kubernetes.io~configmap", "kubernetes.io~downward-api", "kubernetes.io~projected", "kubernetes.io~secret"}

// lies reports whether path is dir, or lies beneath it.
func lies(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// readOnly reports whether the container cannot write there: the last word counts.
func (m Mount) readOnly() (ro bool) {
	for _, o := range m.Options {
		switch o {
		case "ro", "rro":
			ro = true
		case "rw", "rrw":
			ro = false
		}
	}
	return ro
}
