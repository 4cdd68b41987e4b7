// SPDX-License-Identifier: Apache-2.0

package mountinfo

import "slices"

// HostsOwn are directories in which nothing is a container's volume.
var HostsOwn = []string{"/dev", "/etc", "/proc", "/run", "/sys", "/usr"}

// NeverWhole are never relabelled themselves; what lies below them may be. The list is
// go-selinux's, which every container runtime goes by.
var NeverWhole = slices.Concat([]string{"/"}, HostsOwn, []string{
	"/bin", "/boot", "/etc/passwd", "/etc/pki", "/etc/shadow", "/home", "/lib", "/lib64", "/media",
	"/opt", "/root", "/sbin", "/srv", "/tmp", "/var", "/var/lib", "/var/log",
})
