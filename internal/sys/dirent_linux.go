// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RecordMax is the longest record that getdents64 is expected to write: a header of 19 bytes, a name
// of 255 and its NUL, rounded up to 8.
const RecordMax = 280

// readMost bytes of a directory are read ahead by XFS for one call of getdents64. What the
// same call reads after that it reads block by block.
const readMost = 32 << 10

// Getdents reads records of the open directory fd into buf, 32 KiB of it at most. 0 is the
// end.
func Getdents(fd int, buf []byte) (int, Errno) {
	n := 0
	e := again(func() (err error) { n, err = unix.Getdents(fd, buf[:min(len(buf), readMost)]); return err })
	return n, e
}

// Dirent is one directory record. Its name lies in the buffer that was parsed.
type Dirent struct {
	Ino  uint64 // 0 is an inode number like any other
	Kind Kind
	Name []byte // without the NUL, which follows it in the buffer
}

// Cname is the name for a system call.
func (d *Dirent) Cname() *byte { return unsafe.SliceData(d.Name) }

// ErrRecord says that a directory record exceeds its buffer, or its name is empty or holds a slash.
var ErrRecord = errors.New("malformed directory record")

// header is the length of a record before its name.
const header = 19

// NameAt is the offset of the name in a record.
const NameAt = header

// Parse reads the first record of buf and returns how long it is: at least one
// byte, or an error.
func Parse(buf []byte) (Dirent, int, error) {
	if len(buf) < header+2 {
		return Dirent{}, 0, ErrRecord
	}
	length := int(binary.NativeEndian.Uint16(buf[16:]))
	if length < header+2 || length > len(buf) {
		return Dirent{}, 0, ErrRecord
	}
	name := buf[header:length]
	end := bytes.IndexByte(name, 0)
	if end < 1 || bytes.IndexByte(name[:end], '/') >= 0 {
		return Dirent{}, 0, ErrRecord
	}
	return Dirent{
		Ino:  binary.NativeEndian.Uint64(buf),
		Kind: Kind(buf[18]),
		Name: name[: end : end+1],
	}, length, nil
}

// After is the position behind the first record of buf, which is whole, as Rewind
// takes it.
func After(buf []byte) int64 { return int64(binary.NativeEndian.Uint64(buf[8:])) }

// IsDot reports whether name is "." or "..", which every directory lists.
func IsDot(name []byte) bool {
	return name[0] == '.' && (len(name) == 1 || len(name) == 2 && name[1] == '.')
}

// Entries are those of the open directory fd, from where it stands, but for . and .. . An error is
// the last.
func Entries(fd int) iter.Seq2[Dirent, error] {
	return func(yield func(Dirent, error) bool) {
		buf := make([]byte, 64<<10)
		for {
			n, e := Getdents(fd, buf)
			if e != 0 {
				yield(Dirent{}, e)
				return
			}
			if n == 0 {
				return
			}
			for rest := buf[:n]; len(rest) > 0; {
				r, length, err := Parse(rest)
				if err != nil {
					yield(Dirent{}, err)
					return
				}
				rest = rest[length:]
				if !IsDot(r.Name) && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// RecordLen returns the length of the record of a name of n bytes.
func RecordLen(n int) int { return (header + n + 1 + 7) &^ 7 }

// AppendRecord adds a directory record to buf, as Parse reads it.
func AppendRecord(buf []byte, ino uint64, kind Kind, name []byte) []byte {
	length := RecordLen(len(name))
	buf = slices.Grow(buf, length)
	buf = buf[:len(buf)+length]
	record := buf[len(buf)-length:]
	binary.NativeEndian.PutUint64(record[length-8:], 0) // the NUL, and what is behind it
	binary.NativeEndian.PutUint64(record, ino)
	binary.NativeEndian.PutUint64(record[8:], 0)
	binary.NativeEndian.PutUint16(record[16:], uint16(length))
	record[18] = byte(kind)
	copy(record[header:], name)
	return buf
}
