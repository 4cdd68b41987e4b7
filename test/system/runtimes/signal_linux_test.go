// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSignal ends the hook by a signal while the runtime waits for it. It has
// no child then, and nothing of it is left behind; the volume is sealed. That
// it was there to be signalled is the control.
func TestSignal(t *testing.T) {
	each(t, func(t *testing.T, c cell) {
		for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
			t.Run(unix.SignalName(sig), func(t *testing.T) {
				s := served(t)
				x := s.with(t, c, ours(s.hook, 0)).withLines()
				var r result
				var err error
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					r, err = x.run(t.Context())
				}()
				if pid := await(t, s.hook); pid > 0 {
					// Into the walk: the first labels are set.
					for end := time.Now().Add(patience); s.labels(t)[newLabel] == 0 && time.Now().Before(end); {
						time.Sleep(10 * time.Millisecond)
					}
					childless(t, pid)
					if err := unix.Kill(pid, sig); err != nil {
						t.Error(err)
					}
				}
				<-ended
				if err != nil {
					t.Fatal(err)
				}
				nobody(t, s.hook)
				r.stopped(t, "signalled")
				if sig == unix.SIGTERM {
					x.hasLines(t, r, ": "+guestVolume+": incomplete (interrupted by SIGTERM), ", "; the next try resumes")
				} else {
					t.Logf("%s says: %s", c.engine, strings.TrimSpace(r.said))
				}
				s.sealed(t)
				s.partly(t)
				s.retried(t, x)
			})
		}
	})
}
