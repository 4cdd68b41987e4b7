// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// The kubelet's directory for a volume is labelled without the volume, and with a note,
// where the volume is not mounted.
func TestNotMounted(t *testing.T) {
	treetest.Need(t, "root", "plain")
	t.Chdir(t.TempDir())
	const volume = "pods/u/volumes/kubernetes.io~csi/pv/mount"
	treetest.Must(t, os.MkdirAll(volume, 0o700))
	a := real()
	a.name = "fastlabel"
	const want = ": no volume is mounted there: it is the kubelet's directory for one (kubernetes.io/csi); give the place where it is mounted\n"
	if got := transcript(a, calls(volume)); !strings.Contains(got, want) {
		t.Errorf("%s lacks %s", got, want)
	}
	treetest.Must(t, syscall.Mount("none", volume, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = syscall.Unmount(volume, 0) })
	if got := transcript(a, calls(volume, filepath.Join(volume, "."))); strings.Contains(got, "no volume") {
		t.Error(got)
	}
}
