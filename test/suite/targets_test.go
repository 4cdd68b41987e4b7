// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTargets: what the Makefile says by @FUNCTION are tests that there are. What
// -short makes smaller is what make check runs whole, and only what builds a command,
// or counts allocations, is left out under the race detector.
func TestTargets(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for what, some := range map[string]string{"-run=@testing.Short": "TestMemory TestEveryWay", "-skip=@treetest.Command|runtime.ReadMemStats": "TestMemory TestErrnoTable TestAllocations"} {
		if !strings.Contains(string(text), what+" ") {
			t.Error("the Makefile has no", what)
		}
		_, functions, _ := strings.Cut(what, "@")
		tests, err := callers("../..", strings.Split(functions, "|")...)
		if err != nil {
			t.Fatal(err)
		}
		for test := range strings.FieldsSeq(some) {
			if is, err := regexp.MatchString(tests, test); !is || err != nil {
				t.Errorf("%s does not call %s: %v", test, functions, err)
			}
		}
		if regexp.MustCompile(tests).MatchString("TestInvalidLabels") {
			t.Errorf("%s is called by all: %s", functions, tests)
		}
	}
}

// A pass that names no test is a failure.
func TestNoCallers(t *testing.T) {
	module(t, "good")
	code, said := runs(nil, "only -run=@testing.Short ./good", "next -run=@t.Skip ./good")
	if code != 1 || !strings.Contains(said, "no test calls testing.Short") || !strings.HasSuffix(said, "\n0 passed, 1 failed, 1 skipped\n") {
		t.Errorf("exit %d: %s", code, said)
	}
}
