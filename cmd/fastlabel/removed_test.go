// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"strings"
	"testing"
)

// TestRemoved: what the release before had is refused, nothing is begun, and the message
// says what to use instead.
func TestRemoved(t *testing.T) {
	expect := func(instead string, args ...string) {
		t.Helper()
		a := app{}
		var out, errs strings.Builder
		code := a.run(t.Context(), strings.NewReader(""), &out, &errs, args)
		if code != 2 || out.Len() > 0 || !strings.Contains(errs.String(), "was removed: "+instead) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want exit 2 and %q", args, code, &out, &errs, instead)
		}
	}
	for flag, instead := range maps.All(removedFlags) {
		expect(instead, "--"+flag, "1", "/srv/volume")
	}
	for command, instead := range maps.All(removedCommands) {
		expect(instead, command, "/srv/volume")
	}
}
