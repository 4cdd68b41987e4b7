// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// bootTimeout is the time that a machine has until its command begins. Seen were 8 seconds on two idle processors, and 32 on busy
	// ones.
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
// machine changes the image. A machine that hangs or dies is an error that has
// the end of its console.
func (m *Image) Run(ctx context.Context, k Kernel, c Command) (r Result, err error) {
	work, err := os.MkdirTemp("", "fastlabel-selinuxvm-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	b := boot{dir: work}
	if err := b.makeDisks(ctx, c); err != nil {
		return r, err
	}
	if err := b.start(m, k, c); err != nil {
		return r, err
	}
	begin := time.Now()
	if r.Boot, err = b.wait(ctx, "begun ", bootTimeout); err == nil {
		_, err = b.wait(ctx, "exit ", c.Timeout)
	}
	r.Took = time.Since(begin) - r.Boot
	b.stop()
	for name, to := range map[string]*string{"stdout": &r.Stdout, "stderr": &r.Stderr, "log": &r.Log} {
		text, err := os.ReadFile(b.file(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
		*to = string(text)
	}
	if err != nil {
		return r, fmt.Errorf("%w; the console's end:\n%s", err, b.console())
	}
	r.Exit, err = strconv.Atoi(b.status("exit "))
	return r, err
}

// makeDisks makes the payload and the volumes.
func (b *boot) makeDisks(ctx context.Context, c Command) error {
	payload := b.file("payload")
	size := int64(16 << 20)
	for _, to := range slices.Sorted(maps.Keys(c.Files)) {
		n, err := copyFile(filepath.Join(payload, to), c.Files[to])
		if err != nil {
			return err
		}
		size += n + n/8 + 8192
	}
	if err := os.MkdirAll(payload, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(payload, "command"), []byte(script(c)), 0o644); err != nil {
		return err
	}
	volume := cmp.Or(c.Volume, volumeSize) << 20
	for name, size := range map[string]int64{"payload.img": size, "ext4.img": volume, "xfs.img": volume} {
		f, err := os.Create(b.file(name))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			return err
		}
	}
	for _, mkfs := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-d", payload, b.file("payload.img")},
		{"mkfs.ext4", "-q", "-F", b.file("ext4.img")},
		{"mkfs.xfs", "-q", "-f", b.file("xfs.img")},
	} {
		if _, err := run(exec.CommandContext(ctx, mkfs[0], mkfs[1:]...)); err != nil {
			return err
		}
	}
	return os.RemoveAll(payload)
}

// script is the command as a shell reads it.
func script(c Command) string {
	dir := c.Dir
	if dir == "" {
		dir = "/payload"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "cd %s || exit 125\n", quote(dir))
	for _, e := range c.Env {
		name, value, _ := strings.Cut(e, "=")
		fmt.Fprintf(&out, "export %s=%s\n", name, quote(value))
	}
	out.WriteString("exec")
	for _, a := range c.Args {
		out.WriteString(" " + quote(a))
	}
	return out.String() + "\n"
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func copyFile(to, from string) (int64, error) {
	info, err := os.Stat(from)
	if err != nil {
		return 0, err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return 0, err
	}
	return int64(len(data)), os.WriteFile(to, data, info.Mode().Perm())
}
