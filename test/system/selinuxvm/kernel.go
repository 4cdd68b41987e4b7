// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// modules are what the machine's devices and its tests need of a kernel, with
// whatever these depend on. One that a kernel lacks is built into it, or it
// would not boot or the tests would say so.
var modules = []string{
	"virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic", "ext4", "xfs", "btrfs", "loop", "overlay", "virtio_net",
	"nfsd", "nfsv4",
}

// makeKernel puts the kernel that was unpacked in tree into dir, with an
// initramfs of its modules, of guest/init and of the root's busybox, and gives
// its release.
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
	var kernel []byte
	var err error
	for _, name := range []string{filepath.Join(found[0], "vmlinuz"), filepath.Join(tree, "boot/vmlinuz-"+release)} {
		if kernel, err = os.ReadFile(name); err == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "vmlinuz"), kernel, 0o644); err != nil {
		return "", err
	}
	set, err := readModules(ctx, found[0])
	if err != nil {
		return "", err
	}
	return release, writeInitramfs(set, root, filepath.Join(dir, "initramfs"))
}

// module is a kernel module, uncompressed.
type module struct {
	name string
	data []byte
}

// readModules gives modules and what they depend on, each after what it needs.
func readModules(ctx context.Context, dir string) ([]module, error) {
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "kernel"), func(path string, _ os.DirEntry, err error) error {
		if name, _, is := strings.Cut(filepath.Base(path), ".ko"); is {
			files[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []module
	known := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		name = strings.ReplaceAll(name, "-", "_")
		file := files[name]
		if known[name] || file == "" {
			return nil
		}
		known[name] = true
		m := module{name: name}
		if m.data, err = readModule(ctx, file); err != nil {
			return err
		}
		needs, err := depends(m.data)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, n := range needs {
			if err := add(n); err != nil {
				return err
			}
		}
		out = append(out, m)
		return nil
	}
	for _, name := range modules {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readModule(ctx context.Context, file string) ([]byte, error) {
	switch filepath.Ext(file) {
	case ".ko":
		return os.ReadFile(file)
	case ".xz":
		out, err := run(exec.CommandContext(ctx, "xz", "-dc", file))
		return []byte(out), err
	}
	return nil, fmt.Errorf("%s is compressed in a way that is not known here", file)
}

// depends reads a module's own list of those that it needs.
func depends(data []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	var out []string
	for field := range strings.SplitSeq(string(info), "\x00") {
		if list, is := strings.CutPrefix(field, "depends="); is && list != "" {
			out = append(out, strings.Split(list, ",")...)
		}
	}
	return out, nil
}

func writeInitramfs(set []module, root, file string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(f)
	c := cpio{w: zip}
	for _, d := range []string{"bin", "modules"} {
		c.add(d, 0o40755, nil)
	}
	order := ""
	for _, m := range set {
		order += m.name + ".ko\n"
		c.add("modules/"+m.name+".ko", 0o100644, m.data)
	}
	c.add("modules/order", 0o100644, []byte(order))
	for name, from := range map[string]func() ([]byte, error){
		"init":        func() ([]byte, error) { return guest.ReadFile("guest/init") },
		"bin/busybox": func() ([]byte, error) { return os.ReadFile(filepath.Join(root, "usr/bin/busybox")) },
	} {
		data, err := from()
		if err != nil {
			return err
		}
		c.add(name, 0o100755, data)
	}
	c.add("TRAILER!!!", 0, nil)
	for _, err := range []error{c.err, zip.Close(), f.Close()} {
		if err != nil {
			return err
		}
	}
	return nil
}

// cpio writes the archive that a kernel unpacks, in the format "newc" of the
// kernel's Documentation/driver-api/early-userspace/buffer-format.rst.
type cpio struct {
	w   io.Writer
	ino int
	err error
}

func (c *cpio) add(name string, mode int, data []byte) {
	if c.err != nil {
		return
	}
	c.ino++
	head := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		c.ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
	_, c.err = io.WriteString(c.w, pad(head)+pad(string(data)))
}

// pad fills up with NULs to a multiple of four.
func pad(s string) string { return s + strings.Repeat("\x00", -len(s)&3) }
