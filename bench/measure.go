// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// took is what one run took.
type took struct {
	Wall    float64 `json:"wall"`    // seconds
	User    float64 `json:"user"`    // seconds of CPU
	Sys     float64 `json:"sys"`     // seconds of CPU
	MaxRSS  int64   `json:"maxrss"`  // KiB
	Sleeps  int64   `json:"sleeps"`  // voluntary context switches
	Foreign float64 `json:"foreign"` // seconds of CPU of other programs during the run
	// Calls is how many system calls it made. To count them slows them down, so a
	// run either has this or says something about time.
	Calls       int64     `json:"calls,omitempty"`
	PeakThreads int       `json:"peak_threads,omitempty"` // counted with them
	Disk        *requests `json:"disk,omitempty"`
}

// measure runs the contestant once. With a tracepoint, by which system calls are
// counted, that is what it does.
func measure(b *binaries, c contestant, argv []string, tracepoint int) (took, error) {
	line := []string{b.start}
	if tracepoint > 0 {
		line = append(line, "-c", strconv.Itoa(tracepoint))
	}
	if c.old {
		line = append(line, "-o")
	}
	line = append(append(line, "--"), argv...)
	cmd := exec.Command(line[0], line[1:]...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	r, w, err := os.Pipe()
	if err != nil {
		return took{}, err
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	before, err := userland()
	if err != nil {
		w.Close()
		return took{}, err
	}
	err = cmd.Run()
	w.Close()
	if err != nil {
		return took{}, fmt.Errorf("%s: %w: %s", b.start, err, said.String())
	}
	after, err := userland()
	if err != nil {
		return took{}, err
	}
	var wall, user, sys, status int64
	var t took
	if _, err := fmt.Fscan(r, &wall, &user, &sys, &t.MaxRSS, &t.Sleeps, &status, &t.Calls, &t.PeakThreads); err != nil {
		return took{}, fmt.Errorf("reading what %s says: %w", b.start, err)
	}
	if ws := syscall.WaitStatus(status); ws.Signaled() {
		return took{}, fmt.Errorf("%s: %s", strings.Join(argv, " "), ws.Signal())
	} else if ws != 0 {
		return took{}, fmt.Errorf("%s: exit %d: %s", strings.Join(argv, " "), ws.ExitStatus(), strings.TrimSpace(said.String()))
	}
	t.Wall, t.User, t.Sys = float64(wall)/1e9, float64(user)/1e6, float64(sys)/1e6
	t.Foreign = max(0, after-before-t.User)
	return t, nil
}

const hertz = 100 // USER_HZ, the same everywhere

// userland is the CPU time that programs had outside the kernel since the
// machine began, in seconds. The kernel's own threads work for the contestants
// and are not foreign.
func userland() (float64, error) {
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

// build makes the programs, into dir.
func build(dir, fastlabel string) (*binaries, error) {
	b := &binaries{
		fastlabel: fastlabel,
		floor:     filepath.Join(dir, "floor"),
		start:     filepath.Join(dir, "start"),
		rivals:    filepath.Join(dir, "rivals"),
		slowfs:    filepath.Join(dir, "slow"),
		slowdisk:  filepath.Join(dir, "slowdisk"),
		enabled:   filepath.Join(dir, "enabled.so"),
		specs:     dir,
	}
	for _, argv := range [][]string{
		{"gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", b.floor, "floor/floor.c", "floor/walk.c", "floor/share.c", "floor/sort.c", "-pthread"},
		{"gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", b.start, "floor/start.c", "-pthread"},
		{"gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", b.enabled, "floor/enabled.c"},
		{"go", "build", "-o", b.rivals, "./rivals"},
		{"go", "build", "-o", b.slowfs, "./slowfs"},
		{"go", "build", "-o", b.slowdisk, "./slowdisk"},
	} {
		if err := run(argv...); err != nil {
			return nil, err
		}
	}
	for i, label := range labels {
		if err := os.WriteFile(b.spec(labels[i]), []byte("/.*\t"+label+"\n"), 0o644); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// sysEnter is the number of the tracepoint that each system call passes.
func sysEnter(dir string) (int, error) {
	at := filepath.Join(dir, "tracefs")
	if err := os.Mkdir(at, 0o700); err != nil {
		return 0, err
	}
	if err := unix.Mount("tracefs", at, "tracefs", unix.MS_RDONLY, ""); err != nil {
		return 0, &os.PathError{Op: "mount", Path: at, Err: err}
	}
	text, err := os.ReadFile(filepath.Join(at, "events/raw_syscalls/sys_enter/id"))
	if e := unix.Unmount(at, 0); err == nil && e != nil {
		err = &os.PathError{Op: "umount", Path: at, Err: e}
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// spec is the file by which setfiles gives that label to everything.
func (b *binaries) spec(label string) string {
	return filepath.Join(b.specs, "spec-"+strings.ReplaceAll(label, ":", "-"))
}

// version is what is measured, and on what.
func version(repository string) (commit, kernel string) {
	out, err := exec.Command("git", "-C", repository, "describe", "--always", "--dirty").Output()
	if err == nil {
		commit = strings.TrimSpace(string(out))
	}
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err == nil {
		kernel = strings.TrimSpace(string(text))
	}
	return commit, kernel
}

// stamp is when a run ended.
func stamp() string { return time.Now().UTC().Format(time.RFC3339) }
