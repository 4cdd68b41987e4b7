// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/survey"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/workload"
	"github.com/fastlabel/fastlabel/relabel"
)

const (
	private = "system_u:object_r:container_file_t:s0:c10,c20"
	stray   = "system_u:object_r:unlabeled_t:s0"
)

// sites are what explain finds, by what is there.
func sites() map[string]explanation {
	disk := mounted{mountLine: mountLine{root: "/", point: "/srv/v", fstype: "ext4", source: "/dev/sdb1", options: []string{"rw", "nosuid"}, super: []string{"rw", "seclabel"}}}
	plainly := site{path: "/srv/v", real: "/srv/v", directory: true, mount: disk, top: true, whole: true, label: stray, hasLabel: true, inodes: 1203441, selinux: true}
	plainly.sample = survey.Sample{
		Entries: 150000, Directories: 312, Least: 900000, Most: 4000000, Each: 20 * time.Microsecond, Elapsed: 2 * time.Second,
		Labels: []survey.Count{{Label: stray, Top: 14, Beneath: 149000}, {Label: "", Top: 0, Beneath: 900}, {Label: "\x1b[31m", Top: 1, Beneath: 84}},
	}
	common := explanation{site: plainly, want: private, from: "the flags"}

	all := map[string]explanation{"wrong": common}

	done := common
	done.label, done.commit = private, relabel.Commit{Label: private, Began: time.Unix(1e9, 0), Ended: time.Unix(1e9+60, 0), Entries: 1203441, Written: 1203440}
	done.sample.Labels = []survey.Count{{Label: private, Top: 15, Beneath: 149900}, {Label: stray, Beneath: 84}}
	done.from = "the level of PATH"
	done.beneath = []mounted{
		{mountLine: mountLine{point: "/srv/v/nfs\n", fstype: "nfs4", options: []string{"ro"}}, noLabels: "the mount (nfs4) shows no seclabel"},
		{mountLine: mountLine{point: "/srv/v/tmp", fstype: "tmpfs", options: []string{"rw"}}, unknown: true},
	}
	all["done, with strays"] = done

	sealed := common
	sealed.label, sealed.sealed = "unconfined_u:object_r:container_file_t:s0:c10,c20", true
	sealed.sample = survey.Sample{Entries: 1, Least: 1, Elapsed: 2 * time.Second, Failed: 1, First: &fs.PathError{Op: "openat", Path: "/srv/v/\x1b", Err: syscall.EIO}}
	sealed.inodes = 0
	all["sealed, nothing read"] = sealed

	context := common
	context.hasLabel, context.label = false, ""
	context.mount.super = []string{"rw", `context="system_u:object_r:container_file_t:s0:c1`, `c2"`}
	context.mount.noLabels = context.mount.mountLine.noLabels(false)
	context.sample = survey.Sample{Entries: 4, Directories: 1, Least: 4, Most: 4, Whole: true, Counted: true, Labels: []survey.Count{{Top: 3}}}
	all["mounted with context"] = context

	pod := common
	pod.real = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount"
	pod.pods = workload.Pods{Containers: []workload.Container{
		{Pod: "Deployment web", Name: "app", Asks: workload.Asks{Level: "s0:c10,c20", TrySkip: true, RuntimeClass: "x", ContainerdDraws: true, LeftByCRIO: "so it is"}},
		{Pod: "Deployment web", Name: "side\x1b", Asks: workload.Asks{User: "user_u"}},
		{Pod: "Deployment web", Name: "mighty", Asks: workload.Asks{Left: "the container is privileged"}},
	}, Unread: []string{"Service"}}
	all["containers that differ"] = pod

	drawn := common
	drawn.pods = workload.Pods{Containers: []workload.Container{{Pod: "Pod p", Name: "a"}}}
	all["no level"] = drawn

	odd := common
	odd.path, odd.real, odd.label, odd.mount.point, odd.mount.source = "v\xff", "/srv/v\xff", "x\xff", "/srv/v\xff", "/dev/\xff"
	odd.sample.Labels = []survey.Count{{Label: "x\xff", Top: 1000}}
	odd.sample.Others = 17
	odd.beneath = []mounted{odd.mount}
	all["names that are not UTF-8"] = odd

	for name, e := range all {
		e.labelled = e.label == e.want
		e.foresee(false)
		all[name] = e
	}
	return all
}

