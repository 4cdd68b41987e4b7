// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/seclabel"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/stream"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/workload"
	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/relabel"
)

const (
	private = "system_u:object_r:container_file_t:s0:c10,c20"
	stray   = "system_u:object_r:unlabeled_t:s0"
)

// sites are what explain finds, by what is there.
func sites() map[string]explanation {
	disk := site.Mount{Mount: mountinfo.Mount{Root: "/", Point: "/srv/v", FSType: "ext4", Source: "/dev/sdb1", Options: "rw,nosuid", Super: "rw,seclabel"}}
	common := explanation{
		Site: site.Site{Path: "/srv/v", Real: "/srv/v", Directory: true, Mount: disk, Label: stray, HasLabel: true, SELinux: true},
		want: private, from: "the flags",
	}

	all := map[string]explanation{"wrong": common}

	bare := common
	bare.Label, bare.HasLabel, bare.Path, bare.want = "", false, "-v w", seclabel.Default
	all["no label, shared"] = bare

	right := common
	right.Label, right.SELinux = private, false
	all["right, no record"] = right

	done := common
	done.Label, done.root.Commit = private, relabel.Commit{Label: private, Began: time.Unix(1e9, 0), Ended: time.Unix(1e9+60, 0), Entries: 1203441, Written: 1203440}
	done.from = "the level of PATH"
	done.Beneath = []site.Mount{
		{Mount: mountinfo.Mount{Point: "/srv/v/nfs\n", FSType: "nfs4", ReadOnly: true}, NoLabels: "the filesystem (nfs4) does not support labels"},
		{Mount: mountinfo.Mount{Point: "/srv/v/tmp", FSType: "tmpfs", Options: "rw"}, Unknown: true},
	}
	all["done"] = done

	changed := done
	changed.Beneath, changed.Label, changed.Mount.Point = nil, stray, "/srv"
	all["changed since"] = changed

	sealed := common
	sealed.Label, sealed.root.Interrupted = "unconfined_u:object_r:container_file_t:s0:c10,c20", true
	all["interrupted"] = sealed

	refused := common
	refused.Path, refused.Real, refused.Label, refused.Mount.Point = "/etc", "/etc", "system_u:object_r:etc_t:s0", "/"
	all["refused"] = refused

	readOnly := common
	readOnly.Mount.ReadOnly = true
	all["read-only"] = readOnly

	context := common
	context.HasLabel, context.Label = false, ""
	context.Mount.Super = `rw,context="system_u:object_r:container_file_t:s0:c1,c2"`
	context.Mount.NoLabels = "mounted with context=, which gives every file one label"
	all["mounted with context"] = context

	pod := common
	pod.Real = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount"
	pod.pods = workload.Pods{Containers: []workload.Container{
		{Pod: "Deployment web", Name: "app", Asks: workload.Asks{Level: "s0:c10,c20", TrySkip: true, RuntimeClass: "x", ContainerdDraws: true, LeftByCRIO: "so it is"}},
		{Pod: "Deployment web", Name: "side\x1b", Asks: workload.Asks{User: "user_u"}},
	}, Unread: []string{"Service"}}
	all["containers that differ"] = pod

	drawn := common
	drawn.pods = workload.Pods{Containers: []workload.Container{{Pod: "Pod p", Name: "a"}}}
	all["no level"] = drawn

	odd := common
	odd.Path, odd.Real, odd.Label, odd.Mount.Point, odd.Mount.Source = "v\xff", "/srv/v\xff", "x\xff", "/srv/v\xff", "/dev/\xff"
	odd.Beneath = []site.Mount{odd.Mount}
	all["names that are not UTF-8"] = odd

	for name, e := range all {
		e.root.Labelled = e.Label == e.want
		e.foresee(name == "refused")
		all[name] = e
	}
	return all
}

