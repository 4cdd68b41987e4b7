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

// TestGroupRefuses: what Tree would refuse at once is refused at once.
func TestGroupRefuses(t *testing.T) {
	var g Group
	if _, err := g.Tree(t.Context(), t.TempDir(), "container_file_t", SkipNone); !errors.Is(err, ErrLabel) {
		t.Error(err)
	}
	if r, err := g.Tree(t.Context(), "/no/such/volume", "u:r:t:s0:c1,c1", SkipNone); !errors.Is(err, fs.ErrNotExist) || r.Label != labelA {
		t.Errorf("%+v, %v", r, err)
	}
	if all := g.Pending(); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}
