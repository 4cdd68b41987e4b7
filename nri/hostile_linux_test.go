// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What the author of a pod can choose: whatever it is, nothing has another label after
// it but the pod's own volumes, and the answer is a short line.

// TestLevels: the annotation is compared with the sandbox's label as a level, not as text,
// and one that is another level is never written.
func TestLevels(t *testing.T) {
	const form = "system_u:object_r:container_file_t:"
	for _, c := range []struct {
		has, says string
		want      outcome
	}{
		{"s0", "s0", labelled},
		{"s0:c1,c2", "s0:c2,c1", labelled},
		{"s0:c1.c3", "s0:c1,c2,c3", labelled},
		{"s0:c1,c2,c3", "s0:c3,c1.c2", labelled},
		{"s0-s0:c0.c1023", "s0-s0:c0.c1023", labelled},
		{"s0-s0:c0.c1023", "s0-s0:c0,c1.c1023", labelled},
		{"s0-s0:c0.c1023", "s0:c0.c1023", drawn},
		{"s0-s0:c0.c1023", "s0", drawn},
		{"s0:c10,c20", "s0:c10.c20", drawn},
		{"s0:c10,c20", "s0-s0:c10,c20", drawn},
		{"s0:c1,c2", "s1:c1,c2", drawn},
		{"s0:c1,c2", "s0:c2.c1", mistyped},
		{"s0:c1,c2", "s0:", mistyped},
		{"s0:c1,c2", "s0:c1,,c2", mistyped},
		{"s0:c1,c2", "s0:c1,c2:c3", mistyped},
		{"s0:c1,c2", "s0:c1,c2\x00", labelled}, // what ends a label in an attribute
		{"s0:c1,c2", " s0:c1,c2", mistyped},
		{"s0:c1,c2", "", mistyped},
		{"s0:c1,c2", "true", mistyped},
		{"s0:c1,c2", "fixed ", mistyped},
		{"s0:c1,c2", "s0:c1,c2\n", mistyped},
		{"s0:c1,c2", form + "s0:c1,c2", mistyped},
		{"s0:c1,c2", strings.Repeat("s", 1<<10), mistyped},
	} {
		var s sandbox
		s.Linux.MountLabel = form + c.has
		label, got, err := s.wants(c.says)
		if got != c.want || (got == labelled) != (err == nil) || (got == labelled) != (label != "") {
			t.Errorf("%s for %s: %q, %s, %v", c.says, c.has, label, got, err)
		}
		if got == mistyped && (!strings.Contains(err.Error(), "is neither a level") || len(err.Error()) > 400) {
			t.Errorf("%.40q: %v", c.says, err)
		}
	}
}

// TestOneLine: what is in the event is a line of UTF-8 of some hundred bytes, whatever
// volumes are called, and however many there are.
func TestOneLine(t *testing.T) {
	text := oneLine("pv\n\x1b[31m\xff" + strings.Repeat("é", 1000))
	if !strings.HasPrefix(text, "pv��[31m�é") || !utf8.ValidString(text) || len(text) > longest+len("…") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}
