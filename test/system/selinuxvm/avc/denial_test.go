// SPDX-License-Identifier: Apache-2.0

package avc

import (
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	cases := []struct {
		text string
		want Denial
		is   bool
	}{
		{
			`audit(1763769600.123:45): avc:  denied  { read open } for  pid=321 comm="cat" name="f" dev="vdc" ino=12 scontext=system_u:system_r:container_t:s0:c1,c2 tcontext=system_u:object_r:user_home_t:s0 tclass=file permissive=0`,
			Denial{
				Permissions: []string{"read", "open"}, Source: "system_u:system_r:container_t:s0:c1,c2",
				Target: "system_u:object_r:user_home_t:s0", Class: "file", Comm: "cat", Name: "f",
			},
			true,
		},
		{
			`audit(1.2:3): avc:  denied  { search } for  pid=1 comm=6120620A path=2F6120FF dev="vdc" ino=2 scontext=u:r:t:s0 tcontext=u:r:t:s0 tclass=dir permissive=1`,
			Denial{
				Permissions: []string{"search"}, Source: "u:r:t:s0", Target: "u:r:t:s0",
				Class: "dir", Comm: "a b\n", Name: "/a \xff", Permissive: true,
			},
			true,
		},
		{`audit(1.2:3): avc:  granted  { read } for  pid=1 scontext=a tcontext=b tclass=file`, Denial{}, false},
		{`audit(1.2:3): avc:  denied  { read`, Denial{}, false},
		{`audit(1.2:3): op=security_compute_sid invalid_context="a" scontext=a tcontext=b tclass=file`, Denial{}, false},
		{"", Denial{}, false},
	}
	for _, c := range cases {
		if c.is {
			c.want.Text = c.text
		}
		got, is := parse(c.text)
		if is != c.is || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v %v, not\n%+v %v", c.text, got, is, c.want, c.is)
		}
	}
}
