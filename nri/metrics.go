// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// counts are those of events since the plugin began.
type counts struct {
	connected atomic.Bool

	mu       sync.Mutex
	requests map[string]int64 // of pods with the annotation, by outcome
	volumes  map[string]int64 // by how the job ended
}

func (c *counts) request(o outcome) { c.add(&c.requests, string(o)) }

func (c *counts) volume(err error) {
	switch {
	case err == nil:
		c.add(&c.volumes, string(labelled))
	case errors.Is(err, relabel.ErrStopped):
		c.add(&c.volumes, "stopped")
	default:
		c.add(&c.volumes, string(failed))
	}
}

func (c *counts) add(to *map[string]int64, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *to == nil {
		*to = make(map[string]int64)
	}
	(*to)[name]++
}

// text is the file in Prometheus' text format. The names of results are the program's own.
func (c *counts) text(walk, queued int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b bytes.Buffer
	family := func(name, kind, help, label string, samples map[string]int64) {
		fmt.Fprintf(&b, "# HELP fastlabel_nri_%s %s\n# TYPE fastlabel_nri_%[1]s %[3]s\n", name, help, kind)
		for _, k := range slices.Sorted(maps.Keys(samples)) {
			fmt.Fprintf(&b, "fastlabel_nri_%s{%s=%q} %d\n", name, label, k, samples[k])
		}
	}
	family("requests_total", "counter", "Sandboxes of pods with the annotation, by outcome.", "outcome", c.requests)
	family("volumes_total", "counter", "Volumes that were looked at, by how that ended.", "result", c.volumes)
	family("volumes", "gauge", "Volumes that are being labelled, and that wait.", "state", map[string]int64{"walk": int64(walk), "queued": int64(queued)})
	connected := 0
	if c.connected.Load() {
		connected = 1
	}
	fmt.Fprintf(&b, "# HELP fastlabel_nri_connected Whether a runtime has the plugin registered.\n# TYPE fastlabel_nri_connected gauge\nfastlabel_nri_connected %d\n", connected)
	return b.Bytes()
}

// writeEach keeps file up to date until ctx ends, and then once more.
func (c *counts) writeEach(ctx context.Context, file string, l *labeller, log *slog.Logger) {
	var last []byte
	write := func() {
		now := c.text(l.states())
		if bytes.Equal(now, last) {
			return
		}
		if err := replace(file, now); err != nil {
			log.Warn("metrics", "error", err)
		}
		last = now
	}
	defer write()
	for tick := time.Tick(watchEach); ; {
		write()
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// replace puts text in the place of file as a whole. The collector reads *.prom, and
// not what is made beside it.
func replace(file string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error is reported
	}
	return err
}
