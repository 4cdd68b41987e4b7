// SPDX-License-Identifier: Apache-2.0

package site

import (
	"testing"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// A label in the mount's options may have commas, in quotes then.
func TestNoLabels(t *testing.T) {
	for want, super := range map[string][]string{
		"mounted with context=system_u:object_r:container_file_t:s0:c1,c2": {"rw", `context="system_u:object_r:container_file_t:s0:c1`, `c2"`},
		"": {"rw"},
	} {
		if got := noLabels(mountinfo.Mount{Super: super}, false); got != want {
			t.Errorf("%q: %q", super, got)
		}
	}
}
