// SPDX-License-Identifier: Apache-2.0

// Command rivals is what is a library, go-selinux's Chcon, the drop-in for it and a walk by
// godirwalk, as a command: rivals NAME LABEL PATH... Without them it makes calls that standard input asks
// for, a JSON object each, and answers with what they took: a call of a small volume takes
// less than the start of a program. Beside rivals N DIR are N mounts that it makes in DIR.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/karrick/godirwalk"
	"github.com/opencontainers/selinux/go-selinux"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel"
)

var rivals = map[string]func(path, label string, recurse bool) error{
	"go-selinux": selinux.Chcon,
	"dropin":     relabel.Chcon,
	"godirwalk": func(path, label string, _ bool) error {
		return godirwalk.Walk(path, &godirwalk.Options{
			Unsorted: true,
			Callback: func(name string, _ *godirwalk.Dirent) error {
				return unix.Lsetxattr(name, "security.selinux", []byte(label), 0)
			},
		})
	},
}

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	switch {
	case len(args) == 0:
		return serve(os.Stdin, os.Stdout)
	case len(args) == 2:
		if err := mounts(args[0], args[1]); err != nil {
			return err
		}
		return serve(os.Stdin, os.Stdout)
	case len(args) == 1 || rivals[args[0]] == nil:
		return errors.New("usage: rivals go-selinux|dropin|godirwalk LABEL PATH... | rivals [N DIR]")
	}
	var failed error
	for _, path := range args[2:] {
		failed = errors.Join(failed, rivals[args[0]](path, args[1], true))
	}
	return failed
}

// mounts makes n filesystems in a new one at dir, which is seen by nobody else.
func mounts(n, dir string) error {
	many, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	at := filepath.Join(dir, "mounts")
	for i := -1; i < many && err == nil; i++ {
		if i >= 0 {
			at = filepath.Join(dir, "mounts", strconv.Itoa(i))
		}
		if err = os.MkdirAll(at, 0o700); err == nil {
			err = unix.Mount("none", at, "tmpfs", 0, "")
		}
	}
	return err
}

// serve answers each request until there are no more.
func serve(requests io.Reader, replies io.Writer) error {
	from, to := json.NewDecoder(requests), json.NewEncoder(replies)
	for {
		var r struct {
			Name, Label string
			Callers     int
			Paths       []string
		}
		if err := from.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		calls := make([]func() error, max(r.Callers, len(r.Paths)))
		for i := range calls {
			calls[i] = func() error { return rivals[r.Name](r.Paths[i%len(r.Paths)], r.Label, true) }
		}
		runtime.GC() // nobody clears up after the one before him
		var before, after unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_SELF, &before) // of this process it cannot fail
		began := time.Now()
		err := all(calls)
		wall := time.Since(began)
		_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
		reply := map[string]any{
			"wall": wall.Seconds(), "user": seconds(after.Utime) - seconds(before.Utime), "sys": seconds(after.Stime) - seconds(before.Stime),
		}
		if err != nil {
			reply["error"] = err.Error()
		}
		if err := to.Encode(reply); err != nil {
			return err
		}
	}
}

// all makes the calls at once.
func all(calls []func() error) error {
	if len(calls) == 1 {
		return calls[0]()
	}
	failed := make([]error, len(calls))
	var group sync.WaitGroup
	for i, call := range calls {
		group.Go(func() { failed[i] = call() })
	}
	group.Wait()
	return errors.Join(failed...)
}

func seconds(t unix.Timeval) float64 { return float64(t.Nano()) / 1e9 }
