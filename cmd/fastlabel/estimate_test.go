// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestEstimate(t *testing.T) {
	steady := func(sec int) int64 { return int64(sec) * 1000 }
	for name, c := range map[string]struct {
		seen  func(sec int) int64
		at    int
		total int64
		rate  float64
		want  string
	}{
		"steady":     {steady, 100, 350_000, 1000, "3 to 5 min left"},
		"soon":       {steady, 100, 105_000, 1000, "less than 10 s left"},
		"seconds":    {steady, 100, 150_000, 1000, "40 to 60 s left"},
		"hours":      {steady, 100, 30_000_000, 1000, "7 to 10 h left"},
		"early":      {steady, 2, 350_000, 1000, ""},
		"unknown":    {steady, 100, 0, 1000, ""},
		"past":       {steady, 100, 90_000, 1000, ""},
		"stands":     {func(sec int) int64 { return int64(min(sec, 90)) * 1000 }, 100, 350_000, 0, ""},
		"slower":     {func(sec int) int64 { return int64(min(sec, 95)*1000 + max(0, sec-95)*500) }, 100, 350_000, 500, "3 to 10 min left"},
		"no knowing": {func(sec int) int64 { return int64(min(sec, 95)*1000 + max(0, sec-95)*100) }, 100, 350_000, 100, ""},
		"for ever":   {func(sec int) int64 { return int64(sec) }, 100, 1 << 60, 1, ""},
	} {
		began := time.Unix(1e9, 0)
		e := newEstimate(began)
		for sec := range c.at {
			e.add(began.Add(time.Duration(sec)*time.Second), c.seen(sec))
			e.add(began.Add(time.Duration(sec)*time.Second+time.Millisecond), 0) // too soon
		}
		now := began.Add(time.Duration(c.at) * time.Second)
		if rate := e.over(recent, now, c.seen(c.at)); rate < 0.99*c.rate || rate > 1.01*c.rate {
			t.Errorf("%s: %v entries a second, not %v", name, rate, c.rate)
		}
		got := ""
		if least, most, ok := e.left(now, c.seen(c.at), c.total); ok {
			got = between(least, most)
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
		if len(e.samples) > 60 {
			t.Errorf("%s: %d samples are kept", name, len(e.samples))
		}
	}
}
