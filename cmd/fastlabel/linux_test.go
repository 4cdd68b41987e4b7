// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/selinux/go-selinux"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/child"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/report"
	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/site"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestMain lets the test binary be the command, with an engine that waits for
// the end of its context, or waits whatever happens; "apart NAME" has it in a
// child.
func TestMain(m *testing.M) {
	mode := os.Getenv("FASTLABEL_TEST_AS")
	if mode == "" {
		os.Exit(treetest.Main(m))
	}
	if root := os.Getenv("FASTLABEL_TEST_ROOT"); root != "" {
		if err := errors.Join(syscall.Chroot(root), os.Chdir("/")); err != nil {
			panic(err)
		}
	}
	mode, apart := strings.CutPrefix(mode, "apart ")
	a := app{tree: func(ctx context.Context, _, _ string, o *relabel.Options, check bool) (relabel.Report, error) {
		hangups := make(chan os.Signal, 2)
		if mode == "slow" {
			signal.Notify(hangups, syscall.SIGHUP)
		}
		fmt.Fprintln(os.Stderr, "begun")
		switch mode {
		case "waits":
			<-ctx.Done()
		case "hangs":
			<-ctx.Done()
			fmt.Fprintln(os.Stderr, "told")
			time.Sleep(time.Minute)
		case "crashes":
			new(sync.Mutex).Unlock() // nothing recovers from that
		case "slow": // to end: it waits for a second signal
			<-hangups
			<-ctx.Done()
			fmt.Fprintln(os.Stderr, "told")
			<-hangups
			fmt.Fprintln(os.Stderr, "told")
		case "names":
			fmt.Fprintln(os.Stderr, os.Getpid())
			time.Sleep(time.Minute)
		case "talks":
			for i := range 20000 {
				o.Trace.Change(fmt.Sprint("/p/", i), "", "to")
				if i%10 == 0 {
					o.Trace.Skip(fmt.Sprint("/p/", i), "why")
				}
			}
		}
		return relabel.Report{Counts: relabel.Counts{Seen: 2, Written: 2}, Complete: ctx.Err() == nil}, ctx.Err()
	}}
	if mode == "real" { // with the library
		a = real()
	}
	if apart {
		a.child = func(ctx context.Context, _ site.Mounts) (int, bool) {
			if child.Is() {
				return 0, false
			}
			return child.Run(ctx)
		}
	}
	process(a)
}

// command returns a call of the test binary as the command.
func command(mode string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS="+mode)
	return cmd
}

func start(t *testing.T, mode string, stdout io.Writer, args ...string) (*exec.Cmd, *bufio.Reader) {
	cmd := command(mode, args...)
	cmd.Stdout, cmd.SysProcAttr = stdout, &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StderrPipe()
	treetest.Must(t, err)
	treetest.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewReader(pipe)
}

func expect(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	if line, err := r.ReadString('\n'); !strings.HasPrefix(line, want) {
		t.Fatalf("%q, %v; not %q", line, err, want)
	}
}

// ended waits for the end of the command, which is to be by this code.
func ended(t *testing.T, cmd *exec.Cmd, code int) {
	t.Helper()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != code {
		t.Errorf("%q as %q: %v, not exit %d", cmd.Args, cmd.Env[len(cmd.Env)-1], err, code)
	}
}

func TestSignals(t *testing.T) {
	for _, mode := range []string{"waits", "hangs", "apart waits", "apart hangs"} {
		hangs := strings.HasSuffix(mode, "hangs")
		for sig, code := range map[syscall.Signal]int{syscall.SIGINT: exit.Interrupted, syscall.SIGTERM: exit.Terminated, syscall.SIGHUP: exit.Terminated} {
			if hangs && sig == syscall.SIGHUP {
				continue // the second does not cut the first one's end short: TestHangupTwice
			}
			cmd, stderr := start(t, mode, nil, "/p", "/q")
			expect(t, stderr, "begun\n")
			treetest.Must(t, cmd.Process.Signal(sig))
			if hangs { // the second leaves at once
				expect(t, stderr, "told\n")
				treetest.Must(t, cmd.Process.Signal(sig))
			} else {
				expect(t, stderr, "fastlabel: /p: incomplete (interrupted by "+unix.SignalName(sig)+"), 2 entries")
				expect(t, stderr, "fastlabel: /q: not begun (interrupted by "+unix.SignalName(sig))
			}
			ended(t, cmd, code)
		}
	}
}

