// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/oci"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// setLabel gives path a label, or skips the test where that cannot be.
func setLabel(t *testing.T, path, label string) {
	t.Helper()
	err := syscall.Setxattr(path, "security.selinux", []byte(label), 0)
	if (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP)) && !strings.Contains(os.Getenv("FASTLABEL_PROMISE"), "root") {
		t.Skip("needs root and a filesystem that has labels")
	}
	treetest.Must(t, err)
}

// others is the label that all has which plant makes: directories of files beneath dir.
const others = "system_u:object_r:etc_t:s0"

func plant(t *testing.T, dir string, dirs, files int) {
	t.Helper()
	text := "default label=" + others + "\ndir .\n"
	for d := range dirs {
		text += fmt.Sprintf("dir d%d\nfile d%[1]d/f%%d x%d\n", d, files)
	}
	treetest.Must(t, os.MkdirAll(dir, 0o700))
	setLabel(t, dir, others) // or skip
	treetest.Build(t, dir, treetest.Text(t, text))
}

// only expects label on all n entries of dir.
func only(t *testing.T, dir, label string, n int) {
	t.Helper()
	all := treetest.Read(t, dir)
	for path, has := range all {
		if has != label {
			t.Errorf("%s in %s has %s, not %s", path, filepath.Base(dir), has, label)
		}
	}
	if len(all) != n {
		t.Errorf("%s: %d entries, not %d", filepath.Base(dir), len(all), n)
	}
}

// ownRuntime is where who is not root locks.
func ownRuntime(t *testing.T) {
	t.Helper()
	runtime := t.TempDir()
	treetest.Must(t, os.Chmod(runtime, 0o700))
	t.Setenv("XDG_RUNTIME_DIR", runtime)
}

// The hook with the library, on trees: what is asked is labelled, and nothing
// else.
func TestHookReal(t *testing.T) {
	ownRuntime(t)
	x := newContainer(t, "relabel=/data,/ro")
	for _, name := range []string{"data", "ro", "else", "bundle/rel"} {
		plant(t, filepath.Join(x.dir, name), 3, 4) // 16 entries
	}
	treetest.Must(t, os.Symlink("data", x.dir+"/link"))
	x.bind("/data", x.dir+"/link", "rbind")
	x.bind("/ro", "ro", "ro", "rbind")
	x.bind("/else", "else")
	x.bind("/rel", "./rel")
	code, said := x.run(t.Context(), real())
	expectHook(t, "two", code, exit.Done, said)
	only(t, x.dir+"/data", mountLabel, 16)
	only(t, x.dir+"/ro", mountLabel, 16)
	only(t, x.dir+"/else", others, 16)
	only(t, x.bundle+"/rel", others, 16)

	// The default trusts a root that is right; top sees what is beneath it.
	setLabel(t, x.dir+"/data/d1/f1", others)
	code, said = x.run(t.Context(), real(), "-v")
	expectHook(t, "again", code, exit.Done, said, "/data: already labelled (root), ", "/ro: already labelled (root), ")
	x.state["annotations"] = map[string]string{oci.AskRelabel: "/data", oci.TrySkip[1]: "true"}
	setLabel(t, x.dir+"/data/d1", others)
	code, said = x.run(t.Context(), real(), "-v")
	expectHook(t, "top", code, exit.Done, said, "/data: 16 entries, 2 written, 14 right")
	only(t, x.dir+"/data", mountLabel, 16)

	// Volumes that are shared, with a label of their own.
	x.state["annotations"] = map[string]string{oci.AskRelabel: "true", oci.AskShared: "true", oci.AskLabel: "u:r:t_t:s0:c4"}
	code, said = x.run(t.Context(), real())
	expectHook(t, "shared", code, exit.Done, said, "/ro: skipped: DIR/ro is mounted read-only; io.fastlabel.relabel can list it\n")
	for _, name := range []string{"data", "else", "bundle/rel"} {
		only(t, filepath.Join(x.dir, name), "u:r:t_t:s0", 16)
	}
	only(t, x.dir+"/ro", mountLabel, 16)
}

