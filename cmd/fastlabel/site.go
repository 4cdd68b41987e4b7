// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/survey"
)

// site is what is at a PATH.
type site struct {
	path, real string // as it was named; as the kernel names it
	directory  bool
	mount      mounted   // what it lies on
	top        bool      // the mount's top directory
	whole      bool      // all of a filesystem, or of a btrfs subvolume
	beneath    []mounted // in the order of the table
	selinux    bool      // it is on, on this machine
	label      string
	hasLabel   bool
	inodes     int64 // in use, where it is a whole filesystem that counts them
	sample     survey.Sample
}

// mounted is a mount and whether what is on it bears labels.
type mounted struct {
	mountLine
	noLabels string // why not; "" if it does, or if unknown
	unknown  bool   // where SELinux is off the table does not tell
}

// subvolumeInode is the inode number of the top of each btrfs subvolume.
const subvolumeInode = 256

// place finds in the mount table what v lies on, and what is mounted beneath.
func (v *site) place(table, id string, ino uint64) {
	lines := slices.Collect(mountLines(table))
	v.selinux = slices.ContainsFunc(lines, func(m mountLine) bool {
		return m.fstype == "selinuxfs" || slices.Contains(m.super, "seclabel")
	})
	prefix := strings.TrimSuffix(v.real, "/") + "/"
	for _, m := range lines {
		with := mounted{mountLine: m, noLabels: m.noLabels(v.selinux)}
		with.unknown = !v.selinux && with.noLabels == ""
		if m.id == id {
			v.mount = with
			v.top = m.point == v.real
		}
		if v.directory && strings.HasPrefix(m.point, prefix) && m.point != v.real {
			v.beneath = append(v.beneath, with)
		}
	}
	v.whole = v.top && v.mount.root == "/"
	if v.mount.fstype == "btrfs" {
		v.whole = ino == subvolumeInode
	}
}

// noLabels says why nothing on the mount bears a label of its own, or "". The
// kernel shows seclabel where SELinux is on and the filesystem keeps labels.
func (m mountLine) noLabels(selinux bool) string {
	if _, context, is := strings.Cut(","+strings.Join(m.super, ","), ",context="); is {
		label, _, _ := strings.Cut(strings.TrimPrefix(context, `"`), `"`) // in quotes where it has commas
		return "mounted with context=" + unescapeOctal(label)
	}
	if selinux && !slices.Contains(m.super, "seclabel") {
		return "the mount (" + m.fstype + ") shows no seclabel"
	}
	return ""
}

// bears words whether what is on the mount bears labels.
func (m mounted) bears() string {
	switch {
	case m.noLabels != "":
		return m.noLabels
	case m.unknown:
		return "labels unknown while SELinux is off"
	}
	return "bears labels"
}

// manner is how it is mounted, as far as it matters to a label.
func (m mountLine) manner() string {
	how := "rw"
	if slices.Contains(m.options, "ro") || slices.Contains(m.super, "ro") {
		how = "ro"
	}
	if slices.Contains(m.options, "nosuid") {
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
