// SPDX-License-Identifier: Apache-2.0

package steal_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/internal/steal"
)

func TestPanic(t *testing.T) {
	for name, blow := range map[string]func(){
		"panic":  func() { panic("boom") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			rounds(t, 20, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				var open atomic.Int32
				begin := counted(&open, func(w *steal.Worker[int], item int) {
					time.Sleep(time.Hour) // all have begun, those without an item are parked
					if item == 2 {
						cancel(errCause) // a panic is not hidden by a cancel
						blow()
					}
					time.Sleep(time.Hour)
					if n := open.Load(); item == 1 && n != 1 {
						t.Errorf("an hour later %d workers are left", n)
					}
				})
				_, err := steal.Run(ctx, []int{1, 2}, crew(4, begin))
				p, ok := err.(*steal.Panic)
				if !ok {
					t.Fatalf("error %v", err)
				}
				if name == "panic" && p.Value != "boom" || !strings.HasPrefix(p.Error(), "a worker panicked: ") {
					t.Errorf("value %v, message %q", p.Value, p)
				}
				if !strings.Contains(string(p.Stack), "TestPanic") {
					t.Errorf("the stack does not lead here:\n%s", p.Stack)
				}
				if open.Load() != 0 {
					t.Errorf("%d not ended", open.Load())
				}
			})
		})
	}
}

func TestEndPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := steal.Run(t.Context(), []int{1}, steal.Job[int]{Begin: func(*steal.Worker[int]) (func(int), func(), error) {
			return func(int) {}, func() { panic("in end") }, nil
		}})
		if p, ok := err.(*steal.Panic); !ok || p.Value != "in end" {
			t.Errorf("error %v", err)
		}
	})
}

func TestBeginFails(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errCause },
		"panic": func() error { panic(errCause) },
	} {
		rounds(t, 20, func(t *testing.T) {
			var open atomic.Int32
			begin := counted(&open, func(w *steal.Worker[int], item int) {
				time.Sleep(2 * time.Hour)
				w.Push(item) // for ever, but for the stop
			})
			left, err := steal.Run(t.Context(), []int{1}, crew(4, func(w *steal.Worker[int]) (func(int), func(), error) {
				if w.ID() != 2 {
					return begin(w)
				}
				time.Sleep(time.Hour)
				return nil, func() { t.Error("end without a beginning") }, fail()
			}))
			p, _ := err.(*steal.Panic)
			if name == "error" && err != errCause || name == "panic" && (p == nil || p.Value != errCause) {
				t.Errorf("%s: error %v", name, err)
			}
			if !slices.Equal(left, []int{1}) || open.Load() != 0 {
				t.Errorf("%s: left %v, %d not ended", name, left, open.Load())
			}
		})
	}
}
