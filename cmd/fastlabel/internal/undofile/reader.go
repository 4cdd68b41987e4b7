// SPDX-License-Identifier: Apache-2.0

package undofile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/fastlabel/fastlabel/internal/secctx"
	"github.com/fastlabel/fastlabel/relabel/undo"
)

// Reader reads a record.
type Reader struct {
	Head    undo.Header
	Entries int64 // on the record
	// Cut says that the record has no end: the run was killed or lost its power,
	// or the file is not whole.
	Cut bool

	src  io.ReaderAt
	size int64
	zip  *zstd.Decoder
}

// Errors of a file that is no record, or no whole one.
var (
	ErrForeign = errors.New("it is no record of fastlabel")
	ErrNewer   = errors.New("a newer fastlabel made this record")
	ErrDamaged = errors.New("the record is damaged")
)

// Open reads the record in f from its beginning to its end, and checks all of it.
func Open(f *os.File) (*Reader, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is no regular file", ErrForeign)
	}
	return open(f, st.Size())
}

func open(src io.ReaderAt, size int64) (*Reader, error) {
	zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(largest), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	r := &Reader{src: src, size: size, zip: zip}
	if err := r.first(); err != nil {
		return nil, err
	}
	var begun, ended bool
	for k, err := range r.frames() {
		if err != nil {
			return nil, err
		}
		switch {
		case ended || begun == (k.kind == kindHead):
			return nil, fmt.Errorf("%w: frame %d is out of order", ErrDamaged, k.number)
		case k.kind == kindHead:
			err, begun = r.head(k.payload), true
		case k.kind == kindPages:
			err = decodePages(k.payload, r.Head.Label == "", func(p undo.Page) bool {
				r.Entries += int64(len(p.Entries))
				return true
			})
		case k.kind == kindEnd:
			var e end
			err, ended = json.Unmarshal(k.payload, &e), true
			r.Head.Partial = !e.Complete
			if err == nil && e.Entries != r.Entries {
				err = fmt.Errorf("%d entries of %d", r.Entries, e.Entries)
			}
		default:
			err = fmt.Errorf("a frame of kind %d", k.kind)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: frame %d: %w", ErrDamaged, k.number, err)
		}
	}
	if !begun {
		return nil, fmt.Errorf("%w: it ends before anything was recorded", ErrDamaged)
	}
	r.Cut = !ended
	return r, nil
}

// first reads the first line.
func (r *Reader) first() error {
	line := make([]byte, len(magic))
	n, err := r.src.ReadAt(line, 0)
	if err != nil && err != io.EOF {
		return err
	}
	name := magic[:len(magic)-2]
	switch {
	case string(line[:n]) == magic:
		return nil
	case bytes.HasPrefix(line[:n], []byte(name)) && n > len(name):
		return ErrNewer
	}
	return ErrForeign
}

func (r *Reader) head(payload []byte) error {
	var h head
	if err := json.Unmarshal(payload, &h); err != nil {
		return err
	}
	if len(h.Root) == 0 || h.Root[0] != '/' {
		return errForm
	}
	r.Head = undo.Header{
		Root: string(h.Root), Label: h.Label, Began: h.Began, Ino: h.Ino, Birth: h.Birth, Filesystem: h.Filesystem,
		Former: undo.Former{Label: string(h.Former), None: h.None, Given: h.Given}, Claimed: h.Claimed, Partial: true, // until the end is read
	}
	if h.Label == "" { // by rules
		return nil
	}
	_, err := secctx.Canonical(h.Label)
	return err
}

// Pages are those on the record, each with memory of its own. They are checked
// again: an error means that the file has changed since Open.
func (r *Reader) Pages() iter.Seq2[undo.Page, error] {
	return func(yield func(undo.Page, error) bool) {
		for k, err := range r.frames() {
			on := true
			if err == nil && k.kind == kindPages {
				err = decodePages(k.payload, r.Head.Label == "", func(p undo.Page) bool {
					on = yield(p, nil)
					return on
				})
			}
			if err != nil {
				yield(undo.Page{}, err)
				return
			}
			if !on {
				return
			}
		}
	}
}

// frame is one of a file.
type frame struct {
	kind    byte
	number  uint32
	payload []byte // good until the next
}

// frames reads to the end, or to where the record is cut off.
func (r *Reader) frames() iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		at := int64(len(magic))
		var tag, raw, plain []byte
		for number := uint32(0); ; number++ {
			var k frame
			var err error
			k, raw, plain, err = r.frame(at, number, &tag, raw, plain)
			if errors.Is(err, errCut) {
				if behind, err := r.behind(at, tag); err != nil {
					yield(frame{}, err)
				} else if behind {
					yield(frame{}, fmt.Errorf("%w: frame %d, at byte %d", ErrDamaged, number, at))
				}
				return
			}
			if err != nil {
				yield(frame{}, err)
				return
			}
			if !yield(k, nil) {
				return
			}
			at += int64(len(raw))
		}
	}
}

// errCut says that no whole frame is there.
var errCut = errors.New("no whole frame")

// frame reads the frame at at. raw and plain are memory to use.
func (r *Reader) frame(at int64, number uint32, tag *[]byte, raw, plain []byte) (frame, []byte, []byte, error) {
	var h [headerLen]byte
	if at+headerLen > r.size {
		return frame{}, raw, plain, errCut
	}
	if _, err := r.src.ReadAt(h[:], at); err != nil {
		return frame{}, raw, plain, cut(err)
	}
	if *tag == nil {
		*tag = bytes.Clone(h[:tagLen])
	}
	length, size := int64(binary.LittleEndian.Uint32(h[tagLen+8:])), int64(binary.LittleEndian.Uint32(h[tagLen+12:]))
	if !bytes.Equal(h[:tagLen], *tag) || binary.LittleEndian.Uint32(h[tagLen+4:]) != number || length > largest || size > largest || at+headerLen+length > r.size {
		return frame{}, raw, plain, errCut
	}
	raw = append(raw[:0], h[:]...)
	raw = append(raw, make([]byte, length)...)
	if _, err := r.src.ReadAt(raw[headerLen:], at+headerLen); err != nil {
		return frame{}, raw, plain, cut(err)
	}
	if checksum(raw) != binary.LittleEndian.Uint32(h[tagLen+16:]) {
		return frame{}, raw, plain, errCut
	}
	var err error
	if int64(cap(plain)) < size {
		plain = make([]byte, 0, size)
	}
	plain, err = r.zip.DecodeAll(raw[headerLen:], plain[:0:size])
	if err != nil || int64(len(plain)) != size {
		return frame{}, raw, plain, fmt.Errorf("%w: frame %d does not decompress", ErrDamaged, number)
	}
	return frame{kind: h[tagLen], number: number, payload: plain}, raw, plain, nil
}

// cut tells the end of the file from a disk that fails.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// behind says whether a frame begins somewhere behind at: then what is there was
// damaged, for it had been on disk before that frame was begun.
func (r *Reader) behind(at int64, tag []byte) (bool, error) {
	if len(tag) == 0 || at+1 >= r.size {
		return false, nil
	}
	in := bufio.NewReaderSize(io.NewSectionReader(r.src, at+1, r.size-at-1), 1<<20)
	for {
		have, err := in.Peek(1 << 20)
		if bytes.Contains(have, tag) {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if _, err := in.Discard(len(have) - tagLen + 1); err != nil {
			return false, err
		}
	}
}
