// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"context"
	"errors"
	"testing"
)

// TestRevokeLate: once Close has returned, a late end of the run leaves the
// root alone: its descriptor may be that of another directory by then.
func TestRevokeLate(t *testing.T) {
	closed := false
	c := &Root{have: "a", Run: Run{
		FD: -1, Want: "a",
		At: func(string) {},
		Note: func(format string, args ...any) {
			if closed { // it tried, on a descriptor that is another's by now
				t.Errorf("after Close: "+format, args...)
			}
		},
		Failed:  func() error { return nil },
		Written: func() int64 { return 0 },
	}}
	c.leaves("a")
	if err := c.Close(t.Context(), context.Canceled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	closed = true
	c.Revoke()
}
