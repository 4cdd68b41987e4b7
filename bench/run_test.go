// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }

// program builds fastlabel.
func program(t *testing.T) string {
	t.Helper()
	treetest.Need(t, "root", "gcc", "go", "tmpfs", "setfattr")
	path := filepath.Join(t.TempDir(), "fastlabel")
	if err := run("go", "build", "-C", "..", "-o", path, "./cmd/fastlabel"); err != nil {
		t.Fatal(err)
	}
	return path
}

// meet runs a plan and returns its results.
func meet(t *testing.T, args ...string) ([]record, error) {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "results")
	err := runPlan(append([]string{"-dir", dir, "-o", out, "-rounds", "2"}, args...))
	if left := list(t, dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	records, readErr := readRecords([]string{out})
	if readErr != nil {
		t.Fatal(readErr)
	}
	return records, err
}

func TestRun(t *testing.T) {
	fastlabel := program(t)
	records, err := meet(t, "-fastlabel", fastlabel, "-plan", "quick", "-calls", "-fs", "tmpfs", "-n", "300", "-state", "wrong,right,stray",
		"-with", "fastlabel,floor-dir,floor-inode,floor-dir-fchdir,go-selinux,fastlabel@"+fastlabel)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * 3 * 6 * (2 + 1); len(records) != want { // corpora, states, contestants, rounds and the one that counts
		t.Errorf("%d results, want %d", len(records), want)
	}
	for _, r := range records {
		// At least a call an entry; at most what a walk takes, and the start of Go.
		if counted := r.Calls > 0; counted != (r.Round == 2) || counted && (r.Calls < int64(r.Entries) || r.Calls > 5000+10*int64(r.Entries)) {
			t.Errorf("%d calls: %+v", r.Calls, r)
		}
		if floor := strings.HasPrefix(r.Contestant, "floor-"); (r.PeakThreads > 0) != (r.Round == 2) || floor && r.PeakThreads > 2 {
			t.Errorf("%d threads: %+v", r.PeakThreads, r)
		}
		if r.Contestant == "floor-dir" && r.Corpus == "flat" && r.State == "right" && r.Calls > int64(r.Entries)+150 {
			t.Errorf("the floor makes %d calls for %d entries", r.Calls, r.Entries)
		}
		if r.Wall <= 0 || r.MaxRSS <= 0 || r.Entries < 300 || r.FS != "tmpfs" {
			t.Errorf("%+v", r)
		}
	}
	file := filepath.Join(t.TempDir(), "results")
	write(t, file, records)
	var out bytes.Buffer
	if err := table(&out, []string{"-all", file}); err != nil || !strings.Contains(out.String(), "| fastlabel@fastlabel |") {
		t.Errorf("%v:\n%s", err, &out)
	}
}

