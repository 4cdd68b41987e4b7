// SPDX-License-Identifier: Apache-2.0

package mountinfo

import (
	"strings"
	"testing"
)

// FuzzMountinfo: of any text each line is an entry or an error, whatever the others are.
func FuzzMountinfo(f *testing.F) {
	for _, text := range append([]string{
		"",
		"36 35 98:0 / /mnt rw shared:1 - ext4 /dev/root rw,seclabel\n",
		"36 35 98:0 / /mnt rw - ext4 /dev/root rw\n\n",
		"36 35 98:0 / /mnt rw ext4 /dev/root rw\n36 35 98:0 / /mnt rw - ext4 /dev/root rw\n",
		"36 35 98:0 / /mnt rw - ext4 /dev/root rw\n36 35 98:0 / /mnt rw - ext4 /dev/root\n",
		"36 35 98:0 / /" + strings.Repeat(`d\040/`, 1<<15) + " rw - ext4 /dev/root rw\n",
		`7 1 0:5 / /a\b\04\999\777\400\ rw - tm\040pfs none rw`,
		"1 2 3 4 \\ 6 - 7 8 9",
		"1 2 3 - 5 6 7 - 7 8 9",
		"1 18446744073709551615 3 4 5 6 7 - - - - 9",
		"0 " + strings.Repeat("0", 101) + "7     -   ",
		"1 2 3 4 5 6 - 7 8 ",
		"1 2   \\101\\ 6 - \\0571 8 ro,context\n1 2   5\r 6 - 7 8 context=\r\n",
	}, refused...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bad, n := false, 0
		all, err := Parse(text)
		for line := range strings.Lines(text) {
			alone, err := Parse(line)
			if bad = bad || err != nil; err != nil {
				continue
			}
			if len(alone) != 1 || n >= len(all) || alone[0] != all[n] {
				t.Fatalf("%q: %+v, and alone %q is %+v", text, all, line, alone)
			}
			n++
		}
		if (err != nil) != bad || len(all) != n {
			t.Fatalf("%q: %+v, %v; a bad line: %t", text, all, err, bad)
		}
	})
}
