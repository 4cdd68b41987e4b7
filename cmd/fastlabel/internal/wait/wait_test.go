// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestInTurn: one begins when the one before has ended or stalls, as often as it says
// so and however late. What does not stall takes no goroutine of its own.
func TestInTurn(t *testing.T) {
	for _, stalling := range []map[int]bool{{}, {0: true}, {1: true, 2: true}, {3: true}, {0: true, 1: true, 2: true, 3: true}} {
		var mu sync.Mutex
		var did []string
		note := func(what string, i int) {
			mu.Lock()
			defer mu.Unlock()
			did = append(did, fmt.Sprint(what, i))
		}
		var late []func()
		release := make(chan struct{})
		treetest.Returns(t, "inTurn", func() {
			InTurn(4, func(i int, stalls func()) {
				note("begin", i)
				if !stalling[i] {
					late = append(late, stalls)
					note("end", i)
				}
				if i == 3 {
					close(release)
				}
				if stalling[i] {
					stalls()
					stalls()
					<-release
					note("end", i)
				}
			})
		})
		for _, stalls := range late {
			stalls()
		}
		var want []string
		for i := range 4 {
			want = append(want, fmt.Sprint("begin", i))
			if !stalling[i] {
				want = append(want, fmt.Sprint("end", i))
			}
		}
		if len(did) != 8 || !slices.Equal(did[:len(want)], want) {
			t.Errorf("%v stall: %v, want %v and the rest", stalling, did, want)
		}
	}
	goroutines := map[string]bool{}
	InTurn(100, func(int, func()) {
		id, _, _ := strings.Cut(string(debug.Stack()), "[")
		goroutines[id] = true
	})
	if len(goroutines) != 1 {
		t.Errorf("%d goroutines", len(goroutines))
	}
	treetest.Returns(t, "of none", func() { InTurn(0, nil) })
}
