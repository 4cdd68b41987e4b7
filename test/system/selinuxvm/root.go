// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// rootSuite is Debian's suite of the root: 13, for the policy of 12 has no
// types for containers.
const rootSuite = "trixie"

// rootPackages are installed beyond what every Debian has.
var rootPackages = []string{
	"attr", "btrfs-progs", "busybox-static", "crun", "e2fsprogs", "kmod", "podman", "policycoreutils", "runc",
	"selinux-policy-default", "selinux-utils", "semodule-utils", "strace", "xfsprogs",
}

// policyVersion is the newest format that every kernel of the image reads. It
// is also in guest/init.
const policyVersion = "33"

// rootSize is that of the disk; the file has holes.
const rootSize = "2G"

// unpacking has dpkg be quick: what fails is thrown away whole, and nobody
// reads there.
const unpacking = `force-unsafe-io
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/man/*
`

// makeRoot makes the machine's root in dir, and a disk of it.
func makeRoot(ctx context.Context, mirror, dir, disk string) error {
	conf := filepath.Join(dir, "etc/dpkg/dpkg.cfg.d")
	if err := os.MkdirAll(conf, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(conf, "selinuxvm"), []byte(unpacking), 0o644); err != nil {
		return err
	}
	bootstrap := exec.CommandContext(ctx, "debootstrap", "--force-check-gpg", "--keyring="+keyring, "--arch=amd64",
		"--variant=minbase", "--include="+strings.Join(rootPackages, ","), rootSuite, dir, mirror)
	// What it mounts is gone with it, however it ends.
	bootstrap.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if _, err := run(bootstrap); err != nil {
		return err
	}
	if err := makePolicy(ctx, dir); err != nil {
		return err
	}
	if err := furnish(dir); err != nil {
		return err
	}
	// Without SELinux on the host a label is an attribute like others, and
	// mkfs takes it along. The kernel goes by it from the first process on.
	if _, err := run(exec.CommandContext(ctx, "chroot", dir, "setfiles", "-F",
		"/etc/selinux/default/contexts/files/file_contexts", "/")); err != nil {
		return err
	}
	_, err := run(exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-d", dir, disk, rootSize))
	return err
}

// makePolicy adds what the machine needs to the policy, and compiles it for
// the oldest kernel.
func makePolicy(ctx context.Context, dir string) error {
	extra, err := guest.ReadFile("guest/extra.cil")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "root/extra.cil"), extra, 0o644); err != nil {
		return err
	}
	conf := filepath.Join(dir, "etc/selinux/semanage.conf")
	text, err := os.ReadFile(conf)
	if err != nil {
		return err
	}
	// Settings come before the sections of the file.
	text = append([]byte("policy-version = "+policyVersion+"\n"), text...)
	if err := os.WriteFile(conf, text, 0o644); err != nil {
		return err
	}
	if _, err := run(exec.CommandContext(ctx, "chroot", dir, "semodule", "-n", "-s", "default", "-i", "/root/extra.cil")); err != nil {
		return err
	}
	return keepPolicy(filepath.Join(dir, "etc/selinux/default/policy"))
}

// keepPolicy removes all but the policy that was compiled. The package's own is
// in a newer format, and what loads the policy in the machine, as semodule
// does, would take that.
func keepPolicy(dir string) error {
	const compiled = "policy." + policyVersion
	if _, err := os.Stat(filepath.Join(dir, compiled)); err != nil {
		return err
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Name() == compiled {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// furnish puts start in the root, and directories to mount on, and takes out
// what apt has left.
func furnish(dir string) error {
	for _, d := range []string{"payload", "volumes/ext4", "volumes/xfs", "volumes/tmpfs", "usr/lib/selinuxvm"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	start, err := guest.ReadFile("guest/start")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "usr/lib/selinuxvm/start"), start, 0o755); err != nil {
		return err
	}
	config := filepath.Join(dir, "etc/selinux/config")
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte("SELINUXTYPE=default")) {
		return fmt.Errorf("%s does not name the policy that was installed", config)
	}
	for _, d := range []string{"var/cache/apt/archives", "var/lib/apt/lists"} {
		if err := os.RemoveAll(filepath.Join(dir, d)); err != nil {
			return err
		}
	}
	return nil
}
