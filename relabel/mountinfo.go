// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mountEntry is one line of /proc/self/mountinfo, as proc(5) lays it out.
type mountEntry struct {
	id, parent uint64
	device     string // of the filesystem: major:minor
	root       string // the directory of it that is mounted
	point      string // where it is mounted, as this process sees it
	readOnly   bool   // the mount or its filesystem
	fstype     string
	super      []string // the filesystem's own options
}

// parseMountinfo reads the whole file. A line that it cannot read is an error:
// a mount that goes unnoticed would be walked as part of its parent.
func parseMountinfo(text string) ([]mountEntry, error) {
	var all []mountEntry
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		m, err := parseMount(line)
		if err != nil {
			return nil, fmt.Errorf("mountinfo line %q: %w", line, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func parseMount(line string) (mountEntry, error) {
	var m mountEntry
	mine, theirs, ok := strings.Cut(line, " - ")
	f, s := strings.Split(mine, " "), strings.Split(theirs, " ")
	if !ok || len(f) < 6 || len(s) < 3 {
		return m, fmt.Errorf("too few fields")
	}
	var err error
	if m.id, err = strconv.ParseUint(f[0], 10, 64); err != nil {
		return m, err
	}
	if m.parent, err = strconv.ParseUint(f[1], 10, 64); err != nil {
		return m, err
	}
	m.device, m.root = f[2], unescapeMount(f[3])
	m.point = unescapeMount(f[4])
	m.fstype = unescapeMount(s[0])
	m.super = strings.Split(s[2], ",")
	m.readOnly = hasOption(strings.Split(f[5], ","), "ro") || hasOption(m.super, "ro")
	return m, nil
}

// unescapeMount undoes the kernel's \ooo for space, tab, newline and backslash.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func hasOption(options []string, name string) bool {
	for _, o := range options {
		if o == name || strings.HasPrefix(o, name+"=") {
			return true
		}
	}
	return false
}

// unlabelable says why nothing on this mount can bear a label of its own, or
// "". The kernel shows seclabel where SELinux is on and the filesystem keeps
// labels; where SELinux is off it shows neither option anywhere.
func (m *mountEntry) unlabelable(selinux bool) string {
	switch {
	case hasOption(m.super, "context"):
		return "mounted with context=, which gives every file one label"
	case selinux && !hasOption(m.super, "seclabel"):
		return "the filesystem (" + m.fstype + ") does not bear labels"
	}
	return ""
}

// kernelTypes are the filesystems in which files are the kernel's own objects. A
// label on one of them says what the machine lets be done with that object.
var kernelTypes = [...]string{
	"autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
	"fusectl", "hugetlbfs", "mqueue", "proc", "pstore", "securityfs", "selinuxfs", "sysfs", "tracefs",
}

func (m *mountEntry) kernels() bool { return slices.Contains(kernelTypes[:], m.fstype) }

// inside is where in its filesystem the path lies, which is the mount's point or
// beneath it. If either was renamed it is the mount's top.
func (m *mountEntry) inside(path string) string {
	rest, is := strings.CutPrefix(path, strings.TrimSuffix(m.point, "/"))
	if !is {
		return m.root
	}
	return strings.TrimSuffix(m.root, "/") + rest
}

// value is that of the option name=value, "" if there is none.
func value(options []string, name string) string {
	for _, o := range options {
		if v, ok := strings.CutPrefix(o, name+"="); ok {
			return unescapeMount(v)
		}
	}
	return ""
}

// beneath returns the mounts below path, parents before what is mounted on
// them, in the kernel's order.
func beneath(all []mountEntry, path string) []mountEntry {
	prefix := strings.TrimSuffix(path, "/") + "/"
	var out []mountEntry
	for _, m := range all {
		if strings.HasPrefix(m.point, prefix) {
			out = append(out, m)
		}
	}
	return out
}

// mountByID finds a mount by its id.
func mountByID(all []mountEntry, id uint64) *mountEntry {
	for i := range all {
		if all[i].id == id {
			return &all[i]
		}
	}
	return nil
}

// descends reports whether m is mounted in the mount id, or in one that is.
func descends(all []mountEntry, m *mountEntry, id uint64) bool {
	for at := m; at != nil && at.id != at.parent; at = mountByID(all, at.parent) {
		if at.parent == id {
			return true
		}
	}
	return false
}

// hidden reports whether no path leads to the top of m, because something is
// mounted over it, or over a directory on the way to it.
func hidden(all []mountEntry, m *mountEntry) bool {
	over := func(parent, but uint64, point string) bool {
		return slices.ContainsFunc(all, func(o mountEntry) bool {
			return o.parent == parent && o.id != parent && o.id != but &&
				(point == o.point || strings.HasPrefix(point, strings.TrimSuffix(o.point, "/")+"/"))
		})
	}
	if slices.ContainsFunc(all, func(o mountEntry) bool { return o.parent == m.id && o.id != m.id && o.point == m.point }) {
		return true
	}
	for at := m; at != nil && at.id != at.parent; at = mountByID(all, at.parent) {
		if over(at.parent, at.id, at.point) {
			return true
		}
	}
	return false
}

// selinuxOn reports whether this kernel enforces or logs by labels: selinuxfs
// exists only there, and only there any filesystem shows seclabel.
func selinuxOn(all []mountEntry) bool {
	for _, m := range all {
		if m.fstype == "selinuxfs" || hasOption(m.super, "seclabel") {
			return true
		}
	}
	return false
}
