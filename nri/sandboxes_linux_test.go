// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// sandboxesEnv has the number of sandboxes that TestSandboxes makes, 200 if it is not set; from 10,000 on it also
// fails if the plugin grows or answers late.
const sandboxesEnv = "FASTLABEL_NRI_SANDBOXES"

// childEnv makes the test program the plugin.
const childEnv = "FASTLABEL_NRI_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(treetest.Main(m))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// starting is a pod of TestSandboxes: of which kind, its volume, and where that is mounted.
type starting struct {
	*pod
	kind, vol, at string
}

// begin makes the pod number i.
func (n *node) begin(i int, kind, large, shared string) *starting {
	p := &starting{pod: n.pod(fmt.Sprintf("pod-%d", i), ""), kind: kind}
	level := fmt.Sprintf("s0:c%d,c%d", i%500, 500+i%500)
	switch kind {
	case "shared":
		p.vol, level = shared, itsLevel
	case "large", "drawn":
		p.vol = large
	default:
		p.vol = n.volume(p.uid)
	}
	p.label = "system_u:object_r:container_file_t:" + level
	p.annotations[annotation] = level
	if kind == "fixed" || kind == "drawn" {
		p.annotations[annotation] = fixed
	}
	p.at = p.mount(p.vol, localPV)
	return p
}

// usage scrapes how many goroutines, files and bytes of memory a plugin has when it is idle.
func usage(t *testing.T, address string) (all [3]float64) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	treetest.Wait(t, "the plugin to be idle", func() bool {
		r, err := client.Get("http://" + address + "/metrics")
		treetest.Must(t, err)
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		treetest.Must(t, err)
		for i, name := range []string{"go_goroutines", "process_open_fds", "process_resident_memory_bytes"} {
			all[i] = scraped(string(body), name)
		}
		return scraped(string(body), "fastlabel_nri_runs") == 0
	})
	return all
}

// TestSandboxes: of many pods, with levels named, fixed and drawn, volumes of their own, shared and
// large, each starts, and with its volume labelled, though the plugin is killed and told to end while
// it works. In the end the plugin has no more goroutines and files than before.
func TestSandboxes(t *testing.T) {
	all, err := strconv.Atoi(cmp.Or(os.Getenv(sandboxesEnv), "200"))
	treetest.Must(t, err)
	n := newNode(t)
	n.start()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	treetest.Must(t, err, listener.Close())
	metrics := listener.Addr().String()
	var plugin *exec.Cmd
	begin := func() {
		p := exec.Command("/proc/self/exe", append(n.flags(), "--metrics-address", metrics, "--wait", "5ms")...)
		p.Env, p.Stderr = append(os.Environ(), childEnv+"=1"), os.Stderr
		treetest.Must(t, p.Start())
		t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() }) // it may have ended
		plugin = p
		n.registered()
	}
	begin()
	large, shared := n.mkdir("volumes", "large"), n.volume("shared")
	treetest.Build(t, large, treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f%05d x40000\n"))
	random := rand.New(rand.NewPCG(1, 2))
	kinds := []string{"level", "fixed", "shared", "level", "fixed", "level", "fixed", "large", "drawn"}

	var slowest time.Duration
	made, asked, late, restarts, started := 0, 0, 0, 0, make(map[string]int)
	busy := false // a pod has the large volume
	var before [3]float64
	var queue []*starting
	for ended := 0; ended < all; {
		if restarts < 3 && made >= (restarts+1)*all/10 && busy {
			sig := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[restarts%2]
			treetest.Must(t, plugin.Process.Signal(sig))
			if _ = plugin.Wait(); sig == syscall.SIGTERM && plugin.ProcessState.ExitCode() != 0 {
				t.Errorf("told to end: %v", plugin.ProcessState)
			}
			begin()
			restarts++
		}
		if made < all && len(queue) < 20 {
			kind := kinds[random.IntN(len(kinds))]
			if big := kind == "large" || kind == "drawn"; big && (busy || all > 1000 && random.IntN(10) > 0) {
				kind = "level"
			} else if big {
				busy = true
			}
			made++
			queue = append(queue, n.begin(made, kind, large, shared))
		} else {
			time.Sleep(time.Millisecond) // the kubelet's pause is ten seconds
		}
		p := queue[0]
		queue = queue[1:]
		id := p.sandbox()
		began := time.Now()
		err := n.askAs(p.pod, id)
		took := time.Since(began)
		asked++
		if slowest = max(slowest, took); took > time.Second {
			late++
		}
		treetest.Must(t, os.RemoveAll(n.in("bundles", id)))
		if err != nil {
			if p.kind == "drawn" {
				p.label = fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d", asked%1000)
			}
			queue = append(queue, p)
			continue
		}
		ended++
		started[p.kind]++
		if r, err := relabel.Verify(t.Context(), p.vol, p.label, nil); err != nil || !r.Complete && p.kind != "drawn" {
			t.Errorf("%s (%s) has started: %+v, %v", p.uid, p.kind, r, err)
		}
		busy = busy && p.vol != large
		treetest.Must(t, syscall.Unmount(p.at, 0), os.RemoveAll(n.in("pods", p.uid)))
		if p.vol != large && p.vol != shared {
			treetest.Must(t, os.RemoveAll(p.vol))
		}
		if ended == all*4/10 { // the last plugin has begun
			before = usage(t, metrics)
		}
	}
	var after [3]float64
	treetest.Wait(t, "no more goroutines and files than before", func() bool {
		after = usage(t, metrics)
		return after[0] <= before[0]+2 && after[1] <= before[1]
	})
	t.Logf("%v, %d requests, %d of them later than a second, the slowest after %v", started, asked, late, slowest)
	t.Logf("goroutines, files and bytes of memory: %.0f, and in the end %.0f", before, after)
	if restarts != 3 || all >= 10_000 && (late > 0 || after[2] > before[2]*1.25) {
		t.Errorf("%d restarts", restarts)
	}
}
