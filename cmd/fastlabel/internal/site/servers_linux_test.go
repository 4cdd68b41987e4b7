// SPDX-License-Identifier: Apache-2.0

package site

import (
	"testing"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// Which served filesystem a path names is found without asking any, and whether
// there is one.
func TestServerOf(t *testing.T) {
	const nfs = "/vol/nfs"
	mounts := map[string]string{
		"/": "ext4", "/proc": "proc", nfs: "nfs4", nfs + "/local": "xfs", "/volume": "fuse.sshfs",
		"/proc/sys/fs/binfmt_misc": "autofs", "/home": "autofs",
	}
	group := func(mounts map[string]string, path string) string {
		points := map[string]bool{}
		for point, fstype := range mounts {
			if served(mountinfo.Mount{Point: point, FSType: fstype}) {
				points[point] = true
			}
		}
		return nearest(points, "/vol", path)
	}
	for path, want := range map[string]string{
		"/vol": "", "/vol/nfs": nfs, "/vol/nfs/": nfs, "/vol/./nfs/../nfs//deep/below": nfs, "nfs/x": nfs, "../vol/nfs": nfs,
		"/vol/nfs/local": nfs, // the way leads through it
		"/vol/sub":       "", "other": "", "/vol/nfs/..": "", "/volume/x": "/volume", "/volumes": "", "/": "", "/home/x": "/home",
		"/proc/sys/fs/binfmt_misc/x": "",
	} {
		if point := group(mounts, path); point != want {
			t.Errorf("%s: %q", path, point)
		}
	}
	if point := group(map[string]string{"/": "fuseblk"}, "x"); point != "/" {
		t.Errorf("the root: %q", point)
	}
	for fstype, want := range map[string]bool{
		"nfs": true, "nfs4": true, "cifs": true, "smb3": true, "fuse": true, "fuse.sshfs": true, "9p": true, "ceph": true,
		"ext4": false, "xfs": false, "tmpfs": false, "overlay": false, "proc": false, "btrfs": false, "fusectl": false,
	} {
		if served(mountinfo.Mount{Point: "/mnt", FSType: fstype}) != want {
			t.Errorf("%s: %v", fstype, !want)
		}
	}
}
