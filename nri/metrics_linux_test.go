// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

const metricsText = `# HELP fastlabel_nri_requests_total Sandboxes of pods with the annotation, by outcome.
# TYPE fastlabel_nri_requests_total counter
fastlabel_nri_requests_total{outcome="goes_on"} 2
fastlabel_nri_requests_total{outcome="labelled"} 1
# HELP fastlabel_nri_volumes_total Volumes that were looked at, by how that ended.
# TYPE fastlabel_nri_volumes_total counter
fastlabel_nri_volumes_total{result="failed"} 1
fastlabel_nri_volumes_total{result="labelled"} 1
fastlabel_nri_volumes_total{result="stopped"} 1
# HELP fastlabel_nri_volumes Volumes that are being labelled, and that wait.
# TYPE fastlabel_nri_volumes gauge
fastlabel_nri_volumes{state="queued"} 4
fastlabel_nri_volumes{state="walk"} 3
# HELP fastlabel_nri_connected Whether a runtime has the plugin registered.
# TYPE fastlabel_nri_connected gauge
fastlabel_nri_connected 1
`

// TestMetrics: the file is replaced as a whole, and all may read it.
func TestMetrics(t *testing.T) {
	var c counts
	c.connected.Store(true)
	for _, o := range []outcome{goesOn, labelled, goesOn} {
		c.request(o)
	}
	for _, err := range []error{nil, errGone, errors.Join(relabel.ErrOvertaken)} {
		c.volume(err)
	}
	file := filepath.Join(t.TempDir(), "nri.prom")
	for _, text := range [][]byte{[]byte("former"), c.text(3, 4)} {
		treetest.Must(t, replace(file, text))
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, []byte(metricsText)) {
		t.Errorf("%v\n%s", err, got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
		t.Error(info.Mode(), err)
	}
	if all, err := os.ReadDir(filepath.Dir(file)); err != nil || len(all) != 1 {
		t.Error(all, err)
	}
	if replace(filepath.Join(file, "beneath"), got) == nil {
		t.Error("no error where it cannot be made")
	}
}
