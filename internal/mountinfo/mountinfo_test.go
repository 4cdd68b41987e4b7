// SPDX-License-Identifier: Apache-2.0

package mountinfo

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseMountinfo(t *testing.T) {
	const line = `7 1 0:5 /a\040b /m\040t\011a\012b\134c\040-\040d\043 rw,noatime shared:12 master:1 - tmpfs no\040ne rw,seclabel`
	all, err := Parse(line + "\n")
	want := Mount{
		ID: 7, Parent: 1, Device: "0:5", Root: "/a b", Point: "/m t\ta\nb\\c - d#",
		FSType: "tmpfs", Super: "rw,seclabel",
	}
	if err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], want) {
		t.Errorf("%+v, %v; want %+v", all, err, want)
	}
	for _, c := range []struct {
		line, point string
		readOnly    bool
		off, on     string // why it has no labels where SELinux is off, and on
	}{
		{"7 1 0:5 / /\xff\r\u00a0 rw - tmpfs none rw,seclabel", "/\xff\r\u00a0", false, "", ""},
		{"36 35 98:0 / /mnt ro,relatime - ext4 /dev/root rw,seclabel", "/mnt", true, "", ""},
		{"36 35 98:0 / /mnt rw - ext4 /dev/root ro,seclabel", "/mnt", true, "", ""},
		{"36 35 98:0 / /ro rw,root - ro ro rw,errors=remount-ro,seclabel", "/ro", false, "", ""},
		{`36 35 0:9 / /nfs rw - nfs4 host:/x rw,context="system_u:object_r:nfs_t:s0:c1,c2"`, "/nfs", false, "context=", "context="},
		{"36 35 0:9 / /mnt rw - ext4 /dev/x rw,seclabel,defcontext=u:r:t:s0,rootcontext=u:r:t:s0", "/mnt", false, "", ""},
		{"36 35 0:9 / /fat rw - vfat /dev/x rw", "/fat", false, "", "(vfat) does not support labels: nothing to label there"},
	} {
		all, err := Parse(c.line)
		if err != nil || len(all) != 1 || all[0].Point != c.point || all[0].ReadOnly != c.readOnly {
			t.Errorf("%s: %+v, %v", c.line, all, err)
			continue
		}
		for selinux, want := range map[bool]string{false: c.off, true: c.on} {
			if why := all[0].Unlabelable(selinux); (why == "") != (want == "") || !strings.Contains(why, want) {
				t.Errorf("%s: SELinux %t: %q, want %q", c.line, selinux, why, want)
			}
		}
	}
}

// refused are lines that are none.
var refused = []string{
	"\n", "36 35 98:0 / /mnt rw ext4 /dev/root rw", "36 35 98:0 / /mnt - ext4 /dev/root rw", "36 35 98:0 / /mnt rw - ext4 /dev/root",
	"x 35 98:0 / /mnt rw - ext4 /dev/root rw", "36 -1 98:0 / /mnt rw - ext4 /dev/root rw", "36 35 98:0 / /mnt r",
	"1 18446744073709551616 3 4 5 6 - 7 8 9", "+1 2 3 4 5 6 - 7 8 9", "1 2 3 4 5 6 - 7 8",
}

// TestParseRefuses: a line that is none is an error, and no entry.
func TestParseRefuses(t *testing.T) {
	for _, line := range refused {
		if all, err := Parse(line); err == nil || len(all) > 0 {
			t.Errorf("%q: %+v, %v", line, all, err)
		}
	}
	for line, point := range map[string]string{
		`7 1 0:5 / /a\b\04\999\777\400\ rw - tm\040pfs none rw`: `/a\b\04\999\777\400\`, "1 18446744073709551615 3 4 5 6 7 - - - - 9": "5",
	} {
		if all, err := Parse(line); err != nil || len(all) != 1 || all[0].Point != point {
			t.Errorf("%q: %+v, %v", line, all, err)
		}
	}
}

func TestBeneath(t *testing.T) {
	var all []Mount
	for _, point := range []string{"/", "/a", "/ab", "/a/b", "/a/b/c", "/a/b", "/b"} {
		all = append(all, Mount{Point: point})
	}
	for path, want := range map[string][]string{
		"/":    {"/a", "/ab", "/a/b", "/a/b/c", "/a/b", "/b"},
		"/a":   {"/a/b", "/a/b/c", "/a/b"},
		"/a/b": {"/a/b/c"},
		"/b":   nil,
	} {
		var got []string
		for _, m := range Beneath(all, path) {
			got = append(got, m.Point)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("Beneath %s: %q, want %q", path, got, want)
		}
	}
}
