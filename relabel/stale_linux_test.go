// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestStale: where a label that is read may be old, the server is asked before, of each
// entry, on all ways. The control is where it may not.
func TestStale(t *testing.T) {
	treetest.Need(t, "root", "strace")
	for way := range xattrio.Fastest() + 1 {
		for _, stale := range []bool{true, false} {
			root := grow(t, on(t, "tmpfs"), "default label="+newLabel+"\ndir .\nfile f%02d x40\ndir d%03d x100\nfile d%03d/f x100\n")
			calls, out, err := treetest.TraceCmd(t, child(t, fmt.Sprintf("stale %d %t", way, stale), root))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			read, asked := 0, 0
			for _, c := range treetest.After(calls, root) {
				switch args := fmt.Sprint(c.Args); {
				case c.Name == "getxattrat", c.Class() == treetest.ReadAttr && strings.Contains(args, xattrio.Attribute):
					read++
				case c.Name == "statx" && strings.Contains(args, "FORCE_SYNC"):
					asked++
				}
			}
			if read < 241 || stale && asked < read || !stale && asked > 8 {
				t.Errorf("%v, stale: %t: %d labels were read, and the server was asked %d times", way, stale, read, asked)
			}
		}
	}
}
