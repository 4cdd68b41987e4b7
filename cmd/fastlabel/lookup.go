// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/relabel"
)

// notBegun is an error that is found while the PATHs are looked up: nothing
// was written.
type notBegun struct{ error }

// mistaken tells that an operand was hardly meant as a PATH. first says that
// the first may be a command's name; the last literal operands stand behind --
// and are PATHs whatever they look like.
func mistaken(operands []string, literal int, first bool, isThere func(string) bool) error {
	for i, o := range operands[:len(operands)-literal] {
		if strings.Contains(o, "/") {
			continue
		}
		if isContext(o) {
			return notBegun{fmt.Errorf("%s is a label and no PATH; nothing was begun; to give it: --label %s", brief(o), brief(o))}
		}
		if near := nearest(o, callable()); i == 0 && first && near != "" && isThere(o) {
			return notBegun{fmt.Errorf("%s may be the command %s mistyped; nothing was begun; if it is a PATH write %s", brief(o), near, brief("./"+o))}
		}
	}
	return nil
}

// isContext tells what looks like a security context. A name in which three or
// four fields have colons between them is rare, and ./ in front makes it a PATH.
func isContext(word string) bool {
	fields := strings.Split(word, ":")
	return len(fields) >= 3 && len(fields) <= 5 && !slices.Contains(fields[:3], "")
}

// lookUp looks at each PATH before any of them is touched: one that is missing
// is most often a typing error.
func (j *job) lookUp(ctx context.Context, operands, paths []string) error {
	if j.lstat == nil || j.command == "explain" { // which writes nothing
		return nil
	}
	isThere := func(p string) bool { _, err := j.lstat(p); return err == nil }
	if err := mistaken(operands, j.literal, j.command == "" && !j.named, isThere); err != nil {
		return err
	}
	look := looked{links: map[string]bool{}, readOnly: map[string]bool{}}
	var waits []func() error
	for i, group := range byServer(paths) {
		if len(group) == 0 {
			continue
		}
		waits = append(waits, look.begin(ctx, j.app, group, i > 0 || isPart()))
	}
	for _, wait := range waits {
		if err := wait(); err != nil {
			return err
		}
	}
	if j.looked = look; look.missing == 0 {
		return nil
	}
	which := brief(look.first)
	if look.missing > 1 {
		which += " and " + thousands(int64(look.missing-1)) + " more"
	}
	text := which + ": no such file or directory; nothing was begun"
	if near := nearest(look.first, callable()); near != "" && !strings.Contains(look.first, "/") && slices.Contains(operands, look.first) {
		text += "; did you mean fastlabel " + near + "?"
	}
	return notBegun{errors.New(text)}
}

// looked is what was found out about the PATHs.
type looked struct {
	missing int
	first   string // of those that are missing

	links    map[string]bool // symbolic links to directories
	readOnly map[string]bool // where nothing can be written
}

// look looks at one PATH.
func (l *looked) look(a app, path string) {
	info, err := a.lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		if l.missing++; l.missing == 1 {
			l.first = path
		}
		return
	case err != nil || info == nil: // the run tells
		return
	}
	if a.readOnly != nil && a.readOnly(path) {
		l.readOnly[path] = true
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if to, err := a.lstat(path + "/"); err == nil && to.IsDir() {
			l.links[path] = true
		}
	}
}

// add takes over what was found on one filesystem.
func (l *looked) add(of looked) {
	if l.missing == 0 {
		l.first = of.first
	}
	l.missing += of.missing
	maps.Copy(l.links, of.links)
	maps.Copy(l.readOnly, of.readOnly)
}

// lookPatience is how long a served filesystem may take to answer one look: the
// run itself waits longer, and tells what hangs.
const lookPatience = 200 * time.Millisecond

// begin looks at the PATHs of one filesystem; wait adds what was found.
func (l *looked) begin(ctx context.Context, a app, paths []string, served bool) (wait func() error) {
	var at atomic.Int64
	done := make(chan looked, 1)
	go func() {
		f := looked{links: map[string]bool{}, readOnly: map[string]bool{}}
		for i, p := range paths {
			at.Store(int64(i))
			if ctx.Err() != nil {
				break
			}
			f.look(a, p)
		}
		done <- f
	}()
	return func() error {
		tick := time.NewTicker(lookPatience)
		defer tick.Stop()
		ended := ctx.Done()
		if served {
			ended = nil // the run says what it waits for
		}
		for last := int64(-1); ; {
			select {
			case f := <-done:
				l.add(f)
				return nil
			case <-ended:
				call := relabel.HungCall{Call: "lstat", Path: paths[at.Load()]}
				return &relabel.Hung{Calls: []relabel.HungCall{call}, Cause: context.Cause(ctx)}
			case <-tick.C:
				now := at.Load()
				if served && now == last {
					return nil
				}
				last = now
			}
		}
	}
}
