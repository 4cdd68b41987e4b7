// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// ground is a filesystem with a tree, all of it on disk and bearing the old
// label. Each record begins on a copy.
type ground struct {
	volume
	scratch string // a tmpfs
	pages   pages
	entries int
}

// grow makes the filesystem on a plain file.
func grow(t *testing.T, v volume) *ground {
	t.Helper()
	g := &ground{volume: v, scratch: treetest.Fresh(t, "tmpfs")}
	image := filepath.Join(g.scratch, "base")
	(pages{}).write(t, image, g.size())
	treetest.Must(t, run("", append(slices.Clip(v.mkfs), image)...))
	dir := g.mounted(t, image, false)
	treetest.Build(t, filepath.Join(dir, "root"), treetest.Text(t, orchard()))
	treetest.Must(t, os.WriteFile(filepath.Join(dir, "beside"), make([]byte, page), 0o600))
	g.entries = int(treetest.Count(t, filepath.Join(dir, "root")).All)
	g.unmount(t)
	g.pages = readPages(t, image)
	treetest.Must(t, os.Remove(image))
	return g
}

// orchard is a tree of 16 directories of 40 entries: enough to lie in many
// blocks, and groups of blocks, of which some are lost and some are not.
func orchard() string {
	var b strings.Builder
	fmt.Fprintf(&b, "default label=%s\ndir .\nlink link beside\nfifo fifo\n", oldLabel)
	for i := range 16 {
		fmt.Fprintf(&b, "dir d%d\ndir d%d/sub\nfile d%d/f%%d x32\nfile d%d/sub/f%%d x6\n", i, i, i, i)
	}
	return b.String()
}

func (g *ground) size() int64 { return g.mib << 20 }

// at is where the filesystem is mounted.
func (g *ground) at() string { return filepath.Join(g.scratch, "mnt") }

// mount mounts the filesystem in a file.
func (g *ground) mount(file string, direct bool) (string, error) {
	if err := os.MkdirAll(g.at(), 0o700); err != nil {
		return "", err
	}
	return g.at(), mountFile(g.kind, file, g.at(), g.options, direct)
}

// mounted is mount where that cannot fail.
func (g *ground) mounted(t *testing.T, file string, direct bool) string {
	t.Helper()
	dir, err := g.mount(file, direct)
	treetest.Must(t, err)
	return dir
}

func (g *ground) unmount(t *testing.T) {
	t.Helper()
	treetest.Check(t, unmountAt(g.at()))
}

// record is what the disk was told while a command ran on it.
type record struct {
	log              []piece
	start, done, end int // places in it: the command's start and end, the last that may be cut
}

// record runs the command on a copy of the ground, and the bystander from then
// until a little after it. The seed's parity chooses how the loop device writes
// to the disk: by the page cache, one write after the other, or past it.
func (g *ground) record(t *testing.T, who relabeller, seed uint64, rng *rand.Rand) record {
	t.Helper()
	image := filepath.Join(g.scratch, "disk")
	g.pages.write(t, image, g.size())
	d := startDisk(t, image)
	defer func() {
		treetest.Check(t, errors.Join(d.stop(), os.Remove(image), os.Remove(d.log)))
	}()
	dir := g.mounted(t, d.file(), seed%2 == 0)
	defer g.unmount(t)

	root := filepath.Join(dir, "root")
	cmds := []*exec.Cmd{who.cmd(t, root)}
	if seed%3 == 0 {
		cmds = append(cmds, who.cmd(t, root))
	}
	log, at := readDiskLog(t, d.log, underFire(t, d, dir, cmds, rng)...)
	return record{log, at[0], at[1], at[2]}
}

