// SPDX-License-Identifier: Apache-2.0

// Package site finds out what is at a PATH before anything is done there: which file
// it is, its label, its mount, and whether that may hang.
package site

import (
	"path/filepath"
	"regexp"
	"slices"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// mounts reads the mount table. A line that it cannot read is left out.
func mounts(table string) []mountinfo.Mount {
	all, _ := mountinfo.Parse(table)
	return all
}

var kubeletVolume = regexp.MustCompile(`/pods/[^/]+/volumes/([^/~]+)~([^/]+)/[^/]`)

// madeWithPod are the kubelet's plugins whose volumes need not be mounted.
var madeWithPod = []string{"kubernetes.io/empty-dir", "kubernetes.io/secret", "kubernetes.io/configmap", "kubernetes.io/projected", "kubernetes.io/downward-api"}

// pluginOf returns the kubelet's plugin that mounts a volume at path, "" if none does.
func pluginOf(path string) string {
	if m := kubeletVolume.FindStringSubmatch(path); m != nil {
		if plugin := m[1] + "/" + m[2]; !slices.Contains(madeWithPod, plugin) {
			return plugin
		}
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
