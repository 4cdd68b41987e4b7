// SPDX-License-Identifier: Apache-2.0

package undofile

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/fastlabel/fastlabel/relabel/undo"
)

const (
	// magic is the first line of a record of this version.
	magic = "fastlabel record 1\n"
	// ahead is how much room is taken at a time.
	ahead     = 4 << 20
	tagLen    = 16
	headerLen = tagLen + 20

	kindHead  = 1
	kindPages = 2
	kindEnd   = 3

	// largest is the largest payload, compressed or not: what is encoded at a time, and
	// a page of it more. A record may be crafted, and is read into memory of that size.
	largest = 16 << 20
	// most bytes of a payload are encoded at a time, as far as pages allow.
	most = 4 << 20
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// head is the payload of the first frame. What need not be UTF-8 is in bytes.
type head struct {
	Root       []byte    `json:"root"`
	Label      string    `json:"label"`
	Began      time.Time `json:"began"`
	Ino        uint64    `json:"ino"`
	Birth      time.Time `json:"birth,omitzero"`
	Filesystem int64     `json:"filesystem"`
	Former     []byte    `json:"former,omitempty"`
	None       bool      `json:"none,omitempty"`
	Given      string    `json:"given,omitempty"`
	Claimed    bool      `json:"claimed,omitempty"`
	Version    string    `json:"version"`
}

// end is the payload of the last.
type end struct {
	Entries  int64 `json:"entries"`
	Complete bool  `json:"complete"` // see Writer.Complete
}

// Writer writes a record. It is an undo.Recorder.
type Writer struct {
	path    string
	version string
	zip     *zstd.Encoder

	mu      sync.Mutex
	f       *os.File
	tag     [tagLen]byte
	number  uint32
	at      int64 // where the next frame begins
	room    int64 // where the zeros end
	entries int64
	err     error

	byRules  bool // each entry has the label that it is given on record
	complete bool
}

// Create makes the file, which must not exist. version is that of the program.
func Create(path, version string) (*Writer, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, version: version, zip: zip}
	if _, err := rand.Read(w.tag[:]); err != nil {
		return nil, err
	}
	w.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return w, err
}

// Begin writes the head; the file's name is on disk with it.
func (w *Writer) Begin(h undo.Header) error {
	payload, err := json.Marshal(head{
		Root: []byte(h.Root), Label: h.Label, Began: h.Began, Ino: h.Ino, Birth: h.Birth, Filesystem: h.Filesystem,
		Former: []byte(h.Former.Label), None: h.Former.None, Given: h.Former.Given, Claimed: h.Claimed, Version: w.version,
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.f.WriteAt([]byte(magic), 0); err != nil {
		return err
	}
	w.at, w.byRules = int64(len(magic)), h.Label == ""
	if err := w.frame(kindHead, w.zip.EncodeAll(payload, nil), len(payload)); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	return syncParent(w.path)
}

// Keep writes pages, and waits for the disk.
func (w *Writer) Keep(pages []undo.Page) error {
	pages = parts(pages)
	for len(pages) > 0 {
		n, size, last, given := 0, 0, "", ""
		entries := 0
		for ; n < len(pages) && (n == 0 || size < most); n++ {
			size += len(pages[n].Dir)
			if len(pages[n].Dir) > longestDir {
				return fmt.Errorf("%s: a path of %d bytes is too long for a record", w.path, len(pages[n].Dir))
			}
			for _, e := range pages[n].Entries {
				size += len(e.Name) + 8
				if e.Label != last {
					last = e.Label
					size += len(last)
				}
				if w.byRules && e.Given != given {
					given = e.Given
					size += len(given)
				}
			}
			entries += len(pages[n].Entries)
		}
		payload := appendPages(nil, pages[:n], w.byRules)
		zipped := w.zip.EncodeAll(payload, nil)
		w.mu.Lock()
		err := w.frame(kindPages, zipped, len(payload))
		w.entries += int64(entries)
		w.mu.Unlock()
		if err != nil {
			return err
		}
		pages = pages[n:]
	}
	return nil
}

// frame writes a frame and waits until it is on disk. After an error there are no
// more. mu is held.
func (w *Writer) frame(kind byte, payload []byte, size int) error {
	if w.err != nil {
		return w.err
	}
	if size > largest || len(payload) > largest {
		w.err = fmt.Errorf("%s: %d bytes are too many for a frame", w.path, size)
		return w.err
	}
	b := make([]byte, headerLen, headerLen+len(payload))
	copy(b, w.tag[:])
	b[tagLen] = kind
	binary.LittleEndian.PutUint32(b[tagLen+4:], w.number)
	binary.LittleEndian.PutUint32(b[tagLen+8:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[tagLen+12:], uint32(size))
	b = append(b, payload...)
	binary.LittleEndian.PutUint32(b[tagLen+16:], checksum(b))
	if w.err = w.write(b); w.err == nil {
		w.number++
		w.at += int64(len(b))
	}
	return w.err
}

// checksum is that of a frame, in which its own field counts as nothing.
func checksum(frame []byte) uint32 {
	sum := crc32.Checksum(frame[:tagLen+16], castagnoli())
	return crc32.Update(sum, castagnoli(), frame[headerLen:])
}

func (w *Writer) write(b []byte) error {
	if end := w.at + int64(len(b)); end > w.room {
		zeros := make([]byte, ahead+len(b))
		w.room = w.at + int64(len(zeros))
		if _, err := w.f.WriteAt(zeros, w.at); err != nil {
			w.room = math.MaxInt64 // none is to be had: what is left is for frames
		}
	}
	if _, err := w.f.WriteAt(b, w.at); err != nil {
		return err
	}
	return datasync(w.f)
}

// Complete notes that the run left nothing for another to label: what has its label
// afterwards had it before, or is on this record.
func (w *Writer) Complete() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.complete = true
}

// Worth is what can be made of a record.
type Worth int

const (
	Empty Worth = iota // there is none
	Part               // it has no end
	Whole
)

// Close ends the record, and removes a file in which nothing was begun.
func (w *Writer) Close() (Worth, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.number == 0 {
		return Empty, errors.Join(w.f.Close(), os.Remove(w.path))
	}
	if w.err != nil {
		_ = w.f.Close() // it was told why
		return Part, nil
	}
	payload, err := json.Marshal(end{w.entries, w.complete})
	if err == nil {
		err = w.frame(kindEnd, w.zip.EncodeAll(payload, nil), len(payload))
	}
	if err == nil {
		err = w.f.Truncate(w.at)
	}
	if err == nil {
		err = w.f.Sync()
	}
	if err = errors.Join(err, w.f.Close()); err != nil {
		return Part, err
	}
	return Whole, nil
}
