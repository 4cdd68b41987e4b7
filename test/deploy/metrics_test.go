// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// buildProgram builds the command once for a test.
func buildProgram(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fastlabel")
	cmd := exec.Command("go", "build", "-o", file, "./cmd/fastlabel")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// runProgram returns stdout, and the exit code.
func runProgram(t *testing.T, program string, args ...string) (stdout []byte, code int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	stdout, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout, cmd.ProcessState.ExitCode()
}

// decodeMetrics reads the file as node_exporter's textfile collector does, which
// refuses timestamps.
func decodeMetrics(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for name, f := range families {
		var seen []string
		for _, m := range f.Metric {
			if m.TimestampMs != nil {
				t.Errorf("%s has a timestamp", name)
			}
			if s := m.String(); slices.Contains(seen, labelsOf(m)) {
				t.Errorf("%s: twice %s", name, s)
			}
			seen = append(seen, labelsOf(m))
		}
	}
	return families
}

func labelsOf(m *dto.Metric) string {
	var all []string
	for _, l := range m.Label {
		all = append(all, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(all, " ")
}

// What --metrics writes is read by Prometheus' decoder as it was meant, and its
// linter finds nothing. A file that the linter or the decoder should refuse is
// refused.
func TestMetrics(t *testing.T) {
	program := buildProgram(t)
	dir := t.TempDir()
	volume := filepath.Join(dir, "a \"b\"\\n\nc")
	for _, d := range []string{volume, filepath.Join(volume, "d"), filepath.Join(dir, "na\xffme")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "fastlabel.prom")
	paths := []string{volume, filepath.Join(dir, "na\xffme"), "/proc/self/comm"} // the last has no labels
	before := time.Now()
	// No file there has this type, whatever machine this is.
	_, code := runProgram(t, program, append([]string{"verify", "-q", "-t", "never_given_t", "--metrics", file}, paths...)...)
	if code != 3 {
		t.Fatalf("exit %d", code)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
		t.Error(info.Mode(), err)
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}

	got := map[string]float64{}
	families := decodeMetrics(t, text)
	for name, f := range families {
		if f.GetType() != dto.MetricType_GAUGE || f.GetHelp() == "" {
			t.Errorf("%s: %v, %q", name, f.GetType(), f.GetHelp())
		}
		for _, m := range f.Metric {
			got[strings.TrimPrefix(name, "fastlabel_last_run_")+" "+strings.ReplaceAll(labelsOf(m), dir, "")] = m.Gauge.GetValue()
		}
	}
	whole := strings.TrimPrefix(volume, dir)
	for series, want := range map[string]float64{
		"exit_code command=verify path=" + whole:                   4,
		"entries command=verify path=" + whole + " result=differs": 2,
		"entries command=verify path=" + whole + " result=failed":  0,
		`exit_code command=verify path="/na\xffme"`:                4,
		"exit_code command=verify path=/proc/self/comm":            3,
	} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("%s: %v (%v), not %v in\n%s", series, value, ok, want, text)
		}
	}
	ended := got["timestamp_seconds command=verify path="+whole]
	if ended < float64(before.UnixMilli())/1000 || ended > float64(time.Now().UnixMilli()+1)/1000 {
		t.Errorf("ended at %f", ended)
	}
	if len(families) != 4 {
		t.Errorf("%d families", len(families))
	}

	for name, broken := range map[string]string{
		"no help":          strings.Replace(string(text), "# HELP fastlabel_last_run_exit_code", "# help", 1),
		"a counter's name": strings.ReplaceAll(string(text), "run_entries", "run_entries_total"),
	} {
		if problems, err := promlint.New(strings.NewReader(broken)).Lint(); err != nil || len(problems) == 0 {
			t.Errorf("%s: %v, %v", name, problems, err)
		}
	}
	var parser expfmt.TextParser
	if _, err := parser.TextToMetricFamilies(strings.NewReader(strings.Replace(string(text), `\"`, `"`, 1))); err == nil {
		t.Error("a quote that is not escaped passes")
	}
}
