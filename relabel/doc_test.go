// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContractIsHeld looks up each test that the contract names.
func TestContractIsHeld(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, dir := range []string{".", "internal/*", "../internal/*", "../test/selinuxvm/inside"} {
		in, err := filepath.Glob(dir + "/*_test.go")
		if err != nil || in == nil {
			t.Fatal(dir, err)
		}
		files = append(files, in...)
	}
	var tests strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	names := regexp.MustCompile(`Test[A-Z][A-Za-z]*`).FindAllString(string(doc), -1)
	if len(names) < 11 {
		t.Errorf("the contract names %d tests, fewer than it has points", len(names))
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "func "+name+"(t *testing.T)") {
			t.Errorf("doc.go names %s, which does not exist", name)
		}
	}
}
