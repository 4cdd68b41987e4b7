// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fastlabel/fastlabel/relabel"
)

// counts are the metrics.
type counts struct {
	registry                *prometheus.Registry
	requests, runs, entries *prometheus.CounterVec
	seconds                 prometheus.Histogram
	connected               prometheus.Gauge
}

// newCounts begins at 0. What is under way, and how many pods wait, it asks for.
func newCounts(pending func() []relabel.Work, waiting func() int) *counts {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	all := promauto.With(r)
	of := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "fastlabel_nri_" + name, Help: help}
	}
	now := func(name, help string) prometheus.GaugeOpts { return prometheus.GaugeOpts(of(name, help)) }
	all.NewGaugeFunc(now("waiting_sandboxes", "Pods that were told in the last minute to come again."), func() float64 { return float64(waiting()) })
	all.NewGaugeFunc(now("runs", "Volumes that are being labelled, or wait."), func() float64 { return float64(len(pending())) })
	all.NewGaugeFunc(now("runs_waiting", "Of these, what waits: for its turn, a lock or its filesystem."), func() (n float64) {
		for _, w := range pending() {
			if w.Waits != "" {
				n++
			}
		}
		return n
	})
	return &counts{
		registry:  r,
		requests:  all.NewCounterVec(of("requests_total", "Sandboxes of pods with the annotation, by outcome."), []string{"outcome"}),
		runs:      all.NewCounterVec(of("runs_total", "Volumes that were looked at, by how that ended."), []string{"result"}),
		entries:   all.NewCounterVec(of("entries_total", "Entries of these volumes, by what was done."), []string{"outcome"}),
		connected: all.NewGauge(now("connected", "Whether a runtime has the plugin registered.")),
		seconds: all.NewHistogram(prometheus.HistogramOpts{
			Name: "fastlabel_nri_walk_seconds", Help: "From the beginning of a run that looked at entries to its end.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 10), // to 44 minutes
		}),
	}
}

// run counts a run that has ended.
func (c *counts) run(r relabel.Report, err error) {
	result := string(labelled)
	switch {
	case r.Trusted:
		result = "trusted"
	case errors.Is(err, relabel.ErrStopped):
		result = "stopped"
	case err != nil:
		result = string(failed)
	}
	c.runs.WithLabelValues(result).Inc()
	for outcome, n := range map[string]int64{"written": r.Written, "right": r.Right, "vanished": r.Vanished, "skipped": r.Skipped, "failed": r.Failed} {
		c.entries.WithLabelValues(outcome).Add(float64(n))
	}
	if !r.Trusted && r.Seen > 0 {
		c.seconds.Observe(r.Elapsed.Seconds())
	}
}

func (c *counts) handler() http.Handler {
	paths := http.NewServeMux()
	paths.Handle("/metrics", promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{}))
	return paths
}

// serve answers Prometheus at l until end is called.
func (c *counts) serve(l net.Listener) (end func()) {
	s := &http.Server{Handler: c.handler(), ReadHeaderTimeout: grace}
	go func() { _ = s.Serve(l) }() // until Close
	return func() { _ = s.Close() }
}
