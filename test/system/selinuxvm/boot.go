// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// boot is one machine that runs.
type boot struct {
	dir   string
	qemu  *exec.Cmd
	ended chan struct{} // closed when QEMU has ended
	err   error         // how, to be read then
}

func (b *boot) file(name string) string { return filepath.Join(b.dir, name) }

// start starts QEMU. One processor on one thread: with more a kernel was seen
// to oops in one run of ten. No KVM: not every machine that has the device can
// use it, and none is needed.
func (b *boot) start(m *Image, k Kernel, c Command) error {
	args := []string{
		"-machine", "pc", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "1", "-m", strconv.Itoa(cmp.Or(c.Memory, memory)),
		"-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(m.dir, k.Suite, "vmlinuz"),
		"-initrd", filepath.Join(m.dir, k.Suite, "initramfs"),
		// On a busy host no tick may come while the kernel tests the timer: it panics then.
		"-append", "no_timer_check console=ttyS0 panic=-1 quiet mitigations=off security=selinux selinux=1 enforcing=1",
		"-serial", "file:" + b.file("console"),
		"-device", "virtio-serial-pci",
	}
	for _, disk := range []string{filepath.Join(m.dir, "root.img"), b.file("payload.img"), b.file("ext4.img"), b.file("xfs.img")} {
		args = append(args, "-drive", "if=virtio,format=raw,snapshot=on,cache=unsafe,file="+disk)
	}
	for _, port := range []string{"status", "stdout", "stderr", "log"} {
		args = append(args, "-chardev", "file,id="+port+",path="+b.file(port),
			"-device", "virtserialport,chardev="+port+",name="+port)
	}
	if c.Network {
		args = append(args, "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=")
	}
	b.qemu = exec.Command("qemu-system-x86_64", args...)
	b.qemu.Env = append(os.Environ(), "TMPDIR="+b.dir) // of snapshots
	var said strings.Builder
	b.qemu.Stdout, b.qemu.Stderr = &said, &said
	b.ended = make(chan struct{})
	return Start(b.qemu, func(err error) {
		if err != nil {
			b.err = fmt.Errorf("qemu: %w: %s", err, strings.TrimSpace(said.String()))
		}
		close(b.ended)
	})
}

// Start starts a program that does not outlive this one, not even if this is killed, and
// calls ended when it has ended. The signal is sent when the thread ends that started the
// program, so the thread stays.
func Start(cmd *exec.Cmd, ended func(error)) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended(cmd.Wait())
		}
	}()
	return <-started
}

// wait waits until the machine has told a status that begins with word, and
// gives the time that this took.
func (b *boot) wait(ctx context.Context, word string, limit time.Duration) (time.Duration, error) {
	begin := time.Now()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if b.status(word) != "" {
			return time.Since(begin), nil
		}
		select {
		case <-look.C:
		case <-b.ended:
			if b.status(word) != "" {
				return time.Since(begin), nil
			}
			return 0, errors.Join(fmt.Errorf("the machine ended without a status %q", word), b.err)
		case <-deadline.C:
			return 0, fmt.Errorf("no status %q from the machine in %v", word, limit)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// status is what the machine told behind word, or "".
func (b *boot) status(word string) string {
	for line := range strings.Lines(b.read("status")) {
		if rest, is := strings.CutPrefix(line, word); is && strings.HasSuffix(rest, "\n") {
			return strings.TrimSuffix(rest, "\n")
		}
	}
	return ""
}

// stop ends QEMU. Nothing is lost: all that counts was told before the status.
func (b *boot) stop() {
	_ = b.qemu.Process.Kill() // an error says that it has ended already
	<-b.ended
}

// read is what has come through a port or by the console.
func (b *boot) read(name string) string {
	text, _ := os.ReadFile(b.file(name)) // not there yet: nothing has
	return string(text)
}
