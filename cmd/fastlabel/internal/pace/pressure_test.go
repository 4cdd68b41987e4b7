// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

const (
	someIO   = "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
	unified  = "25 20 0:21 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
	hybrid   = "24 20 0:20 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n25 20 0:21 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n"
	ofMine   = "sys/fs/cgroup/a.slice/b/io.pressure"
	ofHybrid = "sys/fs/cgroup/unified/a.slice/b/io.pressure"
	ofAll    = "proc/pressure/io"
)

// The own cgroup's pressure comes before the machine's; with neither it is said.
func TestFindPressure(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"own":          {map[string]string{"proc/self/mountinfo": unified, ofMine: someIO, ofAll: someIO}, ofMine},
		"hybrid":       {map[string]string{"proc/self/mountinfo": hybrid, ofHybrid: someIO, ofAll: someIO}, ofHybrid},
		"machine":      {map[string]string{"proc/self/mountinfo": unified, ofAll: someIO}, ofAll},
		"no cgroup2":   {map[string]string{ofAll: someIO}, ofAll},
		"own is empty": {map[string]string{"proc/self/mountinfo": unified, ofMine: "", ofAll: someIO}, ofAll},
		"garbage":      {map[string]string{ofAll: "some avg10=much\n"}, ""},
		"none":         {nil, ""},
	} {
		root := t.TempDir()
		write(t, filepath.Join(root, "proc/self/cgroup"), "4:memory:/m\n0::/a.slice/b\n")
		for file, text := range c.files {
			write(t, filepath.Join(root, file), text)
		}
		p, err := FindPressure(root, 10)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: %v, %v", name, p, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if avg, err2 := readPressure(p.file); p.file != filepath.Join(root, c.want) || avg != 12.5 || err2 != nil {
			t.Errorf("%s: %s says %v: %v", name, p.file, avg, err2)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// The limit falls while the pressure is too high, to a rate that still goes on,
// rises when it is not, and is lifted when it holds nothing back.
func TestPressureLimit(t *testing.T) {
	p := &Pressure{most: 10}
	p.look(9, 5000)
	if p.limit != 0 {
		t.Errorf("limited to %v without need", p.limit)
	}
	rate := 5000.0
	for range 5 { // ten seconds
		p.look(30, rate)
		rate = min(rate, p.limit)
	}
	if rate > 2000 || rate < 1000 {
		t.Errorf("%v entries a second after ten seconds", rate)
	}
	for range 100 {
		p.look(30, rate)
		rate = min(rate, p.limit)
	}
	if p.limit != slowest {
		t.Errorf("%v entries a second at last", p.limit)
	}
	for i := 0; p.limit > 0; i++ {
		if p.look(5, min(p.limit, 5000)); i > 200 {
			t.Fatalf("still %v", p.limit)
		}
	}
	p.look(30, 0) // nothing moves: it does not stand still for ever
	if p.limit < slowest {
		t.Errorf("limited to %v", p.limit)
	}
}

// What the kernel says reaches the pacer, and what cannot be read changes
// nothing.
func TestPressureWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "io")
	write(t, file, someIO)
	synctest.Test(t, func(t *testing.T) {
		pace := New(1000)
		p := &Pressure{file: file, most: 10}
		end := p.Watch(pace)
		limit := func() float64 {
			synctest.Wait()
			pace.mu.Lock()
			defer pace.mu.Unlock()
			return pace.limit
		}
		synctest.Wait()
		for range 100 {
			pace.turn(time.Now(), 10)
		}
		time.Sleep(lookEvery + time.Millisecond)
		held := limit()
		if held != 400 { // 500 a second, less a fifth
			t.Errorf("limited to %v", held)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * lookEvery)
		if got := limit(); got != held {
			t.Errorf("limited to %v without a word of the kernel", got)
		}
		end()
	})
}
