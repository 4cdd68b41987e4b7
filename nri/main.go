// SPDX-License-Identifier: Apache-2.0

// Command fastlabel-nri is a plugin for the Node Resource Interface of containerd and
// CRI-O. It labels the volumes of a pod that asks for it before the runtime does, without
// a deadline: see README.md. It is experimental.
//
// A request takes this path:
//
//	connect.go   registers with the runtime, and again when the connection is gone
//	plugin.go    RunPodSandbox: look, join the Group's walk, wait a moment, answer
//	allowance.go how long that moment is
//	pod.go       what the pod asks for, and which label its sandbox has
//	volumes.go   which of the pod's volumes are mounted and can have it
//	metrics.go   what happened, for Prometheus
//	log.go       what happened, for people
//	queue.go     its lines, written though nobody reads them
//
// The plugin delays a pod, and never decides whether it starts: what it cannot label it
// leaves to the runtime, and says so in its log and metrics. Its only errors are that
// the work is not done yet, and that the annotation is mistyped.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/api"
	nrilog "github.com/containerd/nri/pkg/log"
	"github.com/spf13/pflag"
)

var version = "unknown"

const (
	// longestWait bounds --wait: a node answers one NRI request at a time, and the
	// runtimes give up on a plugin after 2 s.
	longestWait = time.Second
	// grace is the time that SIGTERM waits for calls that hang in the kernel.
	grace = 5 * time.Second
)

// settings are those of the flags.
type settings struct {
	socket, index, pods string
	bundles             []string
	wait, linger        time.Duration
	volumes             int
	metrics, level      string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "fastlabel-nri: %v\n", err)
		return 2
	}
	lines := newQueue(stderr)
	defer lines.flush(grace)
	log, err := newLogger(lines, s.level)
	if err != nil {
		fmt.Fprintf(stderr, "fastlabel-nri: %v\n", err)
		return 2
	}
	nrilog.Set(stubLog{log})

	p := newPlugin(s, log)
	if s.metrics != "" {
		at, err := net.Listen("tcp", s.metrics)
		if err != nil {
			log.Error("no metrics", "error", err)
			return 1
		}
		defer p.counts.serve(at)()
	}
	go p.releaseEach(ctx) // not waited for: the table of mounts may hang
	log.Info("begins", "version", version, "pods", s.pods, "wait", s.wait)
	(&connector{socket: s.socket, index: s.index, plugin: p, log: log}).serve(ctx)

	end, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := p.group.Shutdown(end); err != nil {
		log.Error("ends beside calls that hang", "error", err)
		return 1
	}
	log.Info("ends")
	return 0
}

func parse(args []string, stdout io.Writer) (s settings, err error) {
	f := pflag.NewFlagSet("fastlabel-nri", pflag.ContinueOnError)
	f.SetOutput(stdout)
	f.SortFlags = false
	f.StringVar(&s.socket, "socket", api.DefaultSocketPath, "the runtime's NRI socket")
	f.StringVar(&s.index, "index", "05", "two digits: its place among the plugins of the node")
	f.StringVar(&s.pods, "pods", "/var/lib/kubelet/pods", "the kubelet's directory of pods")
	f.StringArrayVar(&s.bundles, "bundle", []string{
		"/run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}",
		"/run/containers/storage/overlay-containers/{id}/userdata",
	}, "where a sandbox's config.json may be; for each place once")
	f.DurationVar(&s.wait, "wait", 200*time.Millisecond, "how long a request waits for the work; 1s at most")
	f.DurationVar(&s.linger, "linger", time.Minute, "how long work continues after the last request for it")
	f.IntVar(&s.volumes, "volumes", 4, "how many volumes are labelled at a time")
	f.StringVar(&s.metrics, "metrics-address", "", "address at which Prometheus finds /metrics, such as :9809; none if empty")
	f.StringVar(&s.level, "log-level", "info", "debug, info, warn or error")
	show := f.Bool("version", false, "print the version")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case *show:
		fmt.Fprintln(stdout, version)
		return s, pflag.ErrHelp
	case f.NArg() > 0:
		return s, fmt.Errorf("%q: no arguments are taken", f.Arg(0))
	case s.wait <= 0 || s.wait > longestWait:
		return s, fmt.Errorf("--wait %v: more than 0 and at most %v", s.wait, longestWait)
	case s.volumes < 1:
		return s, fmt.Errorf("--volumes %d: at least 1", s.volumes)
	case s.linger < time.Second:
		return s, fmt.Errorf("--linger %v: at least a second", s.linger)
	}
	// The mount table has no links in its paths.
	if s.pods, err = filepath.EvalSymlinks(s.pods); err == nil {
		s.pods, err = filepath.Abs(s.pods)
	}
	if err != nil {
		return s, fmt.Errorf("--pods: %w", err)
	}
	return s, api.CheckPluginIndex(s.index)
}
