// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// caller is a process that makes calls of libraries, beside what a cell has beside.
type caller struct {
	cmd       *exec.Cmd
	requests  io.WriteCloser
	replies   *json.Decoder
	neighbour *neighbour // nil: none
}

// newCaller starts what is beside the cell, and a caller in a mount namespace of its own.
func newCaller(f *field, c cell) (*caller, error) {
	kind, size, err := c.beside()
	if err != nil {
		return nil, err
	}
	r := &caller{cmd: exec.Command(f.binaries.rivals)}
	if kind == "mounts" {
		r.cmd.Args = append(r.cmd.Args, strconv.Itoa(size), filepath.Dir(f.volume.mount))
	}
	r.cmd.Stderr = os.Stderr
	// Ctrl-C is for bench, which then closes standard input.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Unshareflags: syscall.CLONE_NEWNS}
	if r.requests, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.replies = json.NewDecoder(out)
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	if kind == "dirty" || kind == "writer" {
		r.neighbour = &neighbour{path: filepath.Join(f.volume.mount, "neighbour"), mib: size}
	}
	if kind == "writer" {
		err = r.neighbour.begin()
	}
	return r, err
}

// measure has so many callers call the contestant at once, at least one for each path.
func (r *caller) measure(who contestant, label string, callers int, paths []string) (took, error) {
	if r.neighbour != nil && r.neighbour.ended == nil {
		if err := r.neighbour.write(); err != nil {
			return took{}, err
		}
	}
	before, err := userland()
	if err != nil {
		return took{}, err
	}
	var reply struct {
		took
		Error string `json:"error"`
	}
	request := map[string]any{"Name": who.call, "Label": label, "Callers": callers, "Paths": paths}
	if err := errors.Join(json.NewEncoder(r.requests).Encode(request), r.replies.Decode(&reply)); err != nil {
		return took{}, fmt.Errorf("rivals: %w", err)
	}
	if reply.Error != "" {
		return took{}, errors.New(reply.Error)
	}
	after, err := userland()
	reply.Foreign = max(0, after-before-reply.User)
	return reply.took, err
}

// close ends the caller, and what is beside.
func (r *caller) close() error {
	err := errors.Join(r.requests.Close(), r.cmd.Wait())
	if r.neighbour != nil {
		err = errors.Join(err, r.neighbour.end())
	}
	return err
}

// neighbour writes to the filesystem that the contestants are on.
type neighbour struct {
	path  string
	mib   int
	stop  atomic.Bool
	ended chan error // nil: it writes only when it is told to
}

// write writes the file anew, and waits for no disk.
func (n *neighbour) write() error {
	f, err := os.OpenFile(n.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	chunk := make([]byte, 1<<20)
	for i := 0; i < n.mib && err == nil && !n.stop.Load(); i++ {
		_, err = f.WriteAt(chunk, int64(i)<<20)
	}
	return errors.Join(err, f.Close())
}

// begin returns when the file has been written once, and goes on writing until the end.
func (n *neighbour) begin() error {
	if err := n.write(); err != nil {
		return err
	}
	n.ended = make(chan error, 1)
	go func() {
		var err error
		for err == nil && !n.stop.Load() {
			err = n.write()
		}
		n.ended <- err
	}()
	return nil
}

func (n *neighbour) end() error {
	var err error
	n.stop.Store(true)
	if n.ended != nil {
		err = <-n.ended
	}
	return errors.Join(err, os.Remove(n.path))
}

// beside takes the cell's KIND-N apart: N MiB of others' data that wait for the disk
// (dirty), or are written over and over (writer), or N more mounts.
func (c cell) beside() (kind string, size int, err error) {
	kind, number, _ := strings.Cut(c.Beside, "-")
	switch kind {
	case "":
		return "", 0, nil
	case "dirty", "writer", "mounts":
		size, err = strconv.Atoi(number)
		return kind, size, err
	}
	return "", 0, fmt.Errorf("nothing to have beside: %s", c.Beside)
}
