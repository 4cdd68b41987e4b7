// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// labelling is tree, or apply by rules which have that label for all.
type labelling func(ctx context.Context, root, label string, o Options, in inner) (Report, error)

// labellings are both. Rules have the label by name, so that each name is looked up.
func labellings(t *testing.T) map[string]labelling {
	rules := func(root, label string) Contexts {
		return contextsFor(t, root, "@(/.*)? "+label+"\n@/.*[0-9] "+label+"\n")
	}
	return map[string]labelling{"label": tree, "rules": func(ctx context.Context, root, label string, o Options, in inner) (Report, error) {
		return apply(ctx, root, Rules{Contexts: rules(root, label)}, o, in)
	}, "rules of others": func(ctx context.Context, root, label string, o Options, in inner) (Report, error) {
		return apply(ctx, root, Rules{Contexts: struct{ Contexts }{rules(root, label)}}, o, in)
	}}
}

// TestVanish removes what the walk has read the names of, but not reached.
func TestVanish(t *testing.T) {
	for how, label := range labellings(t) {
		for engine, m := range engines() {
			engine += ", " + how
			root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir d%d x8\ndir d0/e\n"+
				"file d0/f%02d x50\nfile d1/f%02d x50\nfile d2/f%02d x50\nfile g%02d x20\n")
			n := 0
			r, err := label(t.Context(), root, newLabel, Options{Workers: 1, Trace: &Trace{Change: func(path, _, _ string) {
				if n++; n != 3 && n != 25 {
					return
				}
				names, err := filepath.Glob(filepath.Dir(path) + "/*")
				treetest.Check(t, err)
				for i, name := range names {
					if i%2 == 0 && name != path {
						treetest.Check(t, os.RemoveAll(name))
					}
				}
			}}}, as(m))
			adds(t, r)
			if err != nil || !r.Complete || r.Vanished == 0 {
				t.Errorf("%s: %+v, %v", engine, r, err)
			}
			if have := treetest.Read(t, root); len(bearing(t, root, newLabel)) != len(have) {
				t.Errorf("%s: %d of %d are labelled", engine, len(bearing(t, root, newLabel)), len(have))
			}
		}
	}
}

// TestVanishDeep removes more directories than are kept open, while entries of
// each of them still wait. One that was closed by then cannot be told from one
// that was moved, with what is in it: that may be said to have failed, but by
// that errno only, and nothing is left for the next run.
func TestVanishDeep(t *testing.T) {
	const deep = 2 * mostOpen
	root := mkdir(t, on(t, "tmpfs"), "root")
	at := root
	for range deep {
		mkdir(t, at, "a")
		mkdir(t, at, "b")
		at = filepath.Join(at, "a")
		treetest.Must(t, os.Symlink("b", filepath.Join(filepath.Dir(at), "z")))
	}
	entries := 1 + 3*deep
	n := 0
	r, err := Tree(t.Context(), root, newLabel, &Options{Workers: 1, Trace: &Trace{Change: func(string, string, string) {
		if n++; n == entries-deep {
			treetest.Check(t, os.RemoveAll(filepath.Join(root, "a")))
		}
	}}})
	adds(t, r)
	if r.Vanished == 0 || r.Seen != int64(entries) || r.Complete != (err == nil) {
		t.Errorf("%+v", r)
	}
	if some := (*IncompleteError)(nil); errors.As(err, &some) {
		for _, err := range some.First {
			if !errors.Is(err, syscall.ESTALE) {
				t.Error(err)
			}
		}
	} else if err != nil {
		t.Error(err)
	}
	if r, err := Tree(t.Context(), root, newLabel, nil); err != nil || !r.Complete {
		t.Errorf("the run after it: %+v, %v", r, err)
	}
}

func exchange(t *testing.T, a, b string) {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestOrdinaryUser: each entry that may not be labelled is named, and so is a
// directory that may not be read.
func TestOrdinaryUser(t *testing.T) {
	dir := on(t, "tmpfs")
	root := grow(t, dir, "default label="+oldLabel+"\ndir .\nfile f\ndir open mode=755\nfile open/f\ndir shut mode=700\nfile shut/f\nlink l f\n")
	before := treetest.Snapshot(t, root+"/...")
	// The program itself lies where only its maker may go.
	self := filepath.Join(dir, "program")
	program, err := os.ReadFile(child(t, "", "").Path)
	treetest.Must(t, err)
	treetest.Must(t, os.WriteFile(self, program, 0o755))
	run := func(what string) string {
		cmd := child(t, what, root)
		cmd.Path, cmd.Dir = self, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return treetest.Output(t, cmd)
	}
	run("hidden")
	text := run("label")
	for path, errno := range map[string]syscall.Errno{
		"f": syscall.EPERM, "open": syscall.EPERM, "open/f": syscall.EPERM, "shut": syscall.EACCES, "l": syscall.EPERM,
	} {
		named := regexp.MustCompile(`(?m)^failed:.* ` + regexp.QuoteMeta(filepath.Join(root, path)+": "+errno.Error()))
		if found := named.FindAllString(text, -1); len(found) != 1 {
			t.Errorf("%s is named %d times with %v", path, len(found), errno)
		}
	}
	if !strings.Contains(text, "Failed:5}") || !strings.Contains(text, "Complete:false") || !strings.Contains(text, "no lock was taken") {
		t.Error("the report is wrong")
	}
	if d := treetest.Diff(before, treetest.Snapshot(t, root+"/...")); len(d) > 0 {
		t.Error(lines(d))
	}
	if t.Failed() {
		t.Log(text)
	}
}

// ended waits until no more than n goroutines run.
func ended(t *testing.T, n int) {
	t.Helper()
	treetest.Wait(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= n })
}

