// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// site is what is at a PATH.
type site struct {
	path, real string // as it was named; as the kernel names it
	directory  bool
	mount      mounted   // what it lies on
	beneath    []mounted // in the order of the table
	selinux    bool      // it is on, on this machine
	label      string
	hasLabel   bool
}

// mounted is a mount and whether files on it have labels of their own.
type mounted struct {
	mountinfo.Mount
	noLabels string // why not; "" if they have, or if unknown
	unknown  bool   // where SELinux is off the table does not tell
}

// place finds in the mount table what v lies on, and what is mounted beneath.
func (v *site) place(table string, id uint64) {
	all := mounts(table)
	v.selinux = mountinfo.SELinux(all)
	prefix := strings.TrimSuffix(v.real, "/") + "/"
	for _, m := range all {
		with := mounted{Mount: m, noLabels: noLabels(m, v.selinux)}
		with.unknown = !v.selinux && with.noLabels == ""
		if m.ID == id {
			v.mount = with
		}
		if v.directory && strings.HasPrefix(m.Point, prefix) && m.Point != v.real {
			v.beneath = append(v.beneath, with)
		}
	}
}

// mounts reads the mount table. A line that it cannot read is left out.
func mounts(table string) []mountinfo.Mount {
	all, _ := mountinfo.Parse(table)
	return all
}

// noLabels says why no file on the mount has a label of its own, or "". The kernel
// shows seclabel where SELinux is on and the filesystem keeps labels.
func noLabels(m mountinfo.Mount, selinux bool) string {
	if _, context, is := strings.Cut(","+strings.Join(m.Super, ","), ",context="); is {
		label, _, _ := strings.Cut(strings.TrimPrefix(context, `"`), `"`) // in quotes where it has commas
		return "mounted with context=" + mountinfo.Unescape(label)
	}
	if selinux && !slices.Contains(m.Super, "seclabel") {
		return "the mount (" + m.FSType + ") shows no seclabel"
	}
	return ""
}

// has words whether files on the mount have labels.
func (m mounted) has() string {
	switch {
	case m.noLabels != "":
		return "no labels: " + m.noLabels
	case m.unknown:
		return "labels unknown while SELinux is off"
	}
	return "its files have labels"
}

// manner is how it is mounted, as far as it matters to a label.
func (m mounted) manner() string {
	how := "rw"
	if m.ReadOnly {
		how = "ro"
	}
	if slices.Contains(m.Options, "nosuid") {
		how += ",nosuid"
	}
	return how
}

var kubeletVolume = regexp.MustCompile(`/pods/[^/]+/volumes/([^/~]+)~([^/]+)/[^/]`)

// plugin is the kubelet's name of what mounted the volume, "" if it did not.
func (v *site) plugin() string {
	if m := kubeletVolume.FindStringSubmatch(v.real); m != nil {
		return m[1] + "/" + m[2]
	}
	return ""
}
