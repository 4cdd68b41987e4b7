// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/internal/mounts"
	"github.com/fastlabel/fastlabel/internal/run"
	"github.com/fastlabel/fastlabel/internal/sys"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestThrottleIsNoStall: nobody who waits for the caller is taken for held up,
// nor when it goes on. The control waits for something else.
func TestThrottleIsNoStall(t *testing.T) {
	k := &Walk{}
	w := &worker{pos: position{walk: k}}
	w.pos.dir.Store(&directory{})
	k.workers = []*position{&w.pos}
	look := func() (moves bool, held int) {
		for range run.Limit/run.Every + 1 {
			moves, held = run.Look(k.Watched)
		}
		return moves, held
	}
	run.Look(k.Watched)
	var moved bool
	var held int
	w.pos.pause(func() { moved, held = look() })
	if moved || held > 0 {
		t.Errorf("while it waits: moves %t, held up %d", moved, held)
	}
	if moved, held = run.Look(k.Watched); !moved || held > 0 {
		t.Errorf("as it goes on: moves %t, held up %d", moved, held)
	}
	if moved, held = look(); moved || held == 0 {
		t.Errorf("control: moves %t, held up %d", moved, held)
	}
}

// TestReadingMoves: a worker that reads a directory for long is not taken for held up.
func TestReadingMoves(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 * bufferSize / 280 {
		treetest.Must(t, os.WriteFile(fmt.Sprintf("%s/%0250d", dir, i), nil, 0o600))
	}
	fd := openDir(t, dir)
	defer sys.Close(fd)
	w := &worker{buf: make([]byte, bufferSize)}
	places := map[any]bool{}
	for more := true; more; {
		_, more = w.getdents(&directory{}, fd, 0)
		places[w.pos.Place()] = true
	}
	if len(places) < 3 {
		t.Errorf("it was at %d places", len(places))
	}
}

// TestFailDir: a directory whose entries cannot all be read counts as failed, once; also on the
// second reading of the root, where one that is right was counted when the root was read first.
func TestFailDir(t *testing.T) {
	want := Tally{Seen: 1}
	want.Of[Failed] = 1
	for _, rereading := range []bool{false, true} {
		for _, was := range []Outcome{Right, Written, Failed} {
			l := &labeller{walk: &Walk{job: &Job{Events: Events{Failed: func(string, string, error) {}}}}, pos: &position{}}
			d := &directory{parent: &directory{mount: &mounts.Mount{}, rereading: rereading}, name: "d\x00"}
			l.countDir(d, was)
			l.failDir(d, "openat", syscall.ESTALE)
			l.failDir(d, "getdents64", syscall.ESTALE)
			if l.tally != want {
				t.Errorf("outcome %d, on the second reading %v: %+v", was, rereading, l.tally)
			}
		}
	}
}
