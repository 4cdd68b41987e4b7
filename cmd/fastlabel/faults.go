// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// fault is an error taken apart.
type fault struct{ path, op, text string }

// explain takes err apart; root is the path if it names none. What stands
// around an fs.PathError is kept in the text.
func explain(root string, err error) fault {
	f := fault{path: root}
	var at *fs.PathError
	if !errors.As(err, &at) {
		f.text = words.Clean(strings.TrimPrefix(err.Error(), root+": "))
		return f
	}
	f.path = at.Path
	if about, ok := strings.CutPrefix(err.Error()+": ", at.Error()+": "); ok {
		f.op, f.text = words.Clean(at.Op), words.Clean(strings.TrimSuffix(at.Err.Error()+": "+about, ": "))
	} else {
		f.text = words.Clean(err.Error())
	}
	return f
}

// errHangs is the failure of a call that has not returned when its run ends.
var errHangs = errors.New("does not return")

// failuresOf are the calls of a run that hung, each as a failure.
func failuresOf(hung *relabel.Hung) []error {
	var errs []error
	for _, c := range hung.Calls {
		errs = append(errs, &fs.PathError{Op: c.Call, Path: c.Path, Err: errHangs})
	}
	return errs
}

// notBegun says what is wrong with a command line.
func notBegun(err error) string {
	if errors.As(err, new(mistake)) {
		return words.Clean(err.Error())
	}
	said := explain("", err).String()
	if errors.As(err, new(metricsError)) {
		said = "--metrics: " + words.Clean(err.Error())
	}
	return said + "; nothing was begun"
}

func sayFailure(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "fastlabel: %s\n", explain("", err))
}

// String is a line for people, of what is known.
func (f fault) String() string {
	line := f.text
	if f.op != "" {
		line = f.op + ": " + line
	}
	if f.path != "" {
		line = words.Quote(f.path) + ": " + line
	}
	return line
}
