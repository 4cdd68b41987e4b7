// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/relabel"
)

// Fault is an error taken apart.
type Fault struct{ path, op, text string }

// FaultOf takes err apart; root is the path if it names none. What stands
// around an fs.PathError is kept in the text.
func FaultOf(root string, err error) Fault {
	f := Fault{path: root}
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

// FailuresOf are the calls of a run that hung, each as a failure.
func FailuresOf(hung *relabel.HungError) []error {
	var errs []error
	for _, c := range hung.Calls {
		errs = append(errs, &fs.PathError{Op: c.Call, Path: c.Path, Err: errors.New("does not return")})
	}
	return errs
}

// String is a line for people, of what is known.
func (f Fault) String() string {
	line := f.text
	if f.op != "" {
		line = f.op + ": " + line
	}
	if f.path != "" {
		line = words.Quote(f.path) + ": " + line
	}
	return line
}
