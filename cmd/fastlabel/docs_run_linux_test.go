// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// elsewhere are programs of the pages that are not run by TestDocsRun, and why. TestDocs reads
// them all the same.
var elsewhere = map[string]string{
	"make":       "the repository's own, which .ci/run calls",
	"bench/ab":   "measures for hours",
	"cd":         "test/system/torture and bench, which have a job of their own",
	"TORTURE":    "the same",
	"go":         "gets this module from the network",
	"semodule":   "needs a policy that is loaded: test/system/selinuxvm runs it",
	"restorecon": "the same",
	"seinfo":     "the same, and is not there",
	"sesearch":   "the same, and is not there",
	"semanage":   "the same, and is not there",
	"cat":        "the same: it shows a file of the policy",
	"id":         "the same",
	"ausearch":   "needs an audit log",
	"journalctl": "needs a journal: test/packages.sh reads one",
	"crictl":     "needs a node of a cluster",
	"kubectl":    "needs a cluster",
	"podman":     "needs containers: test/system/runtimes and test/system/selinuxvm have them",
}

// node is what the pages take for granted, in mounts of its own: volumes that have
// another label, a pod, a process of CRI-O. $1 is a directory with fastlabel in it.
const node = `
set -e
for d in /srv /mnt /root /var/lib; do mount -t tmpfs none "$d"; done
PATH=$1:$PATH
uid=/var/lib/kubelet/pods/UID/volumes/kubernetes.io~csi/PV/mount
mkdir -p /srv/{volume,other} /mnt/disks/{a,b,data/web} /var/lib/pv "$uid" /root/bundle /root/volume
cd /root
for v in /srv/volume /mnt/disks/{a,b,data,data/web} /var/lib/pv "$uid" /root/volume; do touch "$v"/{1..20}; done
find /srv /mnt /var/lib /root -exec setfattr -h -n security.selinux -v system_u:object_r:etc_t:s0 {} +
printf '/mnt/disks/a\n/mnt/disks/b\n' >volumes.txt
touch FILE
setfattr -n security.selinux -v system_u:object_r:usr_t:s0 FILE /srv/other
echo '{"ociVersion":"1.0.2","root":{"path":"rootfs"}}' >bundle/config.json
sleep 600 & crio=$!
trap 'kill $crio' EXIT
printf '#!/bin/sh\necho %s\n' "$crio" >"$1/pidof"
chmod +x "$1/pidof"
`

// runs tells what a command may end with, by what it begins with: those that only
// look find that not all is as it should be.
var runs = []struct {
	begins *regexp.Regexp
	codes  []int
}{
	{regexp.MustCompile(`^(nice -n 19 ionice -c 3 )?fastlabel (probe|verify|-n) `), []int{exit.Done, exit.Differs}},
	{regexp.MustCompile(`^timeout `), []int{124}},
	{regexp.MustCompile(`^for `), []int{1}}, // grep finds no call in a process that sleeps
	{regexp.MustCompile(``), []int{0}},
}

// TestDocsRun runs the commands of README.md and of the pages in docs, each block in
// its order, on what looks like their node.
func TestDocsRun(t *testing.T) {
	treetest.Need(t, "root", "plain", "strace")
	bin := treetest.Command(t)
	pages, err := filepath.Glob("../../docs/*.md")
	treetest.Must(t, err)
	here, ran := strings.NewReplacer(" PID", " $$", "timeout 5 ", "timeout 1 "), 0
	for _, page := range append(pages, "../../README.md") {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		var script strings.Builder
		script.WriteString(node + "set +e\n")
		var lines []string
		for line := range strings.Lines(blocks(readText(t, page), "sh")) {
			line = strings.TrimSpace(line)
			first := regexp.MustCompile(`^[\w/]*`).FindString(line)
			if _, is := elsewhere[first]; line == "" || line[0] == '#' || is {
				continue
			}
			stdin := "/dev/null"
			if strings.HasPrefix(line, "fastlabel hook") {
				stdin = `<(echo '{"ociVersion":"1.0.2","id":"web","status":"created","pid":1,"bundle":"/root/bundle"}')`
			}
			fmt.Fprintf(&script, "{ %s\n} < %s\necho \"=== $?\"\n", here.Replace(line), stdin)
			lines = append(lines, line)
		}
		if len(lines) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tools := t.TempDir()
			treetest.Must(t, os.Link(bin, filepath.Join(tools, "fastlabel")))
			cmd := exec.Command("unshare", "--mount", "--propagation", "private", "bash", "-c", script.String(), "docs", tools)
			out, err := cmd.CombinedOutput()
			said := regexp.MustCompile(`(?m)^=== (\d+)\n`).FindAllStringSubmatchIndex(string(out), -1)
			if len(said) != len(lines) {
				t.Fatalf("%d of %d commands ran: %v\n%s", len(said), len(lines), err, out)
			}
			at := 0
			for i, line := range lines {
				code, err := strconv.Atoi(string(out[said[i][2]:said[i][3]]))
				treetest.Must(t, err)
				for _, r := range runs {
					if r.begins.MatchString(line) {
						if !slices.Contains(r.codes, code) {
							t.Errorf("%s\nexit %d\n%s", line, code, out[at:said[i][0]])
						}
						break
					}
				}
				at = said[i][1]
			}
			ran += len(lines)
		})
	}
	if ran < 30 {
		t.Errorf("%d commands ran", ran)
	}
}
