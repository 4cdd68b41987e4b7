// SPDX-License-Identifier: Apache-2.0

package site

import (
	"testing"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// Which served filesystem a path names is found without asking any, and whether
// there is one.
func TestServerOf(t *testing.T) {
	group := func(point, fstype, path string) (found []string) {
		_, found = Mounts{{Point: "/", FSType: "ext4"}, {Point: point, FSType: fstype}, {Point: "/tmp/nfs/local", FSType: "xfs"}}.Part([]string{path})
		return found
	}
	t.Chdir("/tmp")
	for path, want := range map[string]bool{
		"/tmp": false, "/tmp/nfs": true, "/tmp/nfs/": true, "/tmp/./nfs/../nfs//deep/below": true, "nfs/x": true, "../tmp/nfs": true,
		"/tmp/nfs/local": true, // the way leads through it
		"other":          false, "/tmp/nfs/..": false, "/tmp/nfss": false, "/": false,
	} {
		if got := group("/tmp/nfs", "nfs4", path); (len(got) > 0) != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := group("/", "fuseblk", "x"); len(got) == 0 {
		t.Error("the top of all")
	}
	if got := group("/proc/sys/fs/binfmt_misc", "autofs", "/proc/sys/fs/binfmt_misc/x"); len(got) > 0 {
		t.Errorf("the kernel's own automount: %q", got)
	}
	for fstype, want := range map[string]bool{
		"nfs": true, "cifs": true, "fuse": true, "fuse.sshfs": true, "autofs": true, "ext4": false, "tmpfs": false, "overlay": false, "fusectl": false,
	} {
		if served(mountinfo.Mount{Point: "/mnt", FSType: fstype}) != want {
			t.Errorf("%s: %v", fstype, !want)
		}
	}
}
