// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

const someIO = "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"

// What tells no pressure is an error before the work.
func TestFindPressure(t *testing.T) {
	for text, ok := range map[string]bool{someIO: true, "some avg10=much\n": false, "": false} {
		file := filepath.Join(t.TempDir(), "io")
		write(t, file, text)
		p, err := FindPressure(file, 10)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if ok {
			if avg, err := readPressure(p.file); avg != 12.5 || err != nil {
				t.Errorf("%v, %v", avg, err)
			}
		}
	}
	if _, err := FindPressure(filepath.Join(t.TempDir(), "none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
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
