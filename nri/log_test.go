// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestLog: each kind of attribute is in the line as what it is, and no error is none.
func TestLog(t *testing.T) {
	var out strings.Builder
	log, err := newLogger(&out, "info")
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("hidden")
	log = log.With("root", "/v").WithGroup("job")
	log.Info("volume", "path", "/a\nb", "seen", int64(7), "trusted", true, "elapsed", 1500*time.Millisecond, "error", error(nil))
	log.Warn("other", "error", errors.New("EIO"), "first", slog.Any("call", struct{ N int }{1}))
	stubLog{log}.Infof(t.Context(), "hidden")
	stubLog{log}.Errorf(t.Context(), "%d calls", 3)
	var lines []string
	for line := range strings.Lines(out.String()) {
		level, rest, _ := strings.Cut(line, `,"ts":"`)
		_, rest, _ = strings.Cut(rest, `",`)
		lines = append(lines, level+","+strings.TrimSpace(rest))
	}
	want := []string{
		`{"level":"info","msg":"volume","root":"/v","job":{"path":"/a\nb","seen":7,"trusted":true,"elapsed":1.5}}`,
		`{"level":"warn","msg":"other","root":"/v","job":{"error":"EIO","first":"call={1}"}}`,
		`{"level":"warn","msg":"3 calls","root":"/v","job":{}}`,
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Error(out.String())
	}
	if _, err := newLogger(&out, "loud"); err == nil {
		t.Error("a level that is none is taken")
	}
}
