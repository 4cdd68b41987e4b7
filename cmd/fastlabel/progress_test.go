// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// slow is an engine that meets 1,000 entries a second, one of a thousand of
// which fails, for so many seconds.
func slow(seconds int) app {
	a := fake()
	a.tree = func(ctx context.Context, root, _ string, o *relabel.Options, check bool) (relabel.Report, error) {
		began := time.Now()
		state := func() relabel.State {
			n := min(time.Since(began), time.Duration(seconds)*time.Second).Milliseconds()
			s := relabel.State{
				Counts: relabel.Counts{Seen: n, Written: n - n/1000 - 1, Skipped: 1, Failed: n / 1000}, Found: n / 10, Entered: n / 20,
				Path: root + "/sub\x1b[31m\xff\n",
			}
			return s
		}
		begins(o, state)
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
		}
		s := state()
		return relabel.Report{Root: root, Counts: relabel.Counts{Seen: s.Seen, Written: s.Written + 1, Failed: s.Failed}, Complete: ctx.Err() == nil, Elapsed: time.Since(began)}, ctx.Err()
	}
	return a
}

// played runs the command in a time of its own.
func played(t *testing.T, a app, args string) (stdout, stderr string) {
	var out, err bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		a.run(t.Context(), strings.NewReader(""), &out, &err, strings.Fields(args))
	})
	return out.String(), err.String()
}

// Who is not a terminal gets a line every 5 s if it was asked for, and else
// nothing.
func TestProgressPlain(t *testing.T) {
	for args, want := range map[string]string{
		"--progress=plain /q": "fastlabel: /q: 5,000 entries, 5 failed, 0:05 elapsed, 1,000/s, 500 directories found so far, \"/q/sub\\x1b[31m\\xff\\n\"\n*19",
		"-p /q":               "fastlabel: /q: 5,000 entries, 5 failed, 0:05 elapsed, 1,000/s, 500 directories found so far, \"/q/sub\\x1b[31m\\xff\\n\"\n*19",
		"/p":                  "fastlabel: /p: incomplete, 95,000 entries, 94,905 written, 95 failed, 95.0 s, 1,000/s; label " + defaultLabel + "\n",
		"-q -p /p":            "",
	} {
		out, got := played(t, slow(95), args)
		if first, _, ok := strings.Cut(want, "*19"); ok && strings.HasPrefix(got, first) && (strings.Count(got, "\n")+1)/2 == 10 {
			got = want // each five seconds; the last as it ends, or not
		}
		if got != want || out != "" {
			t.Errorf("%s: %q, and\n%s\nnot\n%s", args, out, got, want)
		}
	}
	// Of several PATHs each has its own time.
	if _, got := played(t, slow(40), "-p /p /q"); !strings.Contains(got, "fastlabel: /q: 20,000 entries, 20 failed, 0:20 elapsed, 1,000/s, ") {
		t.Error(got)
	}
}

// With --json there is an object each second, with counts that add up.
func TestProgressJSON(t *testing.T) {
	out, stderr := played(t, slow(5), "--json -p /p")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) < 5 || len(lines) > 6 || stderr != "" {
		t.Fatalf("%d lines, %q\n%s", len(lines), stderr, out)
	}
	for i, line := range lines[:len(lines)-1] {
		var s map[string]any
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		n := func(key string) float64 { f, _ := s[key].(float64); return f }
		if s["message_type"] != "status" || n("seconds") != float64(i+1) || n("rate") != 1000 ||
			n("seen") != float64(i+1)*1000 || n("seen") != n("written")+n("right")+n("vanished")+n("skipped")+n("failed") {
			t.Error(line)
		}
	}
	if out, _ := played(t, slow(5), "--json /p"); strings.Count(out, "\n") != 1 {
		t.Errorf("without -p:\n%s", out)
	}
}

// What is said of the end: per cent and the time left where there is a bound that
// has not been passed, and the time left only while entries are what is waited for.
func TestProgressBound(t *testing.T) {
	steady := func(sec int64) int64 { return sec * 1000 }
	for name, c := range map[string]struct {
		seen       func(sec int64) int64
		at         int64
		inodes     int64
		call, want string
	}{
		"no bound":         {steady, 42, 0, "", "42,000 entries, 0:42 elapsed, 1,000/s, 0 directories found so far"},
		"inodes":           {steady, 42, 69_000, "", "42,000 of at most 69,000 (60%), 0:42 elapsed, about 0:27 left, 1,000/s"},
		"passed":           {steady, 42, 41_999, "", "42,000 entries, 0:42 elapsed, 1,000/s, 0 directories found so far"},
		"not yet the end":  {steady, 42, 42_000, "", "42,000 of at most 42,000 (99%), 0:42 elapsed, 1,000/s"},
		"part of a second": {steady, 42, 42_001, "", "42,000 of at most 42,001 (99%), 0:42 elapsed, about 0:01 left, 1,000/s"},
		"the disk":         {steady, 42, 42_011, "syncfs", "42,000 of at most 42,011 (99%), 0:42 elapsed, 1,000/s, in syncfs"},
		"too early":        {steady, 2, 69_000, "", "2,000 of at most 69,000 (2%), 0:02 elapsed, 1,000/s"},
		"stands":           {func(int64) int64 { return 1000 }, 42, 69_000, "", "1,000 of at most 69,000 (1%), 0:42 elapsed, about 47:36 left, 24/s"},
		"slower at last":   {func(sec int64) int64 { return min(sec, 30)*1000 + max(0, sec-30)*100 }, 42, 69_000, "", "31,200 of at most 69,000 (45%), 0:42 elapsed, about 0:51 left, 743/s"},
		"hours":            {steady, 3661, 20_000_000, "", "3,661,000 of at most 20,000,000 (18%), 1:01:01 elapsed, about 4:32:19 left, 1,000/s"},
		"for ever":         {steady, 42, 1 << 60, "", "42,000 of at most 1,152,921,504,606,846,976 (0%), 0:42 elapsed, 1,000/s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &progress{inodes: func(path string) int64 { return map[string]int64{"/p": c.inodes}[path] }}
			u, other := p.begin("/p"), p.begin("/other")
			began := u.began
			u.ask = func(*relabel.Progress) (relabel.State, bool) {
				return relabel.State{Counts: relabel.Counts{Seen: c.seen(int64(time.Since(began) / time.Second))}, Call: c.call}, true
			}
			other.ask = u.ask
			for range c.at {
				p.far(u, time.Now())
				p.far(other, time.Now())
				time.Sleep(time.Second)
			}
			if got := p.far(u, time.Now()).Line(words.Widest); got != c.want {
				t.Errorf("%s: %q, not %q", name, got, c.want)
			}
			if f := p.far(other, time.Now()); f.Total != 0 {
				t.Errorf("%s: another PATH has at most %d", name, f.Total)
			}
		})
	}
}