// TestRunSmall: the drop-in and go-selinux label by calls, a hundred at once too, beside
// mounts and a writer; nobody else is measured beside these.
func TestRunSmall(t *testing.T) {
	args := []string{"-fastlabel", program(t), "-plan", "small", "-fs", "tmpfs", "-n", "60", "-beside", "dirty-2,writer-1,mounts-3", "-with"}
	records, err := meet(t, append(args, "dropin-call,go-selinux-call", "-calls")...)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(sweepSmall) * 2 * 3 * 2 * 2; len(records) != want { // states, beside, contestants, rounds
		t.Errorf("%d results, want %d", len(records), want)
	}
	for _, r := range records {
		if r.Entries != 61 || r.Wall <= 0 || r.User+r.Sys <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if _, err := meet(t, append(args, "fastlabel")...); err == nil || !strings.Contains(err.Error(), "only a call is measured beside dirty-2") {
		t.Error(err)
	}
}

func TestRunSlow(t *testing.T) {
	fastlabel := program(t)
	treetest.Need(t, "fuse")
	records, err := meet(t, "-fastlabel", fastlabel, "-plan", "fuse", "-n", "60", "-threads", "8")
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * 2 * 2; len(records) != want { // corpora, states, rounds
		t.Errorf("%d results, want %d", len(records), want)
	}
	for _, r := range records {
		if r.Wall < slowDelay.Seconds()*float64(r.Entries)/float64(r.Threads) {
			t.Errorf("too fast for the delay: %+v", r)
		}
	}
}

// TestRunDisk: a cold ext4 on a slow disk is read, no faster than the disk allows. Who is
// told how many workers to have reads nothing ahead: as many requests as the floor.
func TestRunDisk(t *testing.T) {
	fastlabel := program(t)
	treetest.Need(t, "fuse", "ext4")
	records, err := meet(t, "-fastlabel", fastlabel, "-plan", "disk", "-fs", "ext4", "-corpus", "flat", "-n", "2000", "-size", "1G",
		"-state", "right", "-threads", "2", "-limits", "500", "-with", "fastlabel,floor-dir", "-limit", "1e-9", "-disk-limit", "0.3")
	if err == nil || !regexp.MustCompile(`^over the limit in 3 tries: ext4 flat 2000 right cold 500/s -T 2: (0\.[89]|1\.[01])\d of the floor's requests, not 0\.30$`).MatchString(err.Error()) {
		t.Error(err)
	}
	if want := 2 * 2 * tries; len(records) != want {
		t.Errorf("%d results, want %d", len(records), want)
	}
	for _, r := range records {
		d := r.Disk
		if d == nil || d.Reads < 10 || d.Bytes < 2000*256/2 || d.Deepest < 1 || d.Depth <= 0 {
			t.Fatalf("%+v: %+v", r, d)
		}
		if bound := float64(d.Reads+d.Writes) / 500; d.Bound != bound || r.Wall < 0.8*bound {
			t.Errorf("%+v: %+v, of at least %.3f s", r, d, bound)
		}
	}
	file := filepath.Join(t.TempDir(), "results")
	write(t, file, records)
	var out bytes.Buffer
	if err := table(&out, []string{"-all", file}); err != nil || !strings.Contains(out.String(), "| ext4 flat 2000 right cold 500/s -T 2 | fastlabel | ") {
		t.Errorf("%v:\n%s", err, &out)
	}
}

// TestRunLimit: a contestant far slower than the floor is measured again, and named.
func TestRunLimit(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "slow")
	script := fmt.Sprintf("#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9; do %s \"$@\"; done\nexec %[1]s \"$@\"\n", program(t))
	if err := os.WriteFile(slow, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-fastlabel", slow, "-plan", "quick", "-fs", "tmpfs", "-corpus", "flat", "-n", "300", "-state", "right", "-with", "fastlabel,floor-dir"}
	records, err := meet(t, append(args, "-limit", "2")...)
	if err == nil || !strings.Contains(err.Error(), "over the limit in 3 tries: tmpfs flat 300 right -T 2: ") || !strings.HasSuffix(err.Error(), " of the floor's time, not 2.00") || len(records) != 3*2*2 {
		t.Errorf("%v; %d results", err, len(records))
	}
	if records, err := meet(t, append(args, "-limit", "1000000")...); err != nil || len(records) != 2*2 {
		t.Errorf("%v; %d results", err, len(records))
	}
}

// TestRunCaught is the control: a contestant that does less than it says is caught.
func TestRunCaught(t *testing.T) {
	fastlabel := program(t)
	for _, c := range []struct{ name, fs, script, want string }{
		{"root alone", "tmpfs", `exec setfattr -n security.selinux -v "$5" "$6"`, "not all labelled"},
		{"all but the root", "tmpfs", `find "$6" -mindepth 1 -exec setfattr -h -n security.selinux -v "$5" {} +`, "the root has"},
		{"fails", "tmpfs", "echo this is why >&2; exit 3", "exit 3: this is why"},
		{"root alone", "slowfs", `exec setfattr -n security.selinux -v "$5" "$6"`, "not all labelled"},
	} {
		t.Run(c.fs+" "+c.name, func(t *testing.T) {
			if c.fs == "slowfs" {
				treetest.Need(t, "fuse")
			}
			fake := filepath.Join(t.TempDir(), "fake")
			if err := os.WriteFile(fake, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			records, err := meet(t, "-fastlabel", fastlabel, "-plan", "quick", "-fs", c.fs, "-corpus", "flat", "-n", "20",
				"-state", "wrong", "-with", "fastlabel@"+fake)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(records) != 0 {
				t.Errorf("%v, want %q; %d results", err, c.want, len(records))
			}
		})
	}
}

// TestRunSystem: ours, setfiles and restorecon label a system alike; one that does nothing
// is caught by the other.
func TestRunSystem(t *testing.T) {
	fastlabel := program(t)
	treetest.Need(t, "setfiles", "restorecon", "unshare")
	contexts := filepath.Join(t.TempDir(), "file_contexts")
	rules := "/.* system_u:object_r:default_t:s0\n/usr(/.*)? system_u:object_r:usr_t:s0\n/usr/(.*/)?lib[^/]*\\.so\\.1 -- system_u:object_r:lib_t:s0\n" +
		"/home/[^/]+/.*\\.go -l <<none>>\n/dev/null -c system_u:object_r:null_device_t:s0\n/etc/[^/]+/conf\\.d -d system_u:object_r:etc_t:s0:c1\n/run/x(/.*)? system_u:object_r:var_run_t:s0\n"
	for suffix, text := range map[string]string{"": rules, ".subs_dist": "/srv /usr\n"} {
		if err := os.WriteFile(contexts+suffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-fastlabel", fastlabel, "-fs", "tmpfs", "-n", "600", "-contexts", contexts, "-plan"}
	for _, plan := range []string{"system", "system-peers"} {
		records, err := meet(t, append(args, plan)...)
		if err != nil {
			t.Fatal(err)
		}
		if want := 2 * 2 * len(plans[plan][0].with); len(records) != want { // states, rounds, contestants
			t.Errorf("%s: %d results, want %d", plan, len(records), want)
		}
	}
	idle := t.TempDir()
	for _, name := range []string{"fake", "restorecon"} {
		if err := os.WriteFile(filepath.Join(idle, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", idle+":"+os.Getenv("PATH"))
	for _, who := range []string{"fastlabel@" + filepath.Join(idle, "fake"), "restorecon"} {
		records, err := meet(t, append(args, "system-peers", "-state", "wrong", "-with", who)...)
		if err == nil || !strings.Contains(err.Error(), " would change 5") || len(records) != 0 {
			t.Errorf("%s: %v; %d results", who, err, len(records))
		}
	}
}

// TestNamedBy: what file contexts name is in a system, as the kind that they are about.
func TestNamedBy(t *testing.T) {
	contexts := filepath.Join(t.TempDir(), "file_contexts")
	rules := "# /not\n/dev/null -c u:r:t\n/run/x(/.*)? u:r:t\n/usr/lib/[^/]*\\.so -l u:r:t\n/etc/(a|b) u:r:t\n/run/fifo -p u:r:t\n/run/x/sock -s u:r:t\n"
	if err := os.WriteFile(contexts, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	treetest.Need(t, "root") // for the device
	root := t.TempDir()
	if n, err := plant(root, "system", 200, contexts); n != 200 || err != nil {
		t.Fatal(n, err)
	}
	for name, kind := range map[string]os.FileMode{
		"dev/null": os.ModeDevice | os.ModeCharDevice, "run/x": os.ModeDir, "usr/lib/x.so": os.ModeSymlink, "run/fifo": os.ModeNamedPipe, "run/x/sock": os.ModeSocket,
	} {
		if info, err := os.Lstat(filepath.Join(root, name)); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if names := list(t, root); len(names) != 200 {
		t.Errorf("%d entries", len(names))
	}
}
