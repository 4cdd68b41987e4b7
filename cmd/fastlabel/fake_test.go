// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/seclabel"
	"github.com/fastlabel/fastlabel/relabel"
)

// fake is an engine that does what the root's last name says.
func fake() app {
	return app{tree: fakeTree, labelled: fakeLabelled, sealed: fakeSealed, label: fakeLabel}
}

func fakeTree(ctx context.Context, root, label string, o relabel.Options) (relabel.Report, error) {
	failed := func(name, op string, errno syscall.Errno) error {
		err := &fs.PathError{Op: op, Path: root + "/" + name, Err: errno}
		o.OnFailure(err)
		return err
	}
	changed := func(name, from string) {
		if o.OnChange != nil {
			o.OnChange(root+"/"+name, from)
		}
	}
	rep := relabel.Report{Root: root, Label: label, Seen: 1203441, Written: 1203441, Complete: true, Way: "clone/setxattrat", Elapsed: 1900 * time.Millisecond}
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
		few.Seen, few.Written, few.Right, few.Complete = 5, 3, 2, !o.DryRun
		return few, nil
	case "every":
		o.OnWait("process 17")
		o.OnSkip(root+"/mnt\n", "mounted read-only")
		few.Seen, few.Written, few.Right, few.Vanished, few.Skipped, few.Complete = 10, 1, 5, 2, 2, true
		few.Notes = []string{"the policy refused the seal"}
		o.OnNote(few.Notes[0])
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
		return few, fmt.Errorf("%w: the filesystem does not bear labels", failed("", "getxattrat", syscall.ENOTSUP))
	case "hung":
		<-ctx.Done()
		few.Seen, few.Skipped = 2, 2
		return few, &relabel.Hung{Calls: []relabel.HungCall{{Call: "getxattrat", Path: root + "/a\x1b"}, {Call: "fsync", Path: root}}, Cause: context.Cause(ctx)}
	case "stalls":
		call := relabel.HungCall{Call: "openat", Path: root + "/a\x1b"}
		o.OnStall([]relabel.HungCall{call, {Call: "setxattrat", Path: root + "/b"}})
		o.OnStall([]relabel.HungCall{call}) // was told
		<-ctx.Done()
		few.Seen, few.Skipped = 2, 2
		return few, &relabel.Hung{Calls: []relabel.HungCall{call}, Cause: context.Cause(ctx)}
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
		return few, &relabel.Hung{Calls: []relabel.HungCall{{Call: "fsync", Path: root}}, Cause: context.Cause(ctx)}
	case "cause":
		<-ctx.Done()
		return few, context.Cause(ctx)
	}
	if o.DryRun {
		rep.Right, rep.Written = rep.Written, 0
	}
	return rep, nil
}

func fakeLabelled(root, _ string, depth relabel.Depth) (bool, error) {
	switch path.Base(root) {
	case "right", "ri\xffght":
		return true, nil
	case "top":
		return depth == relabel.Root, nil
	case "missing":
		return false, &fs.PathError{Op: "lgetxattr", Path: root, Err: syscall.ENOENT}
	case "unsupported":
		return false, &fs.PathError{Op: "lgetxattr", Path: root, Err: syscall.ENOTSUP}
	}
	return false, nil
}

func fakeSealed(root, _ string) (bool, error) { return path.Base(root) == "sealed", nil }

func fakeLabel(root string) (string, error) {
	if path.Base(root) == "top" {
		return seclabel.Default, nil
	}
	return "system_u:object_r:etc_t\x1b:s0", nil
}
