// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// slow is an engine that meets 1,000 entries a second, one of a thousand of
// which fails, for so many seconds.
func slow(seconds int) app {
	a := fake()
	a.tree = func(ctx context.Context, root, _ string, o relabel.Options) (relabel.Report, error) {
		began := time.Now()
		state := func() relabel.State {
			n := min(time.Since(began), time.Duration(seconds)*time.Second).Milliseconds()
			return relabel.State{
				Seen: n, Written: n - n/1000 - 1, Skipped: 1, Failed: n / 1000, Found: n / 10, Entered: n / 20,
				Path: root + "/sub\x1b[31m\xff\n",
			}
		}
		if o.OnBegin != nil {
			o.OnBegin(state)
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
		}
		s := state()
		return relabel.Report{Root: root, Seen: s.Seen, Written: s.Written + 1, Failed: s.Failed, Complete: ctx.Err() == nil, Elapsed: time.Since(began)}, ctx.Err()
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

// Who is not a terminal gets a line every 30 s if it was asked for, and else
// nothing.
func TestProgressPlain(t *testing.T) {
	for args, want := range map[string]string{
		"-p /p": `fastlabel: /p: 30,000 entries, 30 failed, 1,000/s, 3,000 directories found so far, "/p/sub\x1b[31m\xff\n"
fastlabel: /p: 60,000 entries, 60 failed, 1,000/s, 6,000 directories found so far, "/p/sub\x1b[31m\xff\n"
fastlabel: /p: 90,000 entries, 90 failed, 1,000/s, 9,000 directories found so far, "/p/sub\x1b[31m\xff\n"
fastlabel: /p: incomplete, 95,000 entries, 94,905 written, 95 failed, 95.0 s; label system_u:object_r:container_file_t:s0
`,
		"/p":       "fastlabel: /p: incomplete, 95,000 entries, 94,905 written, 95 failed, 95.0 s; label " + defaultLabel + "\n",
		"-q -p /p": "",
	} {
		if out, got := played(t, slow(95), args); got != want || out != "" {
			t.Errorf("%s: %q, and\n%s\nnot\n%s", args, out, got, want)
		}
	}
}

// running is a status as json.go documents it.
type running struct {
	MessageType     string  `json:"message_type"`
	Root            string  `json:"root"`
	State           string  `json:"state"`
	Seen            int64   `json:"seen"`
	Written         int64   `json:"written"`
	Right           int64   `json:"right"`
	Vanished        int64   `json:"vanished"`
	Skipped         int64   `json:"skipped"`
	Failed          int64   `json:"failed"`
	Seconds         float64 `json:"seconds"`
	Rate            float64 `json:"rate"`
	Directories     int64   `json:"directories"`
	DirectoriesLeft int64   `json:"directories_left"`
	Path            string  `json:"path"`
	PathBase64      string  `json:"path_base64"`
}

// With --json there is an object each second, with the summary's keys.
func TestProgressJSON(t *testing.T) {
	out, stderr := played(t, slow(5), "--json -p /p")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) < 5 || len(lines) > 6 || stderr != "" {
		t.Fatalf("%d lines, %q\n%s", len(lines), stderr, out)
	}
	summary := map[string]any{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &summary); err != nil {
		t.Fatal(err)
	}
	for i, line := range lines[:len(lines)-1] {
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		var s running
		if err := d.Decode(&s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if s.Seconds != float64(i+1) || s.Seen != int64(i+1)*1000 || s.Seen != s.Written+s.Right+s.Vanished+s.Skipped+s.Failed || s.Rate != 1000 {
			t.Errorf("%d: %s", i, line)
		}
		if s.MessageType != "status" || s.State != "running" || s.Root != "/p" || s.Directories != s.Seen/10 || s.DirectoriesLeft != s.Seen/20 || s.PathBase64 == "" {
			t.Errorf("%s", line)
		}
		for key := range map[string]bool{"root": true, "seen": true, "written": true, "right": true, "vanished": true, "skipped": true, "failed": true, "seconds": true} {
			if _, ok := summary[key]; !ok {
				t.Errorf("the summary has no %s", key)
			}
		}
	}
	if out, _ := played(t, slow(5), "--json /p"); strings.Count(out, "\n") != 1 {
		t.Errorf("without -p:\n%s", out)
	}
}

// Who asks is told, whatever the flags, and when nothing is under way too.
func TestProgressAsked(t *testing.T) {
	for args, want := range map[string]string{
		"/p":        `2> fastlabel: /p: 2,500 entries, 2 failed, 1,000/s, 250 directories found so far, "/p/sub\x1b[31m\xff\n"`,
		"-q /p":     `2> fastlabel: /p: 2,500 entries, 2 failed, 1,000/s, 250 directories found so far, "/p/sub\x1b[31m\xff\n"`,
		"--json /p": `1> {"message_type":"status","root":"/p","state":"running","seen":2500,"written":2497,"right":0,"vanished":0,"skipped":1,"failed":2,"seconds":2.5,`,
		"-f -":      "2> fastlabel: nothing is under way\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := make(chan os.Signal)
			a := slow(5)
			a.asked = asked
			go func() {
				time.Sleep(2500 * time.Millisecond)
				asked <- syscall.SIGHUP
			}()
			var out, err bytes.Buffer
			a.run(t.Context(), waits{5 * time.Second}, &out, &err, strings.Fields(args))
			if got := prefixed("1> ", out.String()) + prefixed("2> ", err.String()); !strings.HasPrefix(got, want) {
				t.Errorf("%s:\n%s", args, got)
			}
		})
	}
}

// waits is a list that comes late, and names nothing.
type waits struct{ d time.Duration }

func (w waits) Read([]byte) (int, error) {
	time.Sleep(w.d)
	return 0, os.ErrClosed
}

// The line on a terminal: at first none, then one that is never wider, and at
// last none.
func TestProgressLine(t *testing.T) {
	for _, size := range []int{20, 40, 80, 200} {
		for how, first := range map[showing]string{live: `^\d+ (of about 4,000 )?entries`, soon: `^1,[01]00 (of about 4,000 )?entries`} {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				p := &progress{screen: &screen{w: &b}, columns: func() (int, bool) { return size, true }, how: how, began: time.Now(), total: func(string) int64 { return 4000 }}
				j := &job{app: slow(4), settings: &settings{}, reporter: &people{out: newSink(&b), err: p.screen, counts: map[string]tally{}}, progress: p}
				end := p.show(nil)
				j.one(t.Context(), "/p", func() {})
				end()
				on := &terminal{columns: size}
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
				if last := on.drawn[len(on.drawn)-2]; size == 200 && !regexp.MustCompile(`^3,[89]00 of about 4,000 entries, 3 failed, less than 10 s left, 1,000/s, "/p/sub\\x1b\[31m\\xff\\n"$`).MatchString(last) {
					t.Error(last)
				}
			})
		}
	}
}
