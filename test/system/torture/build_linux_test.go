// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/opencontainers/selinux/go-selinux"

	"github.com/fastlabel/fastlabel/test/mutants"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// house is the module that is tortured; FASTLABEL_HOUSE names another version.
var house = cmp.Or(os.Getenv("FASTLABEL_HOUSE"), "../../..")

// buildsOf are the commands that were built, each once a process.
type buildsOf struct {
	mu   sync.Mutex
	dir  string
	done map[string]error
}

var builds = buildsOf{done: map[string]error{}}

func (b *buildsOf) remove() { _ = os.RemoveAll(b.dir) }

// fastlabel gives the command, built from the house as it stands.
func fastlabel(t testing.TB) string { return builds.get(t, "fastlabel", "") }

// broken gives the command built as the mutant of that name.
func broken(t testing.TB, name string) string { return builds.get(t, name, name) }

func (b *buildsOf) get(t testing.TB, name, mutant string) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "fastlabel-torture-")
		treetest.Must(t, err)
		b.dir = dir
	}
	bin := filepath.Join(b.dir, name)
	err, tried := b.done[name]
	if !tried {
		err = b.build(bin, mutant)
		b.done[name] = err
	}
	treetest.Must(t, err)
	return bin
}

// build builds the command, sound or as the mutant of that name.
func (b *buildsOf) build(bin, mutant string) error {
	args := []string{"go", "build", "-o", bin}
	if mutant != "" {
		m, err := mutants.Find(mutant)
		if err != nil {
			return err
		}
		dir := bin + ".src"
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		overlay, err := m.Overlay(house, dir)
		if err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	return run(house, append(args, "./cmd/fastlabel")...)
}

// run runs a command that should have nothing to say.
func run(dir string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// This program is also the peers and the servers, as processes that can be
// killed and supervised: "torture.test role-chcon LABEL PATH" is go-selinux's
// Chcon.
func roleOf(args []string) (code int, is bool) {
	if len(args) < 2 || !strings.HasPrefix(args[1], "role-") {
		return 0, false
	}
	role, is := map[string]func([]string) error{
		"role-chcon": chcon,
		"role-disk":  serveDisk,
		"role-fuse":  serveFUSE,
	}[args[1]]
	if !is {
		fmt.Fprintf(os.Stderr, "torture: no role %s\n", args[1])
		return 2, true
	}
	if err := role(args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, args[1]+":", err)
		return 1, true
	}
	return 0, true
}

func chcon(args []string) error {
	if len(args) != 2 {
		return errors.New("role-chcon LABEL PATH")
	}
	return selinux.Chcon(args[1], args[0], true)
}

// gochcon is go-selinux's Chcon as a command.
func gochcon(label, path string) *exec.Cmd { return roleCmd("role-chcon", label, path) }

// served is a role that serves a filesystem until its standard input ends.
type served struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// serve starts a role, and waits until it says that it is ready.
func serve(t testing.TB, role string, args ...string) served {
	t.Helper()
	s := served{cmd: roleCmd(role, args...)}
	s.cmd.Stderr = os.Stderr
	// What kills the test's process group must leave the server its last words.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, inErr := s.cmd.StdinPipe()
	out, outErr := s.cmd.StdoutPipe()
	treetest.Must(t, inErr, outErr, s.cmd.Start())
	s.in, s.out = in, bufio.NewScanner(out)
	if !s.out.Scan() || s.out.Text() != "ready" {
		t.Fatalf("%s: %q, %v", role, s.out.Text(), s.out.Err())
	}
	return s
}

func roleCmd(role string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		return &exec.Cmd{Err: err}
	}
	return exec.Command(self, append([]string{role}, args...)...)
}
