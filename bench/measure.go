// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// took is what one run took.
type took struct {
	Wall     float64 `json:"wall"`               // seconds
	User     float64 `json:"user"`               // seconds of CPU
	Sys      float64 `json:"sys"`                // seconds of CPU
	MaxRSS   int64   `json:"maxrss,omitempty"`   // KiB, of a command
	Foreign  float64 `json:"foreign"`            // seconds of CPU of other programs during the run
	Requests int64   `json:"requests,omitempty"` // to the disk, where caches were cold
}

// measure runs a command once.
func (b *bench) measure(old bool, argv []string) (took, error) {
	cmd := exec.Command(b.program("start"))
	if old {
		cmd.Args = append(cmd.Args, "-o")
	}
	cmd.Args = append(cmd.Args, argv...)
	var said bytes.Buffer
	cmd.Stderr = &said
	r, w, err := os.Pipe()
	if err != nil {
		return took{}, err
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	before, err := userland()
	if err != nil {
		return took{}, errors.Join(err, w.Close())
	}
	err = cmd.Run()
	w.Close()
	if err != nil {
		return took{}, fmt.Errorf("start: %w: %s", err, said.String())
	}
	after, err := userland()
	if err != nil {
		return took{}, err
	}
	var wall, user, sys int64
	var status syscall.WaitStatus
	var t took
	if _, err := fmt.Fscan(r, &wall, &user, &sys, &t.MaxRSS, &status); err != nil {
		return took{}, fmt.Errorf("start: %w", err)
	}
	if status != 0 {
		return took{}, fmt.Errorf("%s: exit %d, signal %d: %s", strings.Join(argv, " "), status.ExitStatus(), status.Signal(), strings.TrimSpace(said.String()))
	}
	t.Wall, t.User, t.Sys = float64(wall)/1e9, float64(user)/1e6, float64(sys)/1e6
	t.Foreign = max(0, after-before-t.User)
	return t, nil
}

// call has that many callers make a call at once, at least one for each volume.
func call(chcon func(path, label string, recurse bool) error, label string, callers int, volumes []string) (took, error) {
	failed := make([]error, max(callers, len(volumes)))
	runtime.GC() // nobody clears up after the one before him
	foreign, err := userland()
	if err != nil {
		return took{}, err
	}
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before) // of this process it cannot fail
	began := time.Now()
	if len(failed) == 1 {
		failed[0] = chcon(volumes[0], label, true)
	} else {
		var group sync.WaitGroup
		for i := range failed {
			group.Go(func() { failed[i] = chcon(volumes[i%len(volumes)], label, true) })
		}
		group.Wait()
	}
	t := took{Wall: time.Since(began).Seconds()}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	t.User, t.Sys = seconds(after.Utime)-seconds(before.Utime), seconds(after.Stime)-seconds(before.Stime)
	now, err := userland()
	t.Foreign = max(0, now-foreign-t.User)
	return t, errors.Join(append(failed, err)...)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Nano()) / 1e9 }

// userland is the CPU time that programs had outside the kernel since the
// machine began, in seconds. The kernel's own threads work for the contestants
// and are not foreign.
func userland() (float64, error) {
	const hertz = 100 // USER_HZ, the same everywhere
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	var user, nice int64
	if _, err := fmt.Sscanf(string(text), "cpu %d %d", &user, &nice); err != nil {
		return 0, fmt.Errorf("/proc/stat: %w", err)
	}
	return float64(user+nice) / hertz, nil
}
