// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestClaim: what is written is read back, and nothing else is one.
func TestClaim(t *testing.T) {
	const want, old = "system_u:object_r:container_file_t:s0:c1,c2", "system_u:object_r:default_t:s0"
	for _, k := range []claim{{want, old, []string{"a", "b"}}, {want, "", nil}, {"a", "b", []string{"c"}}} {
		got := parseClaim(k.String())
		if got.want != k.want || got.seal != k.seal || !slices.Equal(got.former, k.former) {
			t.Errorf("%q: %+v", k, got)
		}
	}
	for _, text := range []string{
		"", "version=2", "version=1 want=a seal=b former=c", "version=3 want=a seal=b former=c", "version=2 wants=a seal=b former=", "version=2 want=a seal=b former",
		"version=2 want=a seal=b", "version=2 want=a former=c", "version=2 want=a seal=b c former=", "version=2 want=a seal=b more=1 former=c d", "version=2 want=a seal=b more=1",
	} {
		if k := parseClaim(text); k.want+k.seal != "" || k.former != nil {
			t.Errorf("%q is %+v", text, k)
		}
	}
}

// TestOursClock: the root is looked at also where the clock was put back, and not more
// often than it has to be.
func TestOursClock(t *testing.T) {
	c := &Root{FD: -1}
	c.enter(found, "", false)
	c.looked.Store(time.Now().Add(time.Hour).UnixNano())
	if err := c.Ours(); err != nil || c.sure.Load() == 0 {
		t.Errorf("it was not looked at: %v", err)
	}
	c.sure.Store(0)
	if err := c.Ours(); !errors.Is(err, ErrLate) || c.sure.Load() != 0 {
		t.Errorf("it was looked at again: %v", err)
	}
}
