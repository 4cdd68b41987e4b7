// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"os"
	"strings"
	"testing"
)

// TestPromise names what was promised and is not there, before each test that needs
// it fails.
func TestPromise(t *testing.T) {
	for what := range strings.SplitSeq(os.Getenv(promiseEnv), ",") {
		switch what {
		case "", "nothing":
			continue
		}
		if err := has(what); err != nil {
			t.Errorf("this machine lacks %s: %s", what, strings.Join(strings.Fields(err.Error()), " "))
		}
	}
}
