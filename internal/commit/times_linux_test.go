// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/internal/sys"
)

// TestPassed: when the times of a root show a change after a look at them.
func TestPassed(t *testing.T) {
	at := time.Unix(1e9, 5e6)
	for name, c := range map[string]struct {
		kind int64
		age  time.Duration // by the filesystem's clock
		old  time.Duration // that of ctime, where mtime was set to whole seconds
		want bool
	}{
		"ext4":                    {sys.Ext4, 4 * time.Millisecond, 0, true},
		"the same tick":           {sys.XFS, 0, 0, false},
		"from the future":         {sys.Tmpfs, -time.Hour, 0, false},
		"of a server":             {0x6969, time.Second, 0, false},
		"of a server, old":        {0x6969, 3 * time.Second, 0, true},
		"inodes of 128 bytes":     {sys.Ext4, time.Second + 5*time.Millisecond, time.Second + 5*time.Millisecond, false},
		"of 128 bytes, old":       {sys.Ext4, 3*time.Second + 5*time.Millisecond, 3*time.Second + 5*time.Millisecond, true},
		"unpacked, and then made": {sys.Btrfs, time.Second + 5*time.Millisecond, time.Millisecond, true},
	} {
		tm := times{mtime: at.Add(-c.age), at: at.Add(time.Millisecond)}
		tm.ctime = tm.mtime
		if c.old != 0 {
			tm.ctime = at.Add(-c.old)
		}
		if precise(c.kind, tm) {
			tm.clock = at
		}
		if is := tm.passed(tm.mtime); is != c.want {
			t.Errorf("%s: %t", name, is)
		}
	}
}

// TestSetBack: a clock that was set back is noticed.
func TestSetBack(t *testing.T) {
	for _, c := range []struct {
		wall time.Duration // in which a minute went by
		want bool
	}{{time.Minute, false}, {time.Hour, false}, {time.Minute - 2*time.Second, true}, {-time.Hour, true}} {
		if is := setBack(c.wall, time.Minute); is != c.want {
			t.Errorf("%v: %t", c.wall, is)
		}
	}
}
