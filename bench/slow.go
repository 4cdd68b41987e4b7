// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// slowDelay is what each request takes, as between two racks of one site.
const slowDelay = time.Millisecond

// newSlowField mounts a slowfs, which has the corpus by itself: to make it,
// and to read it before and after each run, would take as long as the run.
func newSlowField(b *binaries, dir string, c cell) (*field, error) {
	dirs := map[string]int{"flat": 1, "fifty": max(1, c.N/51)}[c.Corpus]
	if dirs == 0 {
		return nil, fmt.Errorf("no such corpus on slowfs: %s", c.Corpus)
	}
	v := &volume{fs: c.FS, mount: filepath.Join(dir, c.FS)}
	if err := os.Mkdir(v.mount, 0o755); err != nil {
		return nil, err
	}
	files := max(0, c.N-dirs)
	if err := v.serve(b.slowfs, "-delay", slowDelay.String(), "-files", fmt.Sprint(files), "-dirs", fmt.Sprint(dirs), v.mount); err != nil {
		return nil, err
	}
	return &field{binaries: b, volume: v, root: v.mount, paths: []string{v.mount}, entries: 1 + dirs + files}, nil
}

// serve starts the server of the volume, and returns when it is ready.
func (v *volume) serve(argv ...string) error {
	v.server = exec.Command(argv[0], argv[1:]...)
	v.server.Stderr = os.Stderr
	// Ctrl-C is for bench, which then unmounts.
	v.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := v.server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := v.server.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		end := errors.Join(v.server.Process.Signal(syscall.SIGTERM), v.server.Wait())
		return errors.Join(fmt.Errorf("%s says %q: %w", filepath.Base(argv[0]), line, err), end)
	}
	return nil
}

// prepareSlow lets the server give all entries the label that they are said
// to have.
func (f *field) prepareSlow(c cell) (string, error) {
	target := labels[f.has]
	switch c.State {
	case "right":
	case "wrong":
		target = labels[1-f.has]
	default:
		return "", fmt.Errorf("no such state on slowfs: %s", c.State)
	}
	return target, unix.Lsetxattr(f.root, "user.slowfs.fill", []byte(labels[f.has]), 0)
}

// checkSlow asks the server how many entries do not have the label.
func (f *field) checkSlow(label string) error {
	value := make([]byte, 20)
	n, err := unix.Lgetxattr(f.root, "user.slowfs.wrong."+label, value)
	if err == nil && string(value[:n]) != "0" {
		err = fmt.Errorf("not all labelled: %s of %d are not", value[:n], f.entries)
	}
	return err
}

// served is how much CPU time a slowfs had outside the kernel, in seconds: it
// works for the contestants and is not foreign.
func (v *volume) served() (float64, error) {
	if v.server == nil {
		return 0, nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.server.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything; utime is the 12th behind it.
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(words) < 12 {
		return 0, fmt.Errorf("/proc/%d/stat: %s", v.server.Process.Pid, text)
	}
	ticks, err := strconv.Atoi(words[11])
	return float64(ticks) / hertz, err
}