func TestExplained(t *testing.T) {
	var b strings.Builder
	all := sites()
	for _, name := range []string{"wrong", "done, with strays", "sealed, nothing read", "mounted with context", "containers that differ", "no level", "names that are not UTF-8"} {
		var out bytes.Buffer
		s := newSink(&out)
		(&people{out: s}).explained(all[name])
		(&jsonLines{out: s}).explained(all[name])
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(out.String(), "\n{")
		for i, line := range strings.Split(text, "\n") {
			if len(line) > 120 {
				t.Errorf("%s: line %d is wider than any screen: %s", name, i, line)
			}
			if i > 40 {
				t.Errorf("%s: more than a screen", name)
				break
			}
		}
		fmt.Fprintf(&b, "# %s\n%s", name, out.String())
	}
	golden(t, "explain", b.String())
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

func TestSpanning(t *testing.T) {
	for want, c := range map[string][2]time.Duration{
		"under 1 s":      {0, 999 * time.Millisecond},
		"up to 2 s":      {200 * time.Millisecond, 1100 * time.Millisecond},
		"20 to 90 s":     {20 * time.Second, 90 * time.Second},
		"20 s to 2 min":  {20 * time.Second, 91 * time.Second},
		"2 to 50 min":    {2 * time.Minute, 50 * time.Minute},
		"90 min to 4 h":  {90 * time.Minute, 4 * time.Hour},
		"100 to 27778 h": {100 * time.Hour, 1e8 * time.Second},
	} {
		if got := spanning(c[0], c[1]); got != want {
			t.Errorf("%v: %s, not %s", c, got, want)
		}
	}
}

// Which label is explained: the pod's, the flags', that of PATH, the default.
func TestWanted(t *testing.T) {
	of := func(label string) site { return site{label: label, hasLabel: label != ""} }
	pods := workload.Pods{Containers: []workload.Container{
		{Name: "left", Asks: workload.Asks{Level: "s0:c1", Left: "it is"}},
		{Name: "drawn"},
		{Pod: "Pod p", Name: "a", Asks: workload.Asks{User: "user_u", Level: "s0:c3"}},
	}}
	for _, c := range []struct {
		args       string
		v          site
		pods       workload.Pods
		want, from string
	}{
		{"", of(""), workload.Pods{}, defaultLabel, "the default"},
		{"", of(private), workload.Pods{}, private, "the level of PATH"},
		{"", of("unconfined_u:object_r:container_file_t:s0:c10,c20"), workload.Pods{}, private, "the level of PATH"},
		{"", of("system_u:object_r:etc_t:s0:c1"), workload.Pods{}, defaultLabel, "the default"},
		{"", of("system_u:object_r:container_file_t:s0-s0:c0.c1023"), workload.Pods{}, defaultLabel, "the default"},
		{"", of("x\x1b"), workload.Pods{}, defaultLabel, "the default"},
		{"-t etc_t", of("system_u:object_r:etc_t:s0:c1"), workload.Pods{}, "system_u:object_r:etc_t:s0:c1", "the level of PATH"},
		{"-l s0:c7", of(private), workload.Pods{}, "system_u:object_r:container_file_t:s0:c7", "the flags"},
		{"", of(private), pods, "user_u:object_r:container_file_t:s0:c3", "Pod p, container a"},
		{"-t etc_t", of(private), pods, "user_u:object_r:etc_t:s0:c3", "Pod p, container a"},
	} {
		cmd, args, err := dispatch(strings.Fields("explain " + c.args))
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := parse(cmd, args)
		if err != nil {
			t.Fatal(err)
		}
		j := &job{settings: s}
		if j.label, err = target(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if want, from := j.wanted(c.v, c.pods); want != c.want || from != c.from {
			t.Errorf("%q, %q: %s (%s), not %s (%s)", c.args, c.v.label, want, from, c.want, c.from)
		}
	}
}

func TestExplainUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"pod.yaml": "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a}]}",
		"bad.yaml": "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, securityContext: {seLinuxOptions: {level: c1}}}]}",
		"odd.yaml": "kind: \"\\e[31m\"",
		"not.yaml": "kind: [",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := calls("explain", "explain -n /p", "explain --output yaml /p", "explain --output podman /p /q", "explain --output crio -f list",
		"explain --json --output podman /p", "explain --for pod.yaml --label u:r:t:s0 /p", "explain --for pod.yaml -l s0 /p", "explain --for pod.yaml --user x /p",
		"explain --for - -f -", "explain --for bad.yaml /p", "explain --for odd.yaml /p", "explain --for not.yaml /p", "explain --for nothere /p", "probe --whole /p")
	golden(t, "explainusage", transcript(app{}, all))
}
