// SPDX-License-Identifier: Apache-2.0

package site

import (
	"testing"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// A directory for a volume is found by its name in its filesystem, wherever it is bound.
func TestUnmounted(t *testing.T) {
	const (
		root   = "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		pods   = "/var/lib/kubelet/pods/u/volumes/"
		csi    = pods + "kubernetes.io~csi/pv/mount"
		bound  = root + "31 30 8:1 " + csi + "/a /volume rw - ext4 /dev/sda1 rw\n"
		volume = root + "31 30 8:16 / " + csi + " rw - xfs /dev/sdb rw\n"
		local  = root + "31 30 8:1 /mnt/data " + pods + "kubernetes.io~local-volume/pv rw - ext4 /dev/sda1 rw\n"
	)
	for _, c := range []struct{ table, path, want string }{
		{root, csi, "kubernetes.io/csi"},
		{root, csi + "/sub/", "kubernetes.io/csi"},
		{root, "/mnt/data", ""},
		{root, pods, ""},
		{bound, "/volume", "kubernetes.io/csi"},
		{bound, "/volume/../volume/sub", "kubernetes.io/csi"},
		{bound, "/volumes", ""},
		{volume, csi, ""},
		{volume, csi + "/sub", ""},
		{local, pods + "kubernetes.io~local-volume/pv", ""},
		{root + "31 30 8:1 " + csi + " /volume rw - ext4 /dev/sda1 rw\n" + "32 31 8:16 / /volume rw - xfs /dev/sdb rw\n", "/volume", ""},
		{root, pods + "kubernetes.io~empty-dir/scratch", ""},
		{"", csi, ""},
	} {
		all, _ := mountinfo.Parse(c.table)
		if got := Mounts(all).Unmounted([]string{c.path}); got[c.path] != c.want {
			t.Errorf("%s of\n%s: %v", c.path, c.table, got)
		}
	}
}
