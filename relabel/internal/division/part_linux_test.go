// SPDX-License-Identifier: Apache-2.0

package division

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/sys"
)

// kindAt is where a directory record has the kind.
const kindAt = sys.NameAt - 1

// TestOwn: each record is of one shard, but for directories above the level at which the
// tree is divided; what has no kind there may be one.
func TestOwn(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint("dir", i)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fd, e := sys.Openat(sys.AtFdcwd, sys.Cname(dir), sys.OpenDir, 0)
	if e != 0 {
		t.Fatal(e)
	}
	defer sys.Close(fd)
	all := make([]byte, 64<<10)
	n := 0
	for { // a call may give a few of them alone
		more, e := sys.Getdents(fd, all[n:])
		if e != 0 {
			t.Fatal(e)
		}
		if more == 0 {
			break
		}
		n += more
	}
	for _, c := range []struct {
		level   int
		unknown bool
		want    int // how often the 200 are met
	}{{0, false, 600}, {1, false, 200}, {1, true, 200}, {2, false, 400}, {2, true, 600}} {
		met := 0
		for i := range 3 {
			p := &Part{Index: i, Of: 3, Level: c.level}
			buf := append([]byte(nil), all[:n]...)
			for off := 0; c.unknown && off < n; {
				_, length, err := sys.Parse(buf[off:])
				if err != nil {
					t.Fatal(err)
				}
				buf[off+kindAt], off = byte(sys.KindUnknown), off+length
			}
			rest := buf
			if p.Divides(0) {
				rest = buf[:p.Keep("", 0, buf)]
			}
			for len(rest) > 0 {
				r, length, err := sys.Parse(rest)
				if err != nil {
					t.Fatal(err)
				}
				if rest = rest[length:]; !sys.IsDot(r.Name) {
					met++
				}
			}
		}
		if met != c.want {
			t.Errorf("%+v: %d", c, met)
		}
	}
}
