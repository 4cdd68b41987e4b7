// SPDX-License-Identifier: Apache-2.0

// Package metrics writes what became of a run as a file in Prometheus' text
// format (https://prometheus.io/docs/instrumenting/exposition_formats/), for the
// textfile collector of node_exporter.
//
// All are gauges: a file tells of one run, and the next run's replaces it. All
// have a path, and none is of the run as a whole: node_exporter refuses two files
// that have the same series.
//
// The format is written here, and not by Prometheus' client: that brings protobuf
// and net/http, for four families of numbers.
package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// Run is one run of a command.
type Run struct {
	Command string // label, verify, probe
	Ended   time.Time
	Paths   []Path // each Name once
}

// Path is what became of a PATH.
type Path struct {
	Name     string // any bytes
	ExitCode int
	Elapsed  time.Duration
	Entries  []Count // none: it does not count
}

// Count is how many entries ended so.
type Count struct {
	Result string
	N      int64
}

// Text is the file.
func Text(r Run) []byte {
	var b bytes.Buffer
	family := func(name, help string, sample func(Path, func(value string, labels ...string))) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
		for _, p := range r.Paths {
			sample(p, func(value string, labels ...string) {
				labels = append([]string{"command", r.Command, "path", p.Name}, labels...)
				fmt.Fprintf(&b, "%s{%s} %s\n", name, pairs(labels), value)
			})
		}
	}
	family("fastlabel_last_run_timestamp_seconds", "When the last run ended, in seconds since 1970.", func(_ Path, add func(string, ...string)) {
		add(seconds(time.Duration(r.Ended.UnixNano())))
	})
	family("fastlabel_last_run_duration_seconds", "How long the last run took for this path.", func(p Path, add func(string, ...string)) {
		add(seconds(p.Elapsed))
	})
	family("fastlabel_last_run_exit_code", "How the last run ended for this path: 0 is done, the others are in fastlabel(1).", func(p Path, add func(string, ...string)) {
		add(strconv.Itoa(p.ExitCode))
	})
	family("fastlabel_last_run_entries", "Entries that the last run met, by what became of them.", func(p Path, add func(string, ...string)) {
		for _, c := range p.Entries {
			add(strconv.FormatInt(c.N, 10), "result", c.Result)
		}
	})
	return b.Bytes()
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// pairs writes names and values. A value is UTF-8 in which the backslash, the
// quote and the newline are escaped; a name that is not UTF-8 is first quoted as
// Go does it, so that two of them stay two.
func pairs(labels []string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var b strings.Builder
	for i := 0; i < len(labels); i += 2 {
		value := labels[i+1]
		if !utf8.ValidString(value) {
			value = strconv.Quote(value)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s="%s"`, labels[i], escape.Replace(value))
	}
	return b.String()
}

// own is how each file of metrics begins.
const own = "# HELP fastlabel_"

// Check finds out, before the work, whether Write will be able to write file:
// that its directory takes a new file, and that what it replaces is of this
// program, or nothing.
func Check(file string) error {
	if err := replaceable(file); err != nil {
		return err
	}
	f, err := create(file)
	if err != nil {
		return err
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// replaceable says why file must not be replaced: a slip in a command line would
// cost whatever is there.
func replaceable(file string) error {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: not a regular file, which is what it would be replaced by", strconv.Quote(file))
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	if now, err := f.Stat(); err != nil {
		return err
	} else if !os.SameFile(info, now) {
		return fmt.Errorf("%s: changed while it was looked at", strconv.Quote(file))
	}
	begin := make([]byte, len(own))
	n, err := io.ReadFull(f, begin)
	if n == 0 && errors.Is(err, io.EOF) || n == len(own) && string(begin) == own {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("%s: holds something else than metrics of fastlabel, and is not replaced", strconv.Quote(file))
}

// create makes a file beside file. The collector reads *.prom, and not this.
func create(file string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.tmp")
}

// Write replaces file as a whole: a reader has the former one or this one. Everybody
// may read it, whatever the umask. It is on disk before it has its name, so that
// after a crash there is no empty one.
func Write(file string, r Run) (err error) {
	f, err := create(file)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(Text(r)); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := replaceable(file); err != nil { // the run may have made it
		return err
	}
	return os.Rename(f.Name(), file)
}
