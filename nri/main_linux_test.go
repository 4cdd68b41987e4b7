// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// childEnv makes the test program the plugin, which is held up after so many entries;
// at 0 it is not.
const childEnv = "FASTLABEL_NRI_HELD_AFTER"

func TestMain(m *testing.M) {
	if after, is := os.LookupEnv(childEnv); is {
		os.Exit(child(after))
	}
	os.Exit(treetest.Main(m))
}

// child is the plugin with its arguments. Held up, it says so, and stays so until it is told to
// end and the run has been stopped.
func child(after string) int {
	limit, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return 125
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var n atomic.Int64
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr, func(string, string, string) {
		switch at := n.Add(1); {
		case at < limit || limit == 0:
		case at == limit:
			fmt.Println("held")
			fallthrough
		default:
			<-ctx.Done()
			time.Sleep(time.Second)
		}
	})
}

// process is a plugin in a process of its own.
type process struct {
	*exec.Cmd
	held chan struct{} // closed when it is held up
}

func startProcess(t *testing.T, n *node, heldAfter int, flags ...string) *process {
	t.Helper()
	p := &process{exec.Command("/proc/self/exe", append(n.flags(), flags...)...), make(chan struct{})}
	p.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childEnv, heldAfter))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	treetest.Must(t, err)
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
	})
	go func() {
		var line string
		if _, err := fmt.Fscanln(out, &line); err == nil && line == "held" {
			close(p.held)
		}
	}()
	return p
}

func (p *process) isHeld() bool {
	select {
	case <-p.held:
		return true
	default:
		return false
	}
}