// A signal that was ignored at the start, as by nohup, stays ignored.
func TestSignalIgnored(t *testing.T) {
	for _, mode := range []string{"waits", "apart waits"} {
		cmd := exec.Command("bash", "-c", `trap "" HUP INT; exec "$0" /p /q`, os.Args[0])
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS="+mode)
		pipe, err := cmd.StderrPipe()
		treetest.Must(t, err)
		treetest.Must(t, cmd.Start())
		stderr := bufio.NewReader(pipe)
		expect(t, stderr, "begun\n")
		for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt, syscall.SIGTERM} {
			treetest.Must(t, cmd.Process.Signal(sig))
		}
		expect(t, stderr, "fastlabel: /p: incomplete (interrupted by SIGTERM)")
		_, _ = io.Copy(io.Discard, stderr)
		ended(t, cmd, exit.Terminated)
	}
}

// Where a session drops, SIGHUP comes from the kernel and from the shell: the
// second does not cut the first one's end short.
func TestHangupTwice(t *testing.T) {
	cmd, stderr := start(t, "slow", nil, "/p")
	expect(t, stderr, "begun\n")
	for range 2 {
		treetest.Must(t, cmd.Process.Signal(syscall.SIGHUP))
		expect(t, stderr, "told\n")
	}
	expect(t, stderr, "fastlabel: /p: incomplete (interrupted by SIGHUP)")
	_ = cmd.Wait()
}

// A signal ends the wait for a list that nobody writes.
func TestSignalWhileReading(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exit.Signal{Sig: syscall.SIGTERM})
	var b strings.Builder
	if code := fake().run(ctx, r, io.Discard, &b, []string{"-f", "-"}); code != exit.Terminated {
		t.Errorf("exit %d: %s", code, b.String())
	}
}

// Output that cannot be written is an error with a code, not a SIGPIPE, also in a child.
func TestOutputClosed(t *testing.T) {
	r, gone, err := os.Pipe()
	treetest.Must(t, errors.Join(err, r.Close()))
	defer gone.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	treetest.Must(t, err)
	defer full.Close()
	readable, err := os.Open("/dev/null")
	treetest.Must(t, err)
	defer readable.Close()
	for stdout, why := range map[*os.File]string{gone: "broken pipe", full: "no space left on device", readable: "bad file descriptor"} {
		for _, mode := range []string{"done", "apart done"} {
			cmd, stderr := start(t, mode, stdout, "--json", "/p")
			expect(t, stderr, "begun\n")
			expect(t, stderr, "fastlabel: writing to standard output: "+why+"\n")
			ended(t, cmd, exit.Failed)
		}
	}
}

// labelled makes files with these labels; "" is none.
func labelled(t *testing.T, files map[string]string) {
	t.Helper()
	for name, label := range files {
		treetest.Must(t, os.WriteFile(name, nil, 0o600))
		if label != "" {
			setLabel(t, name, label)
		}
	}
}

func TestReference(t *testing.T) {
	t.Chdir(t.TempDir())
	labelled(t, map[string]string{"mcs": "system_u:object_r:etc_t:s0:c5,c3\x00"})
	treetest.Must(t, os.Symlink("mcs", "link"))
	var asked []string
	a := fake()
	a.inspect = func(_, label string, _ relabel.Skip) (relabel.RootState, error) {
		asked = append(asked, label)
		return relabel.RootState{Labelled: true}, nil
	}
	golden(t, "reference", transcript(a, calls("probe --reference mcs /p", "probe --reference link /p", "probe --reference nothere /p")))
	if want := "system_u:object_r:etc_t:s0:c3,c5"; len(asked) != 2 || asked[0] != want || asked[1] != want {
		t.Errorf("asked for %q", asked)
	}
}

// A policy without MLS has labels of three fields, which are taken whole.
func TestThreeFields(t *testing.T) {
	treetest.Need(t, "plain")
	t.Chdir(t.TempDir())
	const three = "system_u:object_r:svirt_lxc_file_t"
	labelled(t, map[string]string{"like": three, "f": ""})
	ownRuntime(t)
	for _, line := range []string{"--label " + three, "--reference like", "-n --label " + three, "verify --label " + three, "probe --reference like"} {
		expects(t, real(), line+" f", exit.Done, "")
		if has, err := selinux.FileLabel("f"); has != three {
			t.Errorf("%s: f has %q, %v", line, has, err)
		}
	}
	for has, want := range map[string]string{"0": "system_u:object_r:container_file_t", "1": defaultLabel, "": defaultLabel} {
		treetest.Must(t, os.WriteFile("mls", []byte(has), 0o600))
		if got := ofPolicy("mls"); got != want {
			t.Errorf("mls is %q: %s", has, got)
		}
	}
	expects(t, real(), "-t "+three+" f", exit.Usage, "is a whole label: give it by --label")
}

