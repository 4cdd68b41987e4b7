// SPDX-License-Identifier: Apache-2.0

//go:build race

package steal

import (
	"math/rand/v2"
	"runtime"
	"time"
)

// pause stands between two steps whose order matters (pool.go), so that tests meet schedules
// which are rare on an idle machine. It is never inside a lock: tests run in synctest bubbles,
// whose clock stands still while a goroutine waits for a mutex, and a sleeper that held it would
// never wake. The odds are a guess that was seen to kill every mutant (test/mutants). In a bubble a
// sleep of any length means "not before all others are blocked", the worst schedule there is.
func pause() {
	switch rand.IntN(8) {
	case 0:
		time.Sleep(time.Duration(1 + rand.IntN(20000)))
	case 1, 2:
		runtime.Gosched()
	}
}
