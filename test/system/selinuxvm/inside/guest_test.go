// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// report is what the process in a container met.
type report struct {
	Context string        // its own
	Dev     string        // the label of /dev, which the runtime mounted for it
	Entries int           // of the volume, seen and read
	Read    syscall.Errno // the first in the volume, or 0
	Write   syscall.Errno // the same
}

// Two things that the process makes in the volume.
var guestMakes = []string{"made", "made/by-a-container"}

// roleGuest is the process in a container: it reads the whole volume, writes
// into a file that was there and makes new ones, and leaves word.
func roleGuest([]string) error {
	var r report
	text, err := os.ReadFile("/proc/self/attr/current")
	if err != nil {
		return err
	}
	r.Context = strings.TrimRight(string(text), "\x00\n")
	if r.Dev, err = readLabel("/dev"); err != nil {
		return err
	}
	if r.Entries, err = readAll(guestVolume); !errors.As(err, &r.Read) && err != nil {
		return err
	}
	if err := writeSome(guestVolume); !errors.As(err, &r.Write) && err != nil {
		return err
	}
	if text, err = json.Marshal(r); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(guestWitness, "report"), text, 0o644)
}

// readAll reads every entry in its way, and counts them. It goes on behind
// one that it cannot read, and gives the first error.
func readAll(root string) (n int, first error) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = readLabel(path)
		}
		switch {
		case err != nil:
		case d.Type().IsRegular():
			_, err = os.ReadFile(path)
		case d.Type() == fs.ModeSymlink:
			_, err = os.Readlink(path)
		}
		if err == nil {
			n++
		} else if first == nil {
			first = err
		}
		return nil
	})
	return n, errors.Join(first, err)
}

func writeSome(root string) error {
	dir, file := filepath.Join(root, guestMakes[0]), filepath.Join(root, guestMakes[1])
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(root, "top"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close())
}