func TestExplained(t *testing.T) {
	var b strings.Builder
	all := sites()
	for _, name := range []string{"wrong", "no label, shared", "right, no record", "done", "changed since", "interrupted", "refused", "read-only", "mounted with context", "containers that differ", "no level", "names that are not UTF-8"} {
		var out bytes.Buffer
		s := stream.NewSink(&out)
		s.Line([]byte(all[name].text(false)), true)
		(&report.JSON{Out: s}).Explained("", all[name].object())
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(out.String(), "\n{")
		for i, line := range strings.Split(text, "\n") {
			if len(line) > 120 {
				t.Errorf("%s: line %d is wider than any screen: %s", name, i, line)
			}
			if i > 45 {
				t.Errorf("%s: more than a screen", name)
				break
			}
		}
		fmt.Fprintf(&b, "# %s\n%s", name, out.String())
	}
	golden(t, "explain", b.String())
	shipped := readText(t, "../../deploy/oci/pod.yaml")
	for _, line := range []string{"\n    " + workload.TrySkip[1] + `: "true"`, "\n  runtimeClassName: " + handler + "\n", "level: s0:c10,c20"} {
		if !strings.Contains(shipped, line) {
			t.Errorf("deploy/oci/pod.yaml has no line %q", line)
		}
	}
	page := readText(t, "../../docs/explain.md")
	for _, key := range regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(b.String(), -1) {
		if !strings.Contains(page, "`"+key[1]+"`") && key[1] != "message_type" {
			t.Errorf("docs/explain.md has no %s", key[1])
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("an escape gets out")
	}
}

// Which label is explained: the pod's, the flags', that of PATH, the default.
func TestWanted(t *testing.T) {
	of := func(label string) site.Site { return site.Site{Label: label, HasLabel: label != ""} }
	pods := workload.Pods{Containers: []workload.Container{
		{Name: "drawn"},
		{Pod: "Pod p", Name: "a", Asks: workload.Asks{User: "user_u", Level: "s0:c3"}},
	}}
	for _, c := range []struct {
		args       string
		v          site.Site
		pods       workload.Pods
		want, from string
	}{
		{"", of(""), workload.Pods{}, seclabel.Default, "the default"},
		{"", of(private), workload.Pods{}, private, "the level of PATH"},
		{"", of("unconfined_u:object_r:container_file_t:s0:c10,c20"), workload.Pods{}, private, "the level of PATH"},
		{"", of("system_u:object_r:etc_t:s0:c1"), workload.Pods{}, seclabel.Default, "the default"},
		{"", of("system_u:object_r:container_file_t:s0-s0:c0.c1023"), workload.Pods{}, seclabel.Default, "the default"},
		{"", of("x\x1b"), workload.Pods{}, seclabel.Default, "the default"},
		{"-t etc_t", of("system_u:object_r:etc_t:s0:c1"), workload.Pods{}, "system_u:object_r:etc_t:s0:c1", "the level of PATH"},
		{"-l s0:c7", of(private), workload.Pods{}, "system_u:object_r:container_file_t:s0:c7", "the flags"},
		{"", of(private), pods, "user_u:object_r:container_file_t:s0:c3", "Pod p, container a"},
		{"-t etc_t", of(private), pods, "user_u:object_r:etc_t:s0:c3", "Pod p, container a"},
	} {
		s, _, err := parsed(strings.Fields("explain " + c.args))
		if err != nil {
			t.Fatal(err)
		}
		j := &job{settings: &s}
		if j.label, err = target(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		if want, from := j.wanted(c.v, c.pods); want != c.want || from != c.from {
			t.Errorf("%q, %q: %s (%s), not %s (%s)", c.args, c.v.Label, want, from, c.want, c.from)
		}
	}
}

func TestExplainUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"pod.json": `{"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}}`,
		"bad.json": `{"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "securityContext": {"seLinuxOptions": {"level": "c1"}}}]}}`,
		"odd.json": `{"kind": "\u001b[31m"}`,
		"pod.yaml": "kind: Pod",
		"big.json": strings.Repeat(" ", 1<<20+1),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := calls("explain", "explain -n /p", "explain --output crio /p", "explain --whole /p",
		"explain --for pod.json --label u:r:t:s0 /p", "explain --for pod.json -l s0 /p", "explain --for pod.json --user x /p",
		"explain --for - -f -", "explain --for bad.json /p", "explain --for odd.json /p", "explain --for pod.yaml /p", "explain --for big.json /p", "explain --for nothere /p")
	golden(t, "explainusage", transcript(app{}, all))
}