// Files without a label, or with one that is no context.
func TestReferenceBroken(t *testing.T) {
	treetest.Need(t, "plain")
	t.Chdir(t.TempDir())
	labelled(t, map[string]string{"garbage": "x\x1b", "bare": ""})
	golden(t, "reference-broken", transcript(fake(), calls("probe --reference garbage /p", "probe --reference bare /p")))
}

// What hangs before anything is begun is named: a list of paths that nobody writes.
func TestListHangs(t *testing.T) {
	t.Chdir(t.TempDir())
	treetest.Must(t, syscall.Mkfifo("fifo", 0o600))
	const says = "2> fastlabel: \"fifo\": read: does not return\n2> fastlabel: not begun: deadline of 100ms reached\nexit"
	expects(t, fake(), "--timeout 100ms -f fifo", exit.TimedOut, says)
	if f, err := os.OpenFile("fifo", os.O_RDWR, 0); err == nil { // lets the reader go
		f.Close()
	}
}

// A crash of Go's runtime ends by a signal, and not with the 2 that says that nothing was
// begun.
func TestCrash(t *testing.T) {
	for _, mode := range []string{"crashes", "apart crashes"} {
		cmd, stderr := start(t, mode, nil, "/p")
		said, _ := io.ReadAll(stderr)
		_ = cmd.Wait()
		if !aborted(cmd) || !strings.Contains(string(said), "fatal error: sync: unlock of unlocked mutex") {
			t.Errorf("%s: %v: %s", mode, cmd.ProcessState, said)
		}
	}
	cmd, stderr := start(t, "waits", nil, "/p")
	expect(t, stderr, "begun\n")
	treetest.Must(t, cmd.Process.Signal(syscall.SIGQUIT))
	_, _ = io.Copy(io.Discard, stderr)
	_ = cmd.Wait()
	if !aborted(cmd) {
		t.Errorf("SIGQUIT: %v", cmd.ProcessState)
	}
}

// aborted tells that SIGABRT ended the command, or the process that it did the work in.
func aborted(cmd *exec.Cmd) bool {
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status.Signaled() && status.Signal() == syscall.SIGABRT || status.ExitStatus() == 128+int(syscall.SIGABRT)
}

// A working directory that is gone, and what else has no path, is told without an
// empty name.
func TestNameless(t *testing.T) {
	var b strings.Builder
	report.Reporter{Sink: &report.People{Err: &b}}.Failure("", os.NewSyscallError("getwd", syscall.ENOENT))
	report.Reporter{Sink: &report.People{Err: &b}}.Failure("", errors.New("x\x1b"))
	if got := b.String(); got != "fastlabel: getwd: no such file or directory\nfastlabel: x\\x1b\n" {
		t.Errorf("%q", got)
	}
}

// TestStart: the table of mounts, which is long on a node, is read once for all that the
// command asks of it, and a command that is not called has no flags.
func TestStart(t *testing.T) {
	treetest.Need(t, "root", "plain", "strace")
	calls := treetest.Trace(t, treetest.Command(t), "-q", t.TempDir(), t.TempDir())
	began, read := 1, 0
	for _, c := range calls {
		if p, _ := c.Path(); c.OK() && p == "/proc/self/mountinfo" {
			read++
		} else if c.OK() && c.Name == "execve" && c.PID != calls[0].PID { // the work is done apart
			began++
		}
	}
	if read < began || read > 3*began { // by Go's runtime too, and by the library, which only polls it
		t.Errorf("%d processes opened the table of mounts %d times", began, read)
	}

	made := func(args []string) float64 {
		return testing.AllocsPerRun(10, func() { commandTree(new(settings), args, nil) })
	}
	if called, all := made([]string{"-q", "/srv/v"}), made(nil); called > all/3 {
		t.Errorf("%.0f allocations for the flags of one command, %.0f for those of all", called, all)
	}
}