// The line on a terminal: at first none, then one that is never wider, and at
// last none.
func TestProgressLine(t *testing.T) {
	for _, size := range []int{20, 40, 80, 200} {
		for how, first := range map[pace]string{{drawn: true}: `^(\d+( of at most 4,000 \(\d%\)| entries)|\d%)`, {drawn: true, after: lasts}: `^(1,[01]00( of at most 4,000 \(2\d%\)| entries)|2\d%)`} {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				p := &progress{state: fakeState, screen: &stream.Screen{W: &b}, columns: func() (int, bool) { return size, true }, pace: how, began: time.Now(), inodes: func(string) int64 { return 4000 }}
				j := &job{app: slow(4), settings: &settings{}, Reporter: report.Reporter{Sink: &report.People{Out: stream.NewSink(&b, nil), Err: p.screen}}, progress: p}
				end := p.show()
				j.one(t.Context(), "/p")
				end()
				var on terminal
				on.feed(b.String())
				if len(on.faults) > 0 {
					t.Errorf("%d columns: %q", size, on.faults)
				}
				for _, l := range on.drawn {
					if len([]rune(l)) >= size {
						t.Errorf("%d columns: %s", size, l)
					}
				}
				if len(on.lines) != 1 || len(on.line) > 0 || len(on.drawn) < 25 || !regexp.MustCompile(first).MatchString(on.drawn[0]) {
					t.Errorf("%d columns: lines %q, left %q, %d drawn, first %q", size, on.lines, string(on.line), len(on.drawn), on.drawn)
				}
				last := on.drawn[len(on.drawn)-2]
				if size == 40 && !regexp.MustCompile(`^9[57]%, about 0:01 left, 3 failed`).MatchString(last) {
					t.Error(last)
				}
				if size == 200 && !regexp.MustCompile(`^3,[89]00 of at most 4,000 \(9[57]%\), 3 failed, 0:03 elapsed, about 0:01 left, 1,000/s, "/p/sub\\x1b\[31m\\xff\\n"$`).MatchString(last) {
					t.Error(last)
				}
			})
		}
	}
}

// --max-rate is kept to by one worker and by many, and by those who oversleep; who waits
// is let go when the run ends, and not before.
func TestLimiter(t *testing.T) {
	for _, c := range []struct {
		rate, workers int
		late          time.Duration
	}{{100, 1, 0}, {1000, 4, time.Millisecond}, {50_000, 16, 0}, {50_000, 48, 100 * time.Microsecond}, {10, 48, 0}, {1, 1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			const asked = 8
			long := time.Duration(max(2, 800/c.rate)) * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			j, o, began := &job{limiter: limiterOf(c.rate)}, new(relabel.Options), time.Now()
			j.watched(o, nil)
			var done atomic.Int64
			var all sync.WaitGroup
			for range c.workers {
				all.Go(func() {
					for o.Throttle(ctx, asked) == nil && ctx.Err() == nil {
						time.Sleep(c.late)
						done.Add(asked)
					}
				})
			}
			all.Wait()
			if got, want := float64(done.Load()), float64(c.rate)*long.Seconds(); got < 0.9*want || got > 1.1*want || time.Since(began) < long {
				t.Errorf("%+v: %.0f entries in %v", c, got, time.Since(began))
			}
		})
	}
}

// The inodes in use of a filesystem bound its entries, but say nothing of the end where not all of it is walked.
func TestProgressPart(t *testing.T) {
	dir := treetest.Fresh(t, "tmpfs")
	top := func(s *settings) int64 {
		a := fake()
		a.screen = &stream.Screen{}
		return a.newProgress(s, report.Reporter{}).inodes(dir)
	}
	if top(&settings{}) == 0 {
		t.Error("of a whole filesystem no bound is known")
	}
	for _, s := range []*settings{{exclude: []string{dir + "/x"}}, {command: "restorecon"}} {
		if n := top(s); n != 0 {
			t.Errorf("%+v: %d", s, n)
		}
	}
}
