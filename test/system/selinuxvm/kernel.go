// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// modules are what the machine's devices and its tests need of a kernel.
var modules = []string{
	"virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic", "ext4", "xfs", "btrfs", "loop", "overlay", "virtio_net",
	"nfsd", "nfsv4",
}

// makeKernel puts the kernel that was unpacked in tree into dir, with the initramfs that
// guest/initramfs.sh makes of it in the root, and gives its release.
func makeKernel(ctx context.Context, tree, root, dir string) (string, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	var found []string
	for _, lib := range []string{"lib/modules/*", "usr/lib/modules/*"} {
		m, err := filepath.Glob(filepath.Join(tree, lib))
		if err != nil {
			return "", err
		}
		found = append(found, m...)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("one directory of modules expected, not %q", found)
	}
	release := filepath.Base(found[0])
	vmlinuz := filepath.Join(dir, "vmlinuz")
	if os.Rename(filepath.Join(found[0], "vmlinuz"), vmlinuz) != nil {
		if err := os.Rename(filepath.Join(tree, "boot/vmlinuz-"+release), vmlinuz); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"init", "initramfs.sh"} {
		text, err := guest.ReadFile("guest/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(root, name), text, 0o755); err != nil {
			return "", err
		}
	}
	inside := filepath.Join(root, "kernel")
	if err := os.Rename(tree, inside); err != nil {
		return "", err
	}
	make := append([]string{root, "/initramfs.sh", release}, modules...)
	if _, err := run(exec.CommandContext(ctx, "chroot", make...)); err != nil {
		return "", err
	}
	return release, errors.Join(os.RemoveAll(inside), os.Rename(filepath.Join(root, "initramfs"), filepath.Join(dir, "initramfs")))
}
