// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"path/filepath"
	"testing"
)

// Whatever comes on stdin: no panic, and no state without what the
// specification requires, an absolute bundle above all.
func FuzzHookState(f *testing.F) {
	f.Add([]byte(runcState))
	f.Add([]byte(crunState))
	for text := range badStates {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"ociVersion":"1","id":"a","status":"creating","bundle":"/b","bundle":"b"}`))
	f.Add([]byte(`{"ociVersion":"1","id":"a","status":"creating","bundle":"/b","Bundle":""}`))
	f.Add([]byte(`{"ociVersion":"1","id":"\ud800","status":"creating","bundle":"/\u0000"}`))
	f.Add([]byte(`{"ociVersion":"1","id":"a","status":"creating","bundle":"/b","annotations":{"io.fastlabel.relabel":"/a,/b/..","io.fastlabel.label":"u:r:t:s0:c1","io.fastlabel.shared":"true"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := DecodeState(text)
		if err != nil {
			return
		}
		if !filepath.IsAbs(s.Bundle) || s.ID == "" || s.Version == "" || s.Status == "" {
			t.Errorf("accepted %+v", s)
		}
		r, err := ReadRequest(s.Annotations, "u:r:t:s0")
		if err != nil || r == nil {
			return
		}
		if r.Label == "" || r.Skip == "" || r.All == (len(r.Destinations) > 0) {
			t.Errorf("asked for %+v", r)
		}
		for _, d := range r.Destinations {
			if !filepath.IsAbs(d) || d != filepath.Clean(d) {
				t.Errorf("destination %q", d)
			}
		}
	})
}
