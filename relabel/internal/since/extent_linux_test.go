// SPDX-License-Identifier: Apache-2.0

package since

import (
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// TestBeneath: what changed is read, and all beneath it where the directory that it is in
// changed too or it is another subvolume; what did not is not.
func TestBeneath(t *testing.T) {
	begin := time.Unix(1000, 0)
	const dev = 7
	for _, c := range []struct {
		in      Extent
		changed time.Duration // after begin
		dev     uint64
		want    Extent
	}{
		{Everything, -1, dev, Everything},
		{Everything, 1, dev, Everything},
		{Entries, 1, dev, Everything},
		{Entries, 0, dev, Everything}, // at that moment is not before it
		{Entries, -1, dev, Changes},
		{Entries, -1, dev + 1, Everything},
		{Changes, 1, dev, Entries},
		{Changes, -1, dev, Changes},
		{Changes, -1, dev + 1, Changes},
	} {
		if got := c.in.Beneath(sys.Stat{Ctime: begin.Add(c.changed), Dev: c.dev}, begin, dev); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
