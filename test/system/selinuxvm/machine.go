// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	// bootTimeout is the time that a machine has until its command begins. Seen were 8 seconds
	// on two idle processors, and 32 on busy ones.
	bootTimeout = 3 * time.Minute
	// memory, in MiB, has room for a tmpfs with the volumes of tests on it, and
	// for as many files on one as the tests make: half of the pages.
	memory = 2048
	// volumeSize, in MiB, is that of the volumes; xfsprogs 6 refuses less than 300.
	volumeSize = 512
)

// Command is what a machine is booted for.
type Command struct {
	Args    []string          // a program and its arguments
	Dir     string            // where it starts; "" is /payload
	Env     []string          // added to the environment
	Files   map[string]string // files of /payload, and the host's files that they are copies of
	Timeout time.Duration     // the longest that it may take from its begin on
	Memory  int               // of the machine, in MiB; 0 is 2,048
	Volume  int64             // size of each of the volumes, in MiB; 0 is 512
	Network bool              // an eth0 from which the host's loopback is 10.0.2.2
}

// Result is what came out of it.
type Result struct {
	Stdout, Stderr string
	Log            string // the kernel's, refusals of the policy among it
	Exit           int
	Boot, Took     time.Duration // until the command began, and from there on
}

// Refusals are the policy's lines in the kernel's log.
func (r Result) Refusals() string {
	var out strings.Builder
	for line := range strings.Lines(r.Log) {
		if strings.Contains(line, "avc:  denied") || strings.Contains(line, "op=security_compute") || strings.Contains(line, "invalid_context") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// Run boots a kernel of the image, runs the command as root in unconfined_t,
// and ends the machine. /volumes has fresh volumes of ext4 and XFS and a tmpfs
// that containers may use; /payload is read-only. Nothing that happens in the
// machine changes the image. A machine that hangs or dies fails the test, which then
// shows the end of its console.
func (m *Image) Run(t testing.TB, k Kernel, c Command) (r Result) {
	t.Helper()
	b := boot{dir: t.TempDir()}
	b.makeDisks(t, c)
	treetest.Must(t, b.start(m, k, c))
	defer b.stop()
	begin := time.Now()
	var err error
	if r.Boot, err = b.wait(t.Context(), "begun ", bootTimeout); err == nil {
		_, err = b.wait(t.Context(), "exit ", c.Timeout)
	}
	r.Took = time.Since(begin) - r.Boot
	b.stop()
	r.Stdout, r.Stderr, r.Log = b.read("stdout"), b.read("stderr"), b.read("log")
	if err != nil {
		t.Fatalf("%v; the console's end:\n%s\nstdout's end:\n%s\nstderr's end:\n%s",
			err, tail(b.read("console"), 40), tail(r.Stdout, 400), tail(r.Stderr, 100))
	}
	r.Exit, err = strconv.Atoi(b.status("exit "))
	treetest.Must(t, err)
	return r
}

// makeDisks makes the payload and the volumes.
func (b *boot) makeDisks(t testing.TB, c Command) {
	t.Helper()
	payload := b.file("payload")
	treetest.Must(t, os.Mkdir(payload, 0o755))
	size := int64(16 << 20)
	for to, from := range c.Files {
		to = filepath.Join(payload, to)
		info, err := os.Stat(from)
		treetest.Must(t, err, os.MkdirAll(filepath.Dir(to), 0o755))
		text, err := os.ReadFile(from)
		treetest.Must(t, err)
		treetest.Must(t, os.WriteFile(to, text, info.Mode().Perm()))
		n := int64(len(text))
		size += n + n/8 + 8192
	}
	treetest.Must(t, os.WriteFile(filepath.Join(payload, "command"), []byte(script(c)), 0o644))
	volume := cmp.Or(c.Volume, volumeSize) << 20
	for name, size := range map[string]int64{"payload.img": size, "ext4.img": volume, "xfs.img": volume} {
		treetest.Must(t, os.WriteFile(b.file(name), nil, 0o600), os.Truncate(b.file(name), size))
	}
	for _, mkfs := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-d", payload, b.file("payload.img")},
		{"mkfs.ext4", "-q", "-F", b.file("ext4.img")},
		{"mkfs.xfs", "-q", "-f", b.file("xfs.img")},
	} {
		treetest.Output(t, exec.Command(mkfs[0], mkfs[1:]...))
	}
	treetest.Must(t, os.RemoveAll(payload))
}

// script is the command as a shell reads it.
func script(c Command) string {
	words := slices.Concat([]string{"env", "-C", cmp.Or(c.Dir, "/payload")}, c.Env, c.Args)
	for i, w := range words {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return "exec " + strings.Join(words, " ") + "\n"
}