// underFire runs the commands beside the bystander, and gives the marks of a
// record. All but the last command are killed within five milliseconds: the
// last then finds what they had written, and not yet put on disk.
func underFire(t *testing.T, d *disk, dir string, cmds []*exec.Cmd, rng *rand.Rand) []int64 {
	t.Helper()
	start := d.mark(t)
	stop, ended := make(chan struct{}), make(chan error, 1)
	theirs, pause := rand.New(rand.NewPCG(rng.Uint64(), 0)), time.Millisecond<<rng.IntN(6)
	go func() { ended <- bystander(dir, theirs, pause, stop) }()

	last := len(cmds) - 1
	for _, cmd := range cmds[:last] {
		treetest.Must(t, cmd.Start())
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond)
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
	out, err := cmds[last].CombinedOutput()
	done := d.mark(t)
	close(stop)
	treetest.Must(t, <-ended)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return []int64{start, done, d.mark(t)}
}

// bystander is an application that has nothing to do with labels: it calls fsync on the
// root, on its own file, to which it writes, or on entries, with pauses of up to pause
// between. It ends a few rounds after stop.
func bystander(dir string, rng *rand.Rand, pause time.Duration, stop <-chan struct{}) error {
	root, err := os.Open(filepath.Join(dir, "root"))
	if err != nil {
		return err
	}
	defer root.Close()
	beside, err := os.OpenFile(filepath.Join(dir, "beside"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer beside.Close()
	own := func() error {
		_, err := fmt.Fprintln(beside, rng.Uint64())
		return cmp.Or(err, beside.Sync())
	}
	habits := [][]func() error{
		{root.Sync, own},
		{root.Sync, own, func() error { return syncEntry(dir, rng) }},
		{func() error { return syncEntry(dir, rng) }},
	}
	habit := habits[rng.IntN(len(habits))]
	for left := 3; left > 0; {
		if err := habit[rng.IntN(len(habit))](); err != nil {
			return err
		}
		select {
		case <-stop:
			left--
		case <-time.After(time.Duration(rng.Int64N(int64(pause)))):
		}
	}
	return nil
}

// syncEntry calls fsync on a directory of the orchard, or on a file in it.
func syncEntry(dir string, rng *rand.Rand) error {
	name := fmt.Sprintf("root/d%d", rng.IntN(16))
	if rng.IntN(2) == 0 {
		name += fmt.Sprintf("/sub/f%d", rng.IntN(6))
	}
	entry, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer entry.Close()
	return entry.Sync()
}

// shutdown runs the command on a copy of the ground beside the bystander, shuts the filesystem
// down in the midst of it or a little later, and looks at what is left.
func (g *ground) shutdown(t *testing.T, who relabeller, seed uint64, sum *tally) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	image := filepath.Join(g.scratch, "shut")
	g.pages.write(t, image, g.size())
	defer os.Remove(image)
	dir := g.mounted(t, image, false)
	top, err := os.Open(dir)
	treetest.Must(t, err)
	stop, ended := make(chan struct{}), make(chan struct{})
	pause := time.Millisecond << rng.IntN(4)
	go func() {
		_ = bystander(dir, rand.New(rand.NewPCG(seed, 2)), pause, stop) // an error, once the filesystem is down
		close(ended)
	}()
	cmd := who.cmd(t, filepath.Join(dir, "root"))
	treetest.Must(t, cmd.Start())
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // most are cut off
		close(over)
	}()
	if rng.IntN(3) == 0 {
		<-over
		time.Sleep(time.Duration(rng.IntN(10_000)) * time.Microsecond)
	} else {
		select {
		case <-over:
		case <-time.After(time.Duration(rng.IntN(40_000)) * time.Microsecond):
		}
	}
	const (
		goingDown  = 0x8004587d // XFS_IOC_GOINGDOWN of linux/xfs_fs.h, and EXT4_IOC_SHUTDOWN
		noLogFlush = 2
	)
	err = unix.IoctlSetPointerInt(int(top.Fd()), goingDown, noLogFlush)
	<-over
	close(stop)
	<-ended
	top.Close()
	g.unmount(t)
	if err != nil {
		t.Fatalf("shutdown: %v", err)
	}
	left := readPages(t, image)
	p := g.look(t, left, false)
	sum.add(p.verdict, false)
	if who.name == intact.name && p.verdict.isBad() {
		where := fmt.Sprintf("shutdown, seed %d", seed)
		t.Logf("%s: %s: %s", where, p.verdict, p.found)
		g.keep(t, left, where)
	}
}
