// SPDX-License-Identifier: Apache-2.0

package mountinfo

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

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

// naiveMount reports whether a line is one of proc(5): six fields or more, a dash,
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

// FuzzMountinfo: any text is read as a naive reader reads it: an entry for each line
// that is one, and an error if one is none.
func FuzzMountinfo(f *testing.F) {
	for _, text := range []string{
		"",
		"36 35 98:0 / /mnt rw shared:1 - ext4 /dev/root rw,seclabel\n",
		"36 35 98:0 / /mnt rw - ext4 /dev/root rw\n\n",
		"36 35 98:0 / /mnt rw ext4 /dev/root rw\n36 35 98:0 / /mnt rw - ext4 /dev/root rw\n",
		"36 35 98:0 / /mnt - ext4 /dev/root rw\n",
		"36 35 98:0 / /mnt rw - ext4 /dev/root rw\n36 35 98:0 / /mnt rw - ext4 /dev/root\n",
		"x 35 98:0 / /mnt rw - ext4 /dev/root rw\n",
		"36 -1 98:0 / /mnt rw - ext4 /dev/root rw\n",
		"36 35 98:0 / /mnt r\n", // cut off
		"36 35 98:0 / /" + strings.Repeat(`d\040/`, 1<<15) + " rw - ext4 /dev/root rw\n",
		`7 1 0:5 / /a\b\04\999\777\400\ rw - tm\040pfs none rw`,
		"1 2 3 4 \\ 6 - 7 8 9",
		"1 2 3 - 5 6 7 - 7 8 9",
		"1 18446744073709551616 3 4 5 6 - 7 8 9",
		"1 18446744073709551615 3 4 5 6 7 - - - - 9",
		"0 " + strings.Repeat("0", 101) + "7     -   ",
		"+1 2 3 4 5 6 - 7 8 9",
		"1 2 3 4 5 6 - 7 8 ",
		"1 2 3 4 5 6 - 7 8",
		"1 2   \\101\\ 6 - \\0571 8 ro,context\n1 2   5\r 6 - 7 8 context=\r\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bad, n := false, 0
		all, err := Parse(text)
		for line := range strings.Lines(text) {
			id, parent, point, fstype, super, ok := naiveMount(strings.TrimSuffix(line, "\n"))
			if !ok {
				bad = true
				continue
			}
			if n++; len(all) < n {
				t.Fatalf("%q: %d entries, and %q is another", text, len(all), line)
			}
			m := all[n-1]
			if fmt.Sprint(m.ID) != id || fmt.Sprint(m.Parent) != parent || m.Point != point || m.FSType != fstype || m.Super != super {
				t.Fatalf("%q\n%q is %+v", text, line, m)
			}
		}
		if (err != nil) != bad || len(all) != n {
			t.Fatalf("%q: %+v, %v; a bad line: %t", text, all, err, bad)
		}
	})
}
