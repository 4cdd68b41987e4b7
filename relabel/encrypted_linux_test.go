// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// encrypted is a filesystem with fscrypt, and a key for it.
type encrypted struct {
	dir string // its top
	id  [unix.FSCRYPT_KEY_IDENTIFIER_SIZE]byte
}

func newEncrypted(t *testing.T) *encrypted {
	t.Helper()
	treetest.Need(t, "root", "ext4")
	return &encrypted{dir: ext4With(t, "encrypt")}
}

func (e *encrypted) ioctl(t *testing.T, path string, request uint, arg unsafe.Pointer) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
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
	e := newEncrypted(t)
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
					if err := os.WriteFile(filepath.Join(root, "d", fmt.Sprintf("f%03d", i)), nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(root, "d", "sub", "f"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
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
