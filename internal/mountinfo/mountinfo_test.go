// SPDX-License-Identifier: Apache-2.0

package mountinfo

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseMountinfo(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       Mount // without its source and options
		super      string
		off, on    string // why it has no labels where SELinux is off, and on
	}{
		{
			name:  "plain",
			line:  "36 35 98:0 / /mnt rw,noatime - ext4 /dev/root rw,seclabel",
			want:  Mount{ID: 36, Parent: 35, Device: "98:0", Root: "/", Point: "/mnt", FSType: "ext4"},
			super: "rw,seclabel",
		},
		{
			name:  "optional fields",
			line:  "36 35 98:0 /in /mnt rw shared:12 master:1 propagate_from:2 unbindable - xfs /dev/x rw,seclabel",
			want:  Mount{ID: 36, Parent: 35, Device: "98:0", Root: "/in", Point: "/mnt", FSType: "xfs"},
			super: "rw,seclabel",
		},
		{
			name:  "escapes",
			line:  `7 1 0:5 /a\040b /m\040t\011a\012b\134c\040-\040d\043 rw - tmpfs no\040ne rw,seclabel`,
			want:  Mount{ID: 7, Parent: 1, Device: "0:5", Root: "/a b", Point: "/m t\ta\nb\\c - d#", FSType: "tmpfs"},
			super: "rw,seclabel",
		},
		{
			name:  "no escapes",
			line:  `7 1 0:5 / /a\b\04\999\777\ rw - tmpfs none rw,seclabel`,
			want:  Mount{ID: 7, Parent: 1, Device: "0:5", Root: "/", Point: `/a\b\04\999\777\`, FSType: "tmpfs"},
			super: "rw,seclabel",
		},
		{
			name:  "bytes that are no text",
			line:  "7 1 0:5 / /\xff\r\u00a0 rw - tmpfs none rw,seclabel",
			want:  Mount{ID: 7, Parent: 1, Device: "0:5", Root: "/", Point: "/\xff\r\u00a0", FSType: "tmpfs"},
			super: "rw,seclabel",
		},
		{
			name:  "the mount is read-only",
			line:  "36 35 98:0 / /mnt ro,relatime - ext4 /dev/root rw,seclabel",
			want:  Mount{ID: 36, Parent: 35, Device: "98:0", Root: "/", Point: "/mnt", FSType: "ext4", ReadOnly: true},
			super: "rw,seclabel",
		},
		{
			name:  "the filesystem is read-only",
			line:  "36 35 98:0 / /mnt rw - ext4 /dev/root ro,seclabel",
			want:  Mount{ID: 36, Parent: 35, Device: "98:0", Root: "/", Point: "/mnt", FSType: "ext4", ReadOnly: true},
			super: "ro,seclabel",
		},
		{
			name:  "ro in other words",
			line:  "36 35 98:0 / /ro rw,root - ro ro rw,errors=remount-ro,seclabel",
			want:  Mount{ID: 36, Parent: 35, Device: "98:0", Root: "/", Point: "/ro", FSType: "ro"},
			super: "rw,errors=remount-ro,seclabel",
		},
		{
			name:  "one label for all",
			line:  `36 35 0:9 / /nfs rw - nfs4 host:/x rw,context="system_u:object_r:nfs_t:s0:c1,c2"`,
			want:  Mount{ID: 36, Parent: 35, Device: "0:9", Root: "/", Point: "/nfs", FSType: "nfs4"},
			super: `rw,context="system_u:object_r:nfs_t:s0:c1,c2"`,
			off:   "context=", on: "context=",
		},
		{
			name:  "other contexts",
			line:  "36 35 0:9 / /mnt rw - ext4 /dev/x rw,seclabel,defcontext=u:r:t:s0,rootcontext=u:r:t:s0",
			want:  Mount{ID: 36, Parent: 35, Device: "0:9", Root: "/", Point: "/mnt", FSType: "ext4"},
			super: "rw,seclabel,defcontext=u:r:t:s0,rootcontext=u:r:t:s0",
		},
		{
			name:  "no labels",
			line:  "36 35 0:9 / /fat rw - vfat /dev/x rw",
			want:  Mount{ID: 36, Parent: 35, Device: "0:9", Root: "/", Point: "/fat", FSType: "vfat"},
			super: "rw",
			on:    "(vfat) does not support labels",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, text := range []string{c.line, c.line + "\n"} {
				all, err := Parse(text)
				if err != nil || len(all) != 1 {
					t.Fatalf("%v, %v", all, err)
				}
				c.want.Super, c.want.Options, c.want.Source = c.super, all[0].Options, all[0].Source
				if !reflect.DeepEqual(all[0], c.want) {
					t.Errorf("%+v, want %+v", all[0], c.want)
				}
				for selinux, want := range map[bool]string{false: c.off, true: c.on} {
					if why := all[0].Unlabelable(selinux); (why == "") != (want == "") || !strings.Contains(why, want) {
						t.Errorf("SELinux %t: %q, want %q", selinux, why, want)
					}
				}
			}
		})
	}
}

// TestParseAllocates: mounts cost no memory of their own beside the table of them.
func TestParseAllocates(t *testing.T) {
	table := strings.Repeat("36 35 98:0 / /mnt rw,nosuid shared:1 - ext4 /dev/root rw,seclabel,data=ordered\n", 2000)
	if n := testing.AllocsPerRun(10, func() { _, _ = Parse(table) }); n > 1 {
		t.Errorf("%.0f allocations for 2,000 mounts", n)
	}
}

func TestParseMountinfoErrors(t *testing.T) {
	const good = "36 35 98:0 / /mnt rw - ext4 /dev/root rw\n"
	for _, bad := range []string{
		"\n",
		"36 35 98:0 / /mnt rw ext4 /dev/root rw\n",
		"36 35 98:0 / /mnt - ext4 /dev/root rw\n",
		"36 35 98:0 / /mnt rw - ext4 /dev/root\n",
		"x 35 98:0 / /mnt rw - ext4 /dev/root rw\n",
		"36 -1 98:0 / /mnt rw - ext4 /dev/root rw\n",
		"36 99999999999999999999 98:0 / /mnt rw - ext4 /dev/root rw\n",
		"36 35 98:0 / /mnt r\n", // cut off
	} {
		for _, text := range []string{bad, good + bad, bad + good} {
			if all, err := Parse(text); err == nil {
				t.Errorf("%q gives %+v", text, all)
			}
		}
	}
	if all, err := Parse(""); err != nil || len(all) != 0 {
		t.Errorf("nothing gives %v, %v", all, err)
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
