// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// serveFUSE is "role-fuse DIR DURATION": the inheriting filesystem at DIR,
// whose names the kernel may remember for DURATION. It answers the lines of
// its standard input, and ends with it.
func serveFUSE(args []string) error {
	if len(args) != 2 {
		return errors.New("role-fuse DIR DURATION")
	}
	valid, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	f := newInheriting(valid)
	s, err := fuse.NewServer(f, args[0], &fuse.MountOptions{
		Name: "inheriting", FsName: "torture", DirectMountStrict: true, DisableReadDirPlus: true,
		Logger: log.New(io.Discard, "", 0), // of calls that were let go by an abort
	})
	if err != nil {
		return err
	}
	go s.Serve()
	if err := s.WaitMount(); err != nil {
		return err
	}
	fmt.Println("mounted")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(f.obey(strings.Fields(in.Text())))
	}
	return nil
}

// obey does what a line says, and gives the answer.
func (f *inheriting) obey(words []string) string {
	switch {
	case len(words) == 5 && words[0] == "hang": // CALL NAME NTH deaf|heeds
		nth, err := strconv.Atoi(words[3])
		if err != nil {
			return err.Error()
		}
		f.hang(words[1], words[2], snag{nth, words[4] == "deaf"})
		return "hangs"
	case len(words) == 1 && words[0] == "calm":
		f.soothe()
		return "calm"
	case len(words) == 1 && words[0] == "held":
		return strings.Join(f.hanging(), ",")
	case len(words) == 2 && words[0] == "watch":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.from, f.to, f.watched = -1, -1, 0
		if e := f.nodes[1].entries[words[1]]; e != nil {
			f.watched = e.ino
		}
		return fmt.Sprint(f.watched)
	case len(words) == 1 && words[0] == "overlap":
		f.mu.Lock()
		defer f.mu.Unlock()
		return fmt.Sprint(f.to - f.from)
	}
	return "what?"
}

// fuseMount is a mounted filesystem that inherits labels, and can hang, in a
// process of its own.
type fuseMount struct {
	dir   string
	abort string // the file that ends the connection
	cmd   *exec.Cmd
	mu    sync.Mutex
	in    io.WriteCloser
	out   *bufio.Scanner
	once  sync.Once
}

// mountFUSE mounts one at a fresh directory. It goes at the end of the test,
// and calls that hang in it then return, with an error.
func mountFUSE(t testing.TB, valid time.Duration) *fuseMount {
	t.Helper()
	treetest.Need(t, "root", "fuse", "tmpfs")
	return mountFUSEAt(t, treetest.Filesystems(t)[len(treetest.Filesystems(t))-1].Dir(t), valid)
}

func mountFUSEAt(t testing.TB, dir string, valid time.Duration) *fuseMount {
	t.Helper()
	m := &fuseMount{dir: dir, cmd: roleCmd("role-fuse", dir, valid.String())}
	m.cmd.Stderr = os.Stderr
	var err error
	var out io.Reader
	if m.in, err = m.cmd.StdinPipe(); err == nil {
		if out, err = m.cmd.StdoutPipe(); err == nil {
			err = m.cmd.Start()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	m.out = bufio.NewScanner(out)
	t.Cleanup(func() { m.end(t) })
	if !m.out.Scan() || m.out.Text() != "mounted" {
		t.Fatalf("the server did not mount: %q, %v", m.out.Text(), m.out.Err())
	}
	if m.abort, err = connection(dir); err != nil {
		t.Fatal(err)
	}
	return m
}

// fusectl is where the kernel lists connections.
const fusectl = "/sys/fs/fuse/connections"

// connection finds the file that aborts the connection of the mount at dir,
// without asking the filesystem.
func connection(dir string) (string, error) {
	if found, _ := filepath.Glob(fusectl + "/*"); len(found) == 0 {
		// EBUSY: another cell has mounted it since it was looked for.
		if err := unix.Mount("fusectl", fusectl, "fusectl", 0, ""); err != nil && err != unix.EBUSY {
			return "", fmt.Errorf("mount fusectl: %w", err)
		}
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	all, err := mountinfo.Parse(string(info))
	if err != nil {
		return "", err
	}
	for _, m := range all {
		if _, minor, ok := strings.Cut(m.Device, ":"); ok && m.Point == dir {
			return filepath.Join(fusectl, minor, "abort"), nil
		}
	}
	return "", fmt.Errorf("%s is not mounted", dir)
}

// ask sends the server a line and gives its answer.
func (m *fuseMount) ask(t testing.TB, format string, args ...any) string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := fmt.Fprintf(m.in, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
	if !m.out.Scan() {
		t.Fatalf("the server is gone: %v", m.out.Err())
	}
	return m.out.Text()
}

// end lets calls that hang return, and unmounts.
func (m *fuseMount) end(t testing.TB) {
	m.once.Do(func() {
		if m.abort != "" {
			if err := os.WriteFile(m.abort, []byte("1"), 0o200); err != nil {
				t.Errorf("abort: %v", err)
			}
		}
		_ = m.in.Close()
		_ = m.cmd.Process.Kill() // the connection is gone with it
		_ = m.cmd.Wait()
		if err := unix.Unmount(m.dir, unix.MNT_DETACH); err != nil && m.abort != "" {
			t.Errorf("unmount %s: %v", m.dir, err)
		}
	})
}
