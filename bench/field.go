// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The two labels take turns, so that a run which finds every label wrong
// leaves every label wrong for the next.
var labels = [2]string{
	"system_u:object_r:container_file_t:s0:c1,c2",
	"system_u:object_r:container_file_t:s0:c3,c4",
}

// field is a corpus on a scratch filesystem, and the label that all of it has.
type field struct {
	floor   string // the program
	fs      string
	image   string // a sparse file; tmpfs leaves it empty
	mount   string
	root    string   // of the corpus
	volumes []string // what a runtime labels, each by a call: the root, or what is in it
	entries int      // with the root
	has     int      // which of labels
}

// makers and mounts are shell scripts. A mount of ext4 would zero the tables of inodes, and
// be busy by itself.
var (
	makers = map[string]string{
		"ext4":  `mkfs.ext4 -q -F "$image"`,
		"xfs":   `mkfs.xfs -q -f "$image"`,
		"btrfs": `mkfs.btrfs -q -f "$image"`,
		"tmpfs": ``,
	}
	mounts = map[string]string{
		"ext4":  `mount -o loop,noinit_itable "$image" "$mount"`,
		"xfs":   `mount -o loop "$image" "$mount"`,
		"btrfs": `mount -o loop "$image" "$mount"`,
		"tmpfs": `mount -t tmpfs -o size=90%,nr_inodes=0 fastlabel-bench "$mount"`,
	}
)

// newField makes and mounts a filesystem of that size.
func (b *bench) newField(fs, size string) (*field, error) {
	if mounts[fs] == "" {
		return nil, fmt.Errorf("no such filesystem: %s", fs)
	}
	f := &field{floor: b.program("floor"), fs: fs, image: b.program(fs + ".img"), mount: b.program(fs)}
	f.root = filepath.Join(f.mount, "pv")
	f.volumes = []string{f.root}
	return f, f.sh(`mkdir -p "$mount"`, `truncate -s `+size+` "$image"`, makers[fs], mounts[fs], `mkdir "$mount/pv"`)
}

// plant makes the corpus.
func (f *field) plant(corpus string, n int) (err error) {
	if f.entries, err = plant(f.root, corpus, n); err != nil {
		return err
	}
	f.entries++
	if corpus == "volumes" {
		if f.volumes, err = filepath.Glob(f.root + "/*"); err != nil {
			return err
		}
	}
	return run(f.floor, "-m", "write", "-s", f.root, labels[0])
}

// sh runs lines of shell that have $image and $mount, up to the first that fails.
func (f *field) sh(lines ...string) error {
	return run("env", "image="+f.image, "mount="+f.mount, "sh", "-euc", strings.Join(lines, "\n"))
}

func (f *field) remove() error { return f.sh(`umount "$mount"`, `rm "$image"`) }

// prepare brings about the state and returns the label to be given.
func (f *field) prepare(c cell) (string, error) {
	label, other := labels[f.has], labels[1-f.has]
	switch c.State {
	case "right":
	case "wrong":
		label = other
	case "stray":
		if err := run(f.floor, "-m", "stray", f.root, other); err != nil {
			return "", err
		}
	default:
		return "", fmt.Errorf("no such state: %s", c.State)
	}
	if f.fs == "tmpfs" {
		return label, nil
	}
	// What was written reaches the disk, and the journal is empty.
	rest := []string{`fsfreeze -f "$mount"`, `fsfreeze -u "$mount"`}
	if c.Cold { // the filesystem forgets what it has in memory, and the machine what it has of the image
		rest = append(rest, `umount "$mount"`, `echo 3 >/proc/sys/vm/drop_caches`, mounts[f.fs])
	}
	return label, f.sh(rest...)
}

// check returns an error if not all has the label, and else notes that it has.
func (f *field) check(label string) error {
	out, err := exec.Command(f.floor, "-m", "count", f.root, label).Output()
	if err != nil {
		return fmt.Errorf("floor -m count: %w", err)
	}
	if want := fmt.Sprintf("%d seen, 0 written, 0 wrong\n", f.entries-1); string(out) != want {
		return fmt.Errorf("not all labelled: %s", out)
	}
	for _, path := range f.volumes {
		value := make([]byte, 256)
		n, err := unix.Lgetxattr(path, "security.selinux", value)
		if err != nil {
			return err
		}
		if got := strings.TrimRight(string(value[:n]), "\x00"); got != label {
			return fmt.Errorf("the root has %s", got)
		}
	}
	return nil
}

// requests counts what was asked of the disk so far: reads and writes.
func (f *field) requests() (int64, error) {
	device, err := exec.Command("findmnt", "-n", "-o", "SOURCE", f.mount).Output()
	if err != nil {
		return 0, fmt.Errorf("findmnt: %w", err)
	}
	stat := filepath.Join("/sys/block", filepath.Base(strings.TrimSpace(string(device))), "stat")
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0, err
	}
	var reads, writes, unused int64
	if _, err := fmt.Sscan(string(text), &reads, &unused, &unused, &unused, &writes); err != nil {
		return 0, fmt.Errorf("%s: %w", stat, err)
	}
	return reads + writes, nil
}

// run runs a command, and returns what it printed if it failed.
func run(argv ...string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
