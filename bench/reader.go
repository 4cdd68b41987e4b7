// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// reader is the program in the foreground: it reads 4 KiB at random places of a
// file, past the cache, when they are due. What is measured is the time from
// when a read was due to its end: a read that comes late to a processor, or
// behind one that took long, has waited as well.
type reader struct {
	fd    int
	size  int64
	block []byte // aligned, as O_DIRECT wants it
	rand  *rand.Rand
}

const (
	readSize  = 4096
	readEvery = 5 * time.Millisecond
)

// newReader makes the file, of so many MiB that no two bytes need be alike.
func newReader(path string, mib int) (*reader, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	r := &reader{size: int64(mib) << 20, rand: rand.New(rand.NewPCG(1, 2))}
	source := rand.NewChaCha8([32]byte{})
	chunk := make([]byte, 1<<20)
	for range mib {
		_, _ = source.Read(chunk) // has no error
		if _, err := f.Write(chunk); err != nil {
			f.Close()
			return nil, err
		}
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return nil, err
	}
	return r, f.Close()
}

func (r *reader) open(path string) (err error) {
	if r.fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC|unix.O_NOATIME, 0); err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	r.block, err = unix.Mmap(-1, 0, readSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return err
}

func (r *reader) close() error {
	if r.block != nil {
		_ = unix.Munmap(r.block)
	}
	return unix.Close(r.fd)
}

// waits reads until over is closed, or for so long, and returns how long each
// read took, in seconds.
func (r *reader) waits(over <-chan struct{}, most time.Duration) ([]float64, error) {
	runtime.LockOSThread() // a thread that sleeps in the kernel is woken by it
	defer runtime.UnlockOSThread()
	var all []float64
	began := time.Now()
	for due := began; due.Sub(began) < most; due = due.Add(readEvery) {
		select {
		case <-over:
			return all, nil
		default:
		}
		if d := time.Until(due); d > 0 {
			t := unix.NsecToTimespec(d.Nanoseconds())
			_ = unix.Nanosleep(&t, nil) // a signal makes the read early, by less than a period
		}
		place := r.rand.Int64N(r.size/readSize) * readSize
		n, err := unix.Pread(r.fd, r.block, place)
		if err != nil || n != readSize {
			return nil, fmt.Errorf("read %d bytes of %d: %w", n, readSize, err)
		}
		all = append(all, max(0, time.Since(due).Seconds()))
	}
	return all, nil
}
