// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/relabel"
)

// fake is an engine that does what the root's last name says.
func fake() app {
	return app{tree: fakeTree, inspect: fakeInspect, state: fakeState}
}

func fakeTree(ctx context.Context, root, label string, o *relabel.Options, check bool) (relabel.Report, error) {
	failed := func(name, op string, errno syscall.Errno) error {
		err := &fs.PathError{Op: op, Path: root + "/" + name, Err: errno}
		o.Trace.Failure(err)
		return err
	}
	changed := func(name, from string) {
		if o.Trace.Change != nil {
			o.Trace.Change(root+"/"+name, from, label)
		}
	}
	rep := relabel.Report{Root: root, Label: label, Counts: relabel.Counts{Seen: 1203441, Written: 1203441}, Complete: true, Way: "clone/setxattrat", Elapsed: 1900 * time.Millisecond}
	few := relabel.Report{Root: root, Label: label, Elapsed: 10 * time.Millisecond}
	switch path.Base(root) {
	case "trusted":
		return relabel.Report{Trusted: true, Complete: true, Elapsed: time.Millisecond}, nil
	case "one":
		few.Seen, few.Right, few.Complete = 1, 1, true
		return few, nil
	case "changes", "differs":
		changed("plain", "system_u:object_r:etc_t:s0")
		changed("\x1b[31mred", "")
		changed("na\xffme", "b\x07d")
		few.Seen, few.Written, few.Right, few.Complete = 5, 3, 2, !check
		return few, nil
	case "crowd": // more that differs than is listed
		for i := range 45 {
			changed(fmt.Sprint("f", i), []string{"system_u:object_r:etc_t:s0", "", "u:r:\x1b:s0"}[min(i/20, 2)])
		}
		few.Seen, few.Written, few.Right = 50, 45, 5
		return few, nil
	case "every":
		o.Trace.Wait()
		o.Trace.Skip(root+"/mnt\n", "mounted read-only")
		few.Seen, few.Written, few.Right, few.Vanished, few.Skipped, few.Complete = 10, 1, 5, 2, 2, true
		few.Notes = []string{"the policy refused the seal"}
		o.Trace.Note(few.Notes[0])
		few.Interrupted = "system_u:object_r:container_file_t:s0:c7"
		return few, nil
	case "failed":
		err := failed("na\xffme\n", "setxattrat", syscall.EPERM)
		few.Seen, few.Written, few.Failed = 3, 2, 1
		return few, errors.Join(err, &fs.PathError{Op: "syncfs", Path: root, Err: syscall.EIO})
	case "many":
		var errs []error
		for i := range 1234 {
			errs = append(errs, failed(fmt.Sprint("f", i), "setxattrat", syscall.EROFS))
		}
		few.Seen, few.Failed = 1235, 1234
		return few, errors.Join(errs...)
	case "unfinished": // neither an error nor complete
		few.Seen, few.Right = 2, 2
		return few, nil
	case "missing":
		return few, &fs.PathError{Op: "openat", Path: root, Err: syscall.ENOENT}
	case "refused":
		return few, fmt.Errorf("%s: %w", root, relabel.ErrRefused)
	case "unsupported":
		few.Seen, few.Failed = 1, 1
		return few, &fs.PathError{Op: "getxattrat", Path: root, Err: syscall.ENOTSUP}
	case "deadline":
		<-ctx.Done()
		few.Seen, few.Written = 7, 7
		return few, ctx.Err()
	case "told": // in a callback, and again with a sentence
		few.Seen, few.Failed = 1, 1
		return few, fmt.Errorf("%w: the filesystem does not support labels: nothing to label there", failed("", "getxattrat", syscall.ENOTSUP))
	case "hung":
		<-ctx.Done()
		few.Seen, few.Skipped = 2, 2
		return few, &relabel.HungError{Calls: []relabel.HungCall{{Call: "getxattrat", Path: root + "/a\x1b"}, {Call: "fsync", Path: root}}, Cause: context.Cause(ctx)}
	case "stalls":
		call := relabel.HungCall{Call: "openat", Path: root + "/a\x1b"}
		o.Trace.Stall([]relabel.HungCall{call, {Call: "setxattrat", Path: root + "/b"}})
		o.Trace.Stall([]relabel.HungCall{call}) // was told
		<-ctx.Done()
		few.Seen, few.Skipped = 2, 2
		return few, &relabel.HungError{Calls: []relabel.HungCall{call}, Cause: context.Cause(ctx)}
	case "cut": // by the end, and fails by it
		<-ctx.Done()
		few.Seen, few.Failed = 1, 1
		return few, &fs.PathError{Op: "fgetxattr", Path: root, Err: syscall.EINTR}
	case "crowded": // with more failures than are listed
		for i := range report.MaxListed + 1 {
			_ = failed(fmt.Sprint("f", i), "setxattrat", syscall.EROFS)
		}
		<-ctx.Done()
		few.Seen, few.Failed = report.MaxListed+2, report.MaxListed+1
		return few, &relabel.HungError{Calls: []relabel.HungCall{{Call: "fsync", Path: root}}, Cause: context.Cause(ctx)}
	case "cause":
		<-ctx.Done()
		return few, context.Cause(ctx)
	}
	if check {
		rep.Right, rep.Written = rep.Written, 0
	}
	return rep, nil
}

func fakeInspect(root, _ string, t relabel.Skip) (relabel.RootState, error) {
	s := relabel.RootState{Label: "system_u:object_r:etc_t\x1b:s0"}
	switch path.Base(root) {
	case "right", "ri\xffght":
		s.Labelled = true
	case "top":
		s.Labelled, s.Label = t != relabel.SkipTop, defaultLabel
	case "sealed":
		s.Interrupted = true
	case "missing":
		return s, &fs.PathError{Op: "lgetxattr", Path: root, Err: syscall.ENOENT}
	case "unsupported":
		return s, &fs.PathError{Op: "lgetxattr", Path: root, Err: syscall.ENOTSUP}
	}
	return s, nil
}

// begins has fakeState say of o's run what state does.
func begins(o *relabel.Options, state func() relabel.State) {
	if o.Progress != nil {
		fakeStates.Store(o.Progress, state)
	}
}

var fakeStates sync.Map // func() relabel.State, by *relabel.Progress

func fakeState(p *relabel.Progress) (relabel.State, bool) {
	if state, begun := fakeStates.Load(p); begun {
		return state.(func() relabel.State)(), true
	}
	return relabel.State{}, false
}
