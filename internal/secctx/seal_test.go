// SPDX-License-Identifier: Apache-2.0

package secctx

import (
	"slices"
	"testing"
)

func TestSeals(t *testing.T) {
	const ort = ":object_r:container_file_t:"
	for _, c := range []struct {
		old, want string
		seals     []string
	}{
		{"", "system_u" + ort + "s0", []string{"unconfined_u" + ort + "s0", "root" + ort + "s0", "staff_u" + ort + "s0"}},
		// Never system_u: runtimes ask for it.
		{"", "unconfined_u" + ort + "s0", []string{"root" + ort + "s0", "staff_u" + ort + "s0"}},
		{"", "user_u" + ort + "s0", []string{"unconfined_u" + ort + "s0", "root" + ort + "s0", "staff_u" + ort + "s0"}},
		// Whatever the old label is, one is left.
		{"unconfined_u" + ort + "s0", "system_u" + ort + "s0", []string{"root" + ort + "s0", "staff_u" + ort + "s0"}},
		{"unconfined_u" + ort + "s0\x00", "system_u" + ort + "s0", []string{"root" + ort + "s0", "staff_u" + ort + "s0"}},
		{"root" + ort + "s0", "unconfined_u" + ort + "s0", []string{"staff_u" + ort + "s0"}},
		// A private label has one more.
		{"", "system_u" + ort + "s0:c1,c2", []string{
			"unconfined_u" + ort + "s0:c1,c2", "root" + ort + "s0:c1,c2", "staff_u" + ort + "s0:c1,c2", "system_u" + ort + "s0:c1022,c1023",
		}},
		{"system_u" + ort + "s0:c1022,c1023", "system_u" + ort + "s0:c1,c2", []string{
			"unconfined_u" + ort + "s0:c1,c2", "root" + ort + "s0:c1,c2", "staff_u" + ort + "s0:c1,c2",
		}},
		{"", "system_u" + ort + "s0:c1022,c1023", []string{
			"unconfined_u" + ort + "s0:c1022,c1023", "root" + ort + "s0:c1022,c1023", "staff_u" + ort + "s0:c1022,c1023",
		}},
		{"", "root" + ort + "s1-s3:c4", []string{
			"unconfined_u" + ort + "s1-s3:c4", "staff_u" + ort + "s1-s3:c4", "root" + ort + "s3:c1022,c1023",
		}},
		// An old label in another form is the same label.
		{"unconfined_u" + ort + "s0:c1,c2,c3", "root" + ort + "s0:c3,c2,c1", []string{
			"staff_u" + ort + "s0:c1.c3", "root" + ort + "s0:c1022,c1023",
		}},
		{"rubbish", "u:r:t", []string{"unconfined_u:r:t", "root:r:t", "staff_u:r:t"}},
		{"", "container_file_t", nil},
		{"", "", nil},
	} {
		if got := Seals(c.old, c.want); !slices.Equal(got, c.seals) {
			t.Errorf("Seals(%q, %q)\n got %q\nwant %q", c.old, c.want, got, c.seals)
		}
	}
}
