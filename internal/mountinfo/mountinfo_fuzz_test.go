// SPDX-License-Identifier: Apache-2.0

package mountinfo

import (
	"fmt"
	"math/big"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// escape writes s as the kernel does (mangle_path and string_escape_mem): each
// of these bytes as a backslash and three octal digits.
func escape(s, these string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(these, s[i]) >= 0 {
			fmt.Fprintf(&b, `\%03o`, s[i])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// What the kernel escapes: in a path (fs/proc_namespace.c, show_mountinfo), in
// a type or source (mangle there), and in the value of an option
// (seq_show_option).
const (
	inPath   = " \t\n\\"
	inType   = " \t\n\\#" // the '#' not in older kernels
	inOption = ", \t\n\\"
)

// madeMount is a mount and what the kernel would say of it.
type madeMount struct {
	entry   Mount
	context bool // mounted with context=
	line    string
}

// makeMounts makes a mount of each line of points, and all else of salt.
func makeMounts(points, fstype, source, value string, salt uint64) (all []madeMount) {
	for line := range strings.SplitSeq(points, "\n") {
		if strings.Contains(line, "\x00") {
			continue // no name has it
		}
		salt = salt*6364136223846793005 + 1442695040888963407 // Knuth's, MMIX
		bit := func(n int) bool { return salt>>(20+n)&1 != 0 }
		// A name may hold a newline, which here stands between points.
		point := path.Clean("/" + strings.ReplaceAll(line, "\r", "\n"))
		m := madeMount{entry: Mount{ID: salt >> 32, Parent: salt, Point: point, FSType: fstype}}
		if bit(0) {
			m.entry.FSType = "selinuxfs"
		}
		own, super := []string{"rw"}, []string{"rw"}
		if bit(1) {
			own = []string{"ro", "nosuid"}
		}
		if bit(2) {
			super[0] = "ro"
		}
		m.entry.ReadOnly = bit(1) || bit(2)
		m.entry.Options, m.entry.Source = strings.Join(own, ","), source
		if bit(3) {
			super = append(super, "seclabel")
		}
		super = append(super, "lowerdir="+escape(value, inOption), "errors=remount-ro", "rootcontext=u:r:t:s0")
		if bit(4) {
			super, m.context = append(super, `context="system_u:object_r:nfs_t:s0:c1`, `c2"`), true
		}
		m.entry.Super = strings.Join(super, ",") // rootcontext= is neither ro nor context=
		var tags string
		for i, tag := range []string{"shared:1", "master:22", "propagate_from:3", "unbindable"} {
			if bit(5 + i) {
				tags += " " + tag
			}
		}
		m.entry.Device, m.entry.Root = fmt.Sprintf("0:%d", salt%1000), "/"+value
		m.line = fmt.Sprintf("%d %d 0:%d %s %s %s%s - %s %s %s", m.entry.ID, m.entry.Parent, salt%1000,
			escape("/"+value, inPath), escape(point, inPath), strings.Join(own, ","), tags,
			escape(m.entry.FSType, inType), escape(source, inType), strings.Join(super, ","))
		all = append(all, m)
	}
	return all
}

var (
	octal  = regexp.MustCompile(`\\[0-3][0-7][0-7]`)
	digits = regexp.MustCompile(`^[0-9]+$`)
)

func naiveUnescape(s string) string {
	return octal.ReplaceAllStringFunc(s, func(o string) string {
		n, _ := strconv.ParseUint(o[1:], 8, 8)
		return string([]byte{byte(n)})
	})
}

// naiveMount says whether a line is one of proc(5): six fields or more, a dash,
// three fields or more, the first two of all being numbers.
func naiveMount(line string) (id, parent, point, fstype, super string, ok bool) {
	fields := strings.Split(line, " ")
	dash := 1 // the line cannot begin with it
	for dash < len(fields)-1 && fields[dash] != "-" {
		dash++
	}
	if dash < 6 || len(fields) < dash+4 {
		return "", "", "", "", "", false
	}
	id, ok = naiveNumber(fields[0])
	parent, okParent := naiveNumber(fields[1])
	return id, parent, naiveUnescape(fields[4]), naiveUnescape(fields[dash+1]), fields[dash+3], ok && okParent
}

// naiveNumber is s without zeros before it, if it is a number of 64 bits.
func naiveNumber(s string) (string, bool) {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || !digits.MatchString(s) || !n.IsUint64() {
		return "", false
	}
	return n.String(), true
}

// FuzzMountinfo: mounts that were written as the kernel writes them are read
// back as they were; any other text is read as a naive reader reads it, line by
// line.
func FuzzMountinfo(f *testing.F) {
	f.Add("/", "ext4", "/dev/root", "", uint64(0), "")
	f.Add("/mnt\n/mnt/a b\n/mnt/a b/c\\040d\n/mnt/\r", "fuse.x y#", "", "/lower,ro= -\\", uint64(1), "36 35 98:0 / /mnt rw shared:1 - ext4 /dev/root rw,seclabel\n")
	f.Add("/ - \n/a\n/ab\n/a/b\n/a/b\n\\134", "", "none", "a,context=", uint64(2), `7 1 0:5 / /a\b\04\999\777\400\ rw - tm\040pfs none rw`)
	f.Add("\xff\u00a0", " - ", " - ", " - ", uint64(3), "36 35 98:0 / /mnt rw - ext4 /dev/root rw\n\n")
	f.Add("a", "b", "c", "d", uint64(4), "1 2 3 4 \\ 6 - 7 8 9")
	f.Add("a", "b", "c", "d", uint64(5), "1 2 3 - 5 6 7 - 7 8 9")
	f.Add("a", "b", "c", "d", uint64(6), "1 18446744073709551616 3 4 5 6 - 7 8 9")
	f.Add("a", "b", "c", "d", uint64(7), "1 18446744073709551615 3 4 5 6 7 - - - - 9")
	f.Add("a", "b", "c", "d", uint64(8), "0 "+strings.Repeat("0", 101)+"7     -   ")
	f.Add("a", "b", "c", "d", uint64(8), "+1 2 3 4 5 6 - 7 8 9")
	f.Add("a", "b", "c", "d", uint64(9), "1 2 3 4 5 6 - 7 8 ")
	f.Add("a", "b", "c", "d", uint64(10), "1 2 3 4 5 6 - 7 8")
	f.Add("a", "b", "c", "d", uint64(11), "1 2   \\101\\ 6 - \\0571 8 ro,context\n1 2   5\r 6 - 7 8 context=\r\n")
	f.Fuzz(func(t *testing.T, points, fstype, source, value string, salt uint64, text string) {
		if len(points) > 1<<12 || strings.Contains(value, "\x00") {
			return
		}
		made := makeMounts(points, fstype, source, value, salt)
		var lines strings.Builder
		for _, m := range made {
			lines.WriteString(m.line + "\n")
		}
		all, err := Parse(lines.String())
		if err != nil || len(all) != len(made) {
			t.Fatalf("%q\n%d of %d entries, %v", lines.String(), len(all), len(made), err)
		}
		on := false
		for i, m := range made {
			if !reflect.DeepEqual(all[i], m.entry) {
				t.Fatalf("%q\n got %+v\nwant %+v", m.line, all[i], m.entry)
			}
			labels := strings.Contains(m.line, ",seclabel,")
			on = on || labels || m.entry.FSType == "selinuxfs"
			for _, selinux := range []bool{false, true} {
				if why := all[i].Unlabelable(selinux); (why != "") != (m.context || selinux && !labels) {
					t.Fatalf("%q\nSELinux %t: %q", m.line, selinux, why)
				}
			}
		}
		if SELinux(all) != on {
			t.Fatalf("%q\nSELinux on: %t", lines.String(), !on)
		}
		for i, m := range made {
			if i == 8 {
				break // it takes the square of this
			}
			var want []Mount
			for _, e := range all {
				for up := e.Point; up != "/"; {
					if up = path.Dir(up); up == m.entry.Point {
						want = append(want, e)
						break
					}
				}
			}
			if got := Beneath(all, m.entry.Point); !reflect.DeepEqual(got, want) {
				t.Fatalf("Beneath %q: %+v, want %+v", m.entry.Point, got, want)
			}
		}

		// Any text: an entry for each line that is one, and an error if one is none.
		bad, n := false, 0
		rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if text == "" {
			rows = nil
		}
		all, err = Parse(text)
		for i, row := range rows {
			id, parent, point, fstype, super, ok := naiveMount(row)
			if !ok {
				bad = true
				continue
			}
			if n++; len(all) < n {
				t.Fatalf("%q: %d entries, and line %d is another", text, len(all), i+1)
			}
			m := all[n-1]
			if fmt.Sprint(m.ID) != id || fmt.Sprint(m.Parent) != parent || m.Point != point || m.FSType != fstype || m.Super != super {
				t.Fatalf("%q\nline %d is %+v", text, i+1, m)
			}
		}
		if (err != nil) != bad || len(all) != n {
			t.Fatalf("%q: %+v, %v; a bad line: %t", text, all, err, bad)
		}
	})
}
