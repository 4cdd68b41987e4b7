// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/oci"
)

// The hook stops before the runtime would kill it.
func TestHookLimits(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	text := func(s any) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	own := `{"path":` + text(self) + `,"timeout":60}`
	other := `{"path":"/bin/sh","timeout":3}`
	for _, c := range []struct {
		hooks       string
		flag        time.Duration
		limit, wait time.Duration
	}{
		{`{}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{}`, 5 * time.Minute, 5 * time.Minute, 2500 * time.Millisecond},
		{`{"createRuntime":[` + other + `]}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[` + other + `,` + own + `]}`, 0, 55 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `]}`, 0, 55 * time.Second, 2500 * time.Millisecond},
		{`{"poststop":[` + own + `]}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `]}`, 10 * time.Second, 10 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `]}`, 5 * time.Minute, 55 * time.Second, 2500 * time.Millisecond},
		{`{"prestart":[` + own + `],"createRuntime":[{"path":` + text(link) + `,"timeout":20}]}`, 0, 15 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[{"path":"/wrapper","args":` + text(os.Args) + `,"timeout":4}]}`, 0, 2 * time.Second, time.Second},
		{`{"createRuntime":[{"path":` + text(self) + `,"timeout":1}]}`, 0, 500 * time.Millisecond, 250 * time.Millisecond},
		{`{"createRuntime":[{"path":` + text(self) + `,"timeout":300}]}`, 0, 295 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[{"path":` + text(self) + `,"timeout":0}]}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[{"path":` + text(self) + `}]}`, 0, 100 * time.Second, 2500 * time.Millisecond},
		{`{"createRuntime":[{"path":` + text(self) + `,"timeout":9223372036854775807}]}`, 0, 24*time.Hour - 5*time.Second, 2500 * time.Millisecond},
	} {
		var config oci.Config
		if err := json.Unmarshal([]byte(`{"hooks":`+c.hooks+`}`), &config); err != nil {
			t.Fatal(err)
		}
		limit, wait := limits(c.flag, config.Timeout(oci.RunsThis))
		if limit != c.limit || wait != c.wait {
			t.Errorf("%s, --timeout %v: %v and %v, not %v and %v", c.hooks, c.flag, limit, wait, c.limit, c.wait)
		}
	}
}
