// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"io/fs"
	"testing"
	"time"
)

const (
	labelA = "u:r:t:s0:c1"
	labelB = "u:r:t:s0:c2"
)

// TestPending: a caller who leaves is told how far the work is, how to go on, and why it was
// sent away.
func TestPending(t *testing.T) {
	for _, c := range []struct {
		work   Work
		within time.Duration
		want   string
	}{
		{Work{}, 2 * time.Minute, "after 5s; ask again within 2m0s"},
		{Work{Entries: 1, Waits: "the relabel to " + labelA}, time.Second, "1 entry after 5s, waiting for the relabel to u:r:t:s0:c1; ask again within 1s"},
		{Work{Entries: 1_203_001}, time.Minute, "1,203,001 entries after 5s; ask again within 1m0s"},
	} {
		c.work.Root, c.work.Elapsed = "/v", 5*time.Second
		err := &PendingError{Work: c.work, Within: c.within, Cause: fs.ErrClosed}
		if want := `"/v": relabelling continues: ` + c.want; err.Error() != want || !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%v\nnot\n%s", err, want)
		}
	}
}
