// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// How many entries there are is told of whole filesystems that count them.
func TestIsWhole(t *testing.T) {
	const table = `20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 8:2 / /srv\040v rw - xfs /dev/sdb rw
22 20 8:3 / /srv rw - ext4 /dev/sdc rw
23 22 8:3 /part /srv/part rw - ext4 /dev/sdc rw
24 20 0:5 / /tmp rw - tmpfs tmpfs rw
25 20 0:6 / /nfs rw - nfs4 host:/x rw
26 20 0:7 / /lower rw - ext4 /dev/sdd rw
27 26 0:8 / /lower rw - overlay overlay rw
`
	for _, c := range []struct {
		path        string
		whole, xdev bool // with all mounts, and with -x
	}{
		{"/srv v", true, true},
		{"/srv", false, true},
		{"/", false, true},
		{"/srv/part", false, false},
		{"/srv v/dir", false, false},
		{"/tmp", false, false},
		{"/nfs", false, false},
		{"/lower", false, false},
	} {
		if a, b := isWhole(table, c.path, false), isWhole(table, c.path, true); a != c.whole || b != c.xdev {
			t.Errorf("%s: %t, and with -x %t", c.path, a, b)
		}
	}
	if n := entriesOf(t.TempDir(), &settings{}); n != 0 {
		t.Errorf("a directory has %d entries", n)
	}
	if n := entriesOf("nothere", &settings{}); n != 0 {
		t.Errorf("what is not there has %d entries", n)
	}
	if n := entriesOf("/", &settings{exclude: []string{os.TempDir()}, xdev: true}); n != 0 {
		t.Errorf("but for an exclusion there are %d entries", n)
	}
}
