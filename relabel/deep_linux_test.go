// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/internal/mounts"
)

// TestDeepPath: the path in a message has the root and the end of a deep path, and
// nobody looks at the directories between.
func TestDeepPath(t *testing.T) {
	m := &mount{Mount: &mounts.Mount{Path: "/root"}}
	top := &dir{mount: m}
	chain := func(d *dir, levels int) *dir {
		for range levels {
			d = d.child("d\x00", -1)
		}
		return d
	}
	if got, want := chain(top, 2000).path("f"), "/root"+strings.Repeat("/d", 2000)+"/f"; got != want {
		t.Errorf("2,000 levels: %d bytes, want %d", len(got), len(want))
	}
	unnamed := chain(top, 3).child("", -1) // whoever looks at its name panics
	got := chain(unnamed, 2*pathMost).path("f")
	if !strings.HasPrefix(got, "/root/…/d/d/") || !strings.HasSuffix(got, "/d/d/f") || len(got) < pathMost || len(got) > pathMost+20 {
		t.Errorf("%d bytes: %.20s", len(got), got)
	}
	defer func() {
		if recover() == nil {
			t.Error("control: an unnamed directory has a path")
		}
	}()
	unnamed.path("")
}