// With "true", what the runtime brings from the host is left alone: the host
// needs it as it is. Asked for by name it is not.
func TestHookLeavesAlone(t *testing.T) {
	x := newContainer(t, "relabel=true")
	treetest.Must(t, syscall.Mkfifo(x.dir+"/fifo", 0o600))
	l, err := net.Listen("unix", x.dir+"/sock")
	treetest.Must(t, err)
	defer l.Close()
	for destination, source := range map[string]string{
		"/fifo": x.dir + "/fifo", "/sock": x.dir + "/sock", "/dev/null": "/dev/null", "/dev/shm": "/dev/shm",
		"/host/proc": "/proc", "/sys/fs": "/sys/fs", "/etc/hosts": x.dir + "/hosts",
	} {
		x.bind(destination, source)
	}
	treetest.Must(t, os.WriteFile(x.dir+"/hosts", nil, 0o600))
	var r recorder
	code, said := x.run(t.Context(), r.app(x.dir))
	expectHook(
		t, "true", code, exit.Done, said, "/fifo: skipped: DIR/fifo is a FIFO; io.fastlabel.relabel can list it\n", "is a socket",
		"/dev/null is a system directory or device, or holds one\n", "/dev/shm is the host's own", "/proc is a system directory or device, or holds one\n", "/sys/fs is the host's own", "hosts is a file",
	)
	if len(r.asked) != 0 {
		t.Errorf("asked for %q", r.asked)
	}
	x.state["annotations"] = map[string]string{oci.AskRelabel: "/fifo,/sock"}
	r = recorder{}
	code, said = x.run(t.Context(), r.app(x.dir))
	expectHook(t, "listed", code, exit.Done, said)
	if len(r.asked) != 2 {
		t.Errorf("%q", r.asked)
	}
}

// With "true" a directory of the system among the mounts is left alone, and said to be, also
// where only the engine knows it. A list that names one refuses the container.
func TestHookSystem(t *testing.T) {
	ownRuntime(t)
	x := newContainer(t, "relabel=true")
	plant(t, x.dir+"/state", 1, 1)
	plant(t, x.dir+"/home", 1, 1)
	t.Setenv("HOME", x.dir+"/home")
	x.bind("/log", "/var/log")
	x.bind("/home", "home")
	x.bind("/state", "state")
	code, said := x.run(t.Context(), real())
	expectHook(
		t, "true", code, exit.Done, said, "/log: skipped: /var/log is a system directory or device, or holds one\n",
		`/home: skipped: "DIR/home": relabel: relabelling is not allowed: DIR/home is a system directory or a home, or holds one`,
	)
	only(t, x.dir+"/state", mountLabel, 3)
	only(t, x.dir+"/home", others, 3)
	for _, place := range []string{"/log", "/home"} {
		x.state["annotations"] = map[string]string{oci.AskRelabel: place}
		code, said = x.run(t.Context(), real())
		expectHook(t, "a list", code, exit.Failed, said, place+`: "`, "relabelling is not allowed")
	}
	only(t, x.dir+"/home", others, 3)
}

// SIGTERM while the state is awaited ends the process with 1.
func TestHookTerminated(t *testing.T) {
	r, w, err := os.Pipe()
	treetest.Must(t, err)
	defer w.Close()
	cmd := command("waits", "hook")
	cmd.Stdin = r
	var stderr strings.Builder
	cmd.Stderr = &stderr
	treetest.Must(t, cmd.Start())
	r.Close()
	// What is read shows that it listens: it does so before it reads. That the
	// signal is caught would not: Go's runtime catches all before main begins.
	if _, err := w.WriteString("{"); err != nil {
		t.Fatal(err)
	}
	treetest.Wait(t, "the state to be read", func() bool {
		unread, err := unix.IoctlGetInt(int(w.Fd()), unix.TIOCINQ)
		treetest.Must(t, err)
		return unread == 0
	})
	treetest.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	expectHook(t, "SIGTERM", cmd.ProcessState.ExitCode(), exit.Failed, stderr.String(), "reading the state on stdin: interrupted by SIGTERM\n")
}

// A volume on which nothing can be written refuses no container.
func TestHookReadOnly(t *testing.T) {
	x := newContainer(t, "relabel=/v")
	x.bind("/v", "v")
	a := real()
	a.readOnly = func(string) bool { return true }
	plant(t, x.dir+"/v", 1, 1)
	code, said := x.run(t.Context(), a)
	expectHook(t, "read-only", code, exit.Done, said, "relabel: read-only file system: not everything has the label, and nothing was written\n", "/v: skipped: no label can be set there\n")
}
