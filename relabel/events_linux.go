// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"io/fs"

	"github.com/fastlabel/fastlabel/relabel/internal/xattrio"
)

// keepErrors is how many failures the error that Tree returns holds. All of
// them are counted, and told to Options.OnFailure.
const keepErrors = 16

func (r *run) reportFailure(path, op string, err error) {
	f := &fs.PathError{Op: op, Path: path, Err: err}
	r.events.Lock()
	if len(r.first) < keepErrors {
		r.first = append(r.first, f)
	}
	r.events.Unlock()
	if r.o.OnFailure != nil {
		r.serially("OnFailure", path, func() { r.o.OnFailure(f) })
	}
}

func (r *run) change(d *dir, t xattrio.Target, from string) {
	if r.o.OnChange != nil {
		path := d.path(t.String())
		r.serially("OnChange", path, func() { r.o.OnChange(path, from) })
	}
}

func (r *run) skip(path, reason string) {
	if r.o.OnSkip != nil {
		r.serially("OnSkip", path, func() { r.o.OnSkip(path, reason) })
	}
}
