// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/mutants"
)

// TestTorture kills the command before its calls, and has two of it at once, in both
// kernels: what of test/system/torture is about labels, in its short form. Errors and calls
// that hang come from filesystems in user space there, a power loss from a disk that
// is one: no policy has a say in them. The races are TestEngine's; with one
// processor two programs seldom meet.
func TestTorture(t *testing.T) {
	m := image(t)
	files := houseFiles(t)
	files["tests/torture.test"] = build(t, house+"/test/system/torture", ".", true)
	files["builds/fastlabel"] = build(t, house, "./cmd/fastlabel", false)
	control, err := mutants.Find("lock-skipped")
	if err != nil {
		t.Fatal(err)
	}
	files["builds/"+control.Name] = build(t, house, "./cmd/fastlabel", false, overlay(t, control)...)
	for _, k := range m.Kernels {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			runTests(t, m, k, Command{
				Args:    []string{"/payload/tests/torture.test", "-test.run=^(TestKill|TestPairs)$"},
				Dir:     "/payload/house/test/system/torture",
				Env:     []string{"FASTLABEL_PROMISE=root,ext4,xfs,btrfs,tmpfs,seccomp", "FASTLABEL_BUILDS=/payload/builds", "TORTURE=short"},
				Files:   files,
				Timeout: time.Hour,
			})
		})
	}
}
