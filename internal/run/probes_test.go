// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/internal/budget"
)

// TestProbeManyPaths: calls of one path hang, up to four and those that begin in the
// same second; of one path each, as many as hang in all. When they have returned nothing
// is left of them.
func TestProbeManyPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := 1 << 20
		all := func() int { return files }
		b := budget.New(1, all)
		p := NewProbes(b, all, func(hung []Call, cause error) error { return fmt.Errorf("%v: %w", hung, cause) })
		back := make(chan struct{})
		var wg sync.WaitGroup
		ask := func(path string, f func() error) error { return p.Ask(Call{Call: "Inspect", Path: path}, f) }
		hang := func(path string, n int) {
			for range n {
				wg.Go(func() {
					if err := ask(path, func() error { <-back; return nil }); err != nil {
						t.Errorf("%s: %v", path, err)
					}
				})
			}
			time.Sleep(2 * Limit)
			synctest.Wait()
		}
		answers := func(path string, calls int, hung string) {
			t.Helper()
			want := "<nil>"
			if calls > 0 {
				want = fmt.Sprintf("[%s]: %d earlier calls have not returned", hung, calls)
			}
			if err := ask(path, func() error { return nil }); fmt.Sprint(err) != want {
				t.Errorf("%s: %v, want %s", path, err, want)
			}
		}
		hang("/a", 1)
		hang("/b", probesHung)
		hang("/full", probesAtOnce-1-probesHung)
		answers("/a", 0, "")
		answers("/b", probesHung, "{Inspect /b}")
		holds(t, b, probesAtOnce*filesPerProbe)
		files = 2 * probesAtOnce * filesPerProbe
		answers("/c", probesAtOnce, "{Inspect /a} {Inspect /b} {Inspect /full}")
		files = 1 << 20
		answers("/c", 0, "")
		p.mu.Lock()
		p.all += manyProbesHung
		p.mu.Unlock()
		answers("/c", manyProbesHung+probesAtOnce, "{Inspect /a} {Inspect /b} {Inspect /full}")
		p.mu.Lock()
		p.all -= manyProbesHung
		p.mu.Unlock()
		close(back)
		wg.Wait()
		holds(t, b, 0)
		if len(p.places) != 0 || len(p.hung) != 0 || p.all != 0 {
			t.Errorf("left: %d places, %v, %d", len(p.places), p.hung, p.all)
		}
	})
}

func holds(t *testing.T, b *budget.Budget, files int) {
	t.Helper()
	if working, hung, open := b.Taken(); working+hung > 0 || open != files {
		t.Errorf("%d work, %d hang, %d open; want %d open", working, hung, open, files)
	}
}
