// SPDX-License-Identifier: Apache-2.0

package steal

import (
	"errors"
	"fmt"
)

// Panic says that a worker panicked. What it was working on is not among the
// items that Run returns.
type Panic struct {
	Value any    // what was passed to panic
	Stack []byte // the worker's stack where it panicked
}

func (p *Panic) Error() string { return fmt.Sprintf("a worker panicked: %v\n\n%s", p.Value, p.Stack) }

// Unwrap is the error that was passed to panic, if it was one.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// errGoexit stands in for a panic's value when runtime.Goexit ended a worker.
var errGoexit = errors.New("runtime.Goexit called")
