// SPDX-License-Identifier: Apache-2.0

// Package site tells what is at a PATH before anything is done there: which file it
// is, the label, the mount, and whether that may hang.
package site

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// Site is what is at a PATH.
type Site struct {
	Path, Real string // as it was named; as the kernel names it
	Directory  bool
	Mount      Mount   // what it lies on
	Beneath    []Mount // in the order of the table
	SELinux    bool    // it is on, on this machine
	Label      string
	HasLabel   bool
}

// Mount is a mount and whether files on it have labels of their own.
type Mount struct {
	mountinfo.Mount
	NoLabels string // why not; "" if they have, or if unknown
	Unknown  bool   // where SELinux is off the table does not tell
}

// place finds in the mount table what v lies on, and what is mounted beneath.
func (v *Site) place(table string, id uint64) {
	all := mounts(table)
	v.SELinux = mountinfo.SELinux(all)
	prefix := strings.TrimSuffix(v.Real, "/") + "/"
	for _, m := range all {
		with := Mount{Mount: m, NoLabels: m.Unlabelable(v.SELinux)}
		with.Unknown = !v.SELinux && with.NoLabels == ""
		if m.ID == id {
			v.Mount = with
		}
		if v.Directory && strings.HasPrefix(m.Point, prefix) && m.Point != v.Real {
			v.Beneath = append(v.Beneath, with)
		}
	}
}

// mounts reads the mount table. A line that it cannot read is left out.
func mounts(table string) []mountinfo.Mount {
	all, _ := mountinfo.Parse(table)
	return all
}

// Has words whether files on the mount have labels.
func (m Mount) Has() string {
	switch {
	case m.NoLabels != "":
		return "no labels: " + m.NoLabels
	case m.Unknown:
		return "labels unknown while SELinux is off"
	}
	return "its files have labels"
}

// Manner is how it is mounted, as far as it matters to a label.
func (m Mount) Manner() string {
	how := "rw"
	if m.ReadOnly {
		how = "ro"
	}
	if mountinfo.HasOption(m.Options, "nosuid") {
		how += ",nosuid"
	}
	return how
}

var kubeletVolume = regexp.MustCompile(`/pods/[^/]+/volumes/([^/~]+)~([^/]+)/[^/]`)

// Plugin is the kubelet's name of what mounted the volume, "" if it did not.
func (v *Site) Plugin() string { return pluginOf(v.Real) }

func pluginOf(path string) string {
	if m := kubeletVolume.FindStringSubmatch(path); m != nil {
		return m[1] + "/" + m[2]
	}
	return ""
}

// Unmounted finds paths that name a directory which the kubelet keeps for a volume, where
// the volume is not mounted: a subPathExpr binds that directory without the mounts
// beneath. It returns the plugin of each. No path is looked at, which might hang.
func Unmounted(table string, paths []string) map[string]string {
	points := map[string]mountinfo.Mount{} // of several at one place the last is on top
	for _, m := range mounts(table) {
		points[m.Point] = m
	}
	plugins, wd := map[string]string{}, workingDirectory()
	for _, p := range paths {
		at := p
		if !filepath.IsAbs(at) {
			at = wd + "/" + at
		}
		at = filepath.Clean(at)
		for dir := at; ; dir = filepath.Dir(dir) {
			if on, is := points[dir]; is {
				if plugin := pluginOf(on.Inside(at)); plugin != "" {
					plugins[p] = plugin
				}
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return plugins
}
