// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// snagging shows a directory, and calls on it can hang: the server has taken the
// request and never answers. A deaf server does not heed the kernel's wish to
// interrupt a call either, as if its own network were dead: not even SIGKILL ends the
// thread that waits. The other kind lets a signal end the call, as NFS lets a deadly one.
type snagging struct {
	fuse.RawFileSystem // of the directory

	mu    sync.Mutex // never held while a call hangs
	names map[uint64]string
	snags map[string]*snag // by "CALL NAME"
	held  []string         // the calls that hang now
}

// snag says which calls hang.
type snag struct {
	nth  int // from which such call on
	deaf bool
}

// waits waits where calls on the name are to hang, until the call is interrupted.
func (f *snagging) waits(call, name string, interrupted <-chan struct{}) bool {
	what := call + " " + name
	f.mu.Lock()
	s := f.snags[what]
	if s == nil || s.nth > 1 {
		if s != nil {
			s.nth--
		}
		f.mu.Unlock()
		return false
	}
	f.held = append(f.held, what)
	f.mu.Unlock()
	if s.deaf {
		interrupted = nil
	}
	<-interrupted
	return true
}

// on does a call on an entry, unless it is one that hangs.
func (f *snagging) on(call string, ino uint64, interrupted <-chan struct{}, do func() fuse.Status) fuse.Status {
	f.mu.Lock()
	name := f.names[ino]
	f.mu.Unlock()
	if f.waits(call, name, interrupted) {
		return fuse.EINTR
	}
	return do()
}

func (f *snagging) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if f.waits("lookup", name, cancel) {
		return fuse.EINTR
	}
	status := f.RawFileSystem.Lookup(cancel, in, name, out)
	if status.Ok() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.names[out.NodeId] = name
	}
	return status
}

func (f *snagging) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.on("getattr", in.NodeId, cancel, func() fuse.Status { return f.RawFileSystem.GetAttr(cancel, in, out) })
}

// Statx is not to be had, so that the kernel asks by GetAttr.
func (f *snagging) Statx(<-chan struct{}, *fuse.StatxIn, *fuse.StatxOut) fuse.Status {
	return fuse.ENOSYS
}

func (f *snagging) GetXAttr(cancel <-chan struct{}, in *fuse.InHeader, attr string, dest []byte) (n uint32, status fuse.Status) {
	status = f.on("getxattr", in.NodeId, cancel, func() fuse.Status {
		n, status = f.RawFileSystem.GetXAttr(cancel, in, attr, dest)
		return status
	})
	return n, status
}

// SetXAttr sets labels, and no claim.
func (f *snagging) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, attr string, value []byte) fuse.Status {
	return f.on("setxattr", in.NodeId, cancel, func() fuse.Status {
		if attr != treetest.Attr {
			return fuse.Status(unix.ENOTSUP)
		}
		return f.RawFileSystem.SetXAttr(cancel, in, attr, value)
	})
}

func (f *snagging) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.on("opendir", in.NodeId, cancel, func() fuse.Status { return f.RawFileSystem.OpenDir(cancel, in, out) })
}

func (f *snagging) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.on("readdir", in.NodeId, cancel, func() fuse.Status { return f.RawFileSystem.ReadDir(cancel, in, out) })
}

func (f *snagging) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return f.on("fsync", in.NodeId, cancel, func() fuse.Status { return f.RawFileSystem.FsyncDir(cancel, in) })
}

// serveFUSE is "role-fuse BACK DIR": it shows BACK at DIR, answers the lines of
// its standard input, and ends with it.
func serveFUSE(args []string) error {
	if len(args) != 2 {
		return errors.New("role-fuse BACK DIR")
	}
	root, err := fs.NewLoopbackRoot(args[0])
	if err != nil {
		return err
	}
	f := &snagging{RawFileSystem: fs.NewNodeFS(root, &fs.Options{}), names: map[uint64]string{}, snags: map[string]*snag{}}
	s, err := fuse.NewServer(f, args[1], &fuse.MountOptions{
		Name: "snagging", FsName: "torture", DirectMountStrict: true, DisableReadDirPlus: true,
		Logger: log.New(io.Discard, "", 0), // of calls that were let go by an abort
	})
	if err != nil {
		return err
	}
	go s.Serve()
	if err := s.WaitMount(); err != nil {
		return err
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(f.obey(strings.Fields(in.Text())))
	}
	return nil
}

// obey does what a line says, and gives the answer.
func (f *snagging) obey(words []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(words) == 5 && words[0] == "hang": // CALL NAME NTH deaf|heeds
		nth, err := strconv.Atoi(words[3])
		if err != nil {
			return err.Error()
		}
		f.snags[words[1]+" "+words[2]] = &snag{nth, words[4] == deaf}
		return "hangs"
	case len(words) == 1 && words[0] == "held":
		return strings.Join(f.held, ",")
	}
	return "what?"
}

// fuseMount is a directory mounted by a server in a process of its own.
type fuseMount struct {
	served
	back  string // the directory
	dir   string
	abort string // the file that ends the connection
	mu    sync.Mutex
	once  sync.Once
}

// mountFUSE mounts a fresh directory at another. It goes at the end of the test,
// and calls that hang in it then return, with an error.
func mountFUSE(t testing.TB) *fuseMount {
	t.Helper()
	m := &fuseMount{back: scratch(t), dir: scratch(t)}
	m.served = serve(t, "role-fuse", m.back, m.dir)
	t.Cleanup(func() { m.end(t) })
	var err error
	m.abort, err = connection(m.dir)
	treetest.Must(t, err)
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