// openFiles counts the open files.
func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	treetest.Must(t, err)
	return len(names)
}

// encrypted is a filesystem with fscrypt, and a key for it.
type encrypted struct {
	dir string // its top
	id  [unix.FSCRYPT_KEY_IDENTIFIER_SIZE]byte
}

func (e *encrypted) ioctl(t *testing.T, path string, request uint, arg unsafe.Pointer) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	treetest.Must(t, err)
	defer unix.Close(fd)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg)); errno != 0 {
		switch errno {
		case unix.ENOTTY, unix.EOPNOTSUPP, unix.ENOPKG, unix.ENOENT: // the last: it has no such cipher, or hash
			treetest.Lack(t, "fscrypt", errno)
		}
		t.Fatalf("ioctl %#x of %s: %v", request, path, errno)
	}
}

// unlock adds the key.
func (e *encrypted) unlock(t *testing.T) {
	t.Helper()
	var arg struct {
		unix.FscryptAddKeyArg
		raw [64]byte
	}
	arg.Key_spec.Type = unix.FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER
	arg.Raw_size = uint32(len(arg.raw))
	copy(arg.raw[:], bytes.Repeat([]byte("key "), 16))
	e.ioctl(t, e.dir, unix.FS_IOC_ADD_ENCRYPTION_KEY, unsafe.Pointer(&arg))
	copy(e.id[:], arg.Key_spec.U[:])
}

// lock takes the key away.
func (e *encrypted) lock(t *testing.T) {
	t.Helper()
	arg := unix.FscryptRemoveKeyArg{}
	arg.Key_spec.Type = unix.FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER
	copy(arg.Key_spec.U[:], e.id[:])
	unix.Sync()
	e.ioctl(t, e.dir, unix.FS_IOC_REMOVE_ENCRYPTION_KEY, unsafe.Pointer(&arg))
	if arg.Removal_status_flags != 0 {
		t.Fatalf("the key is in use: %#x", arg.Removal_status_flags)
	}
}

// encrypt makes an empty directory in which everything is encrypted.
func (e *encrypted) encrypt(t *testing.T, dir string) {
	t.Helper()
	policy := unix.FscryptPolicyV2{
		Version:                   unix.FSCRYPT_POLICY_V2,
		Contents_encryption_mode:  unix.FSCRYPT_MODE_AES_256_XTS,
		Filenames_encryption_mode: unix.FSCRYPT_MODE_AES_256_CTS,
		Flags:                     unix.FSCRYPT_POLICY_FLAGS_PAD_32,
		Master_key_identifier:     e.id,
	}
	e.ioctl(t, dir, unix.FS_IOC_SET_ENCRYPTION_POLICY, unsafe.Pointer(&policy))
}

// TestEncrypted: where the key is added while entries wait to be labelled, under the
// names that they have without it, these are failures and not taken for vanished.
func TestEncrypted(t *testing.T) {
	treetest.Need(t, "root", "ext4")
	e := &encrypted{dir: ext4With(t, "encrypt")}
	e.unlock(t)
	for engine, m := range engines() {
		for _, adds := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, added %t", engine, adds), func(t *testing.T) {
				e.unlock(t)
				root := mkdir(t, e.dir, fmt.Sprintf("%s-%t", engine, adds))
				treetest.Set(t, root, ".", oldLabel)
				e.encrypt(t, mkdir(t, root, "d"))
				mkdir(t, root, "d", "sub")
				for i := range 200 {
					writeFile(t, filepath.Join(root, "d", fmt.Sprintf("f%03d", i)))
				}
				writeFile(t, filepath.Join(root, "d", "sub", "f"))
				e.lock(t)
				n := 0
				r, err := tree(t.Context(), root, newLabel, Options{Workers: 1, Trace: &Trace{Change: func(string, string, string) {
					if n++; n == 20 && adds {
						e.unlock(t)
					}
				}}}, as(m))
				if adds && (!errors.Is(err, syscall.ENOKEY) || r.Complete || r.Failed == 0 || r.Vanished > 0) {
					t.Errorf("%+v, %v", r, err)
				}
				if !adds && (err != nil || !r.Complete || r.Seen != 204) {
					t.Errorf("%+v, %v", r, err)
				}
				e.unlock(t)
				r, err = tree(t.Context(), root, newLabel, Options{}, as(m))
				if err != nil || !r.Complete || len(bearing(t, root, newLabel)) != 204 {
					t.Errorf("with the key: %+v, %v", r, err)
				}
			})
		}
	}
}
