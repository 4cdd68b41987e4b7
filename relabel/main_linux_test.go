// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"os"
	"testing"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) {
	if p, err := mounts.OpenProc(mounts.Seen{}); err == nil { // what a process opens once is open: see openFiles
		p.Close()
	}
	os.Exit(treetest.Main(m))
}

// The sizes that package walk has; the first three are promised.
const (
	guessAfter = 32
	guessCheck = 64
	sickAfter  = 128
	bufferSize = 64 << 10
	readSize   = 32 << 10 // of a call, in package sys
	mostOpen   = 36
)

func isLabelled(root, label string, skip Skip) (bool, error) {
	s, err := Inspect(root, label, skip)
	return s.Labelled, err
}

func isInterrupted(root, label string) (bool, error) {
	s, err := Inspect(root, label, SkipRoot)
	return s.Interrupted, err
}

// taken fails the test unless the process's budget has so many descriptors open, and no worker.
func taken(t *testing.T, open int) {
	t.Helper()
	if w, h, o := process.Taken(); w != 0 || h != 0 || o != open {
		t.Errorf("%d work, %d hang, %d open, not %d", w, h, o, open)
	}
}
