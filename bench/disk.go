// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// requests is what a run asked of a slowdisk. No run can be faster than its bound: so
// many requests, at the disk's limit.
type requests struct {
	Reads   int64   `json:"reads"`
	Writes  int64   `json:"writes"`
	Flushes int64   `json:"flushes"`
	Bytes   int64   `json:"bytes"`
	Deepest int     `json:"deepest"` // the most in flight
	Depth   float64 `json:"depth"`   // how many were, on average
	Bound   float64 `json:"bound"`   // seconds
}

// newSlowDisk makes a filesystem on a slowdisk that is not slow yet.
func newSlowDisk(b *binaries, dir string, c cell) (*volume, error) {
	maker, ok := makers[c.FS]
	if !ok {
		return nil, fmt.Errorf("no such filesystem on a slowdisk: %s", c.FS)
	}
	size, err := strconv.ParseInt(strings.TrimSuffix(c.Size, "G"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("a slowdisk has whole gigabytes: %w", err)
	}
	v := &volume{fs: c.FS, image: filepath.Join(dir, "served", "disk"), mount: filepath.Join(dir, c.FS)}
	at := filepath.Dir(v.image)
	for _, name := range []string{v.mount, at} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return nil, err
		}
	}
	// A disk waits for no processor.
	argv := []string{"nice", "-n", "-20", b.slowdisk, "-size", fmt.Sprint(size << 30)}
	if b.log != "" {
		argv = append(argv, "-log", b.log)
	}
	if err := v.serve(append(argv, at)...); err != nil {
		return nil, err
	}
	out, err := exec.Command("losetup", "--find", "--show", "--direct-io=on", v.image).Output()
	if err != nil {
		return nil, fmt.Errorf("losetup: %w", err)
	}
	v.loop = strings.TrimSpace(string(out))
	// A request of the block layer is one of the disk.
	queue := filepath.Join("/sys/block", filepath.Base(v.loop), "queue")
	for file, value := range map[string]string{"max_sectors_kb": "256", "scheduler": "none"} {
		if err := os.WriteFile(filepath.Join(queue, file), []byte(value), 0); err != nil {
			return v, err
		}
	}
	if err := run(append(maker[:len(maker):len(maker)], v.loop)...); err != nil {
		return v, err
	}
	return v, v.attach()
}

// slow lets a slowdisk take its time; with a limit of 0 it is as fast as it can be.
func (v *volume) slow(limit int) error {
	if v.loop == "" {
		return nil
	}
	delay := slowDelay
	if limit == 0 {
		delay = 0
	}
	return unix.Lsetxattr(filepath.Dir(v.image), "user.slowdisk.pace", fmt.Appendf(nil, "%d %s", limit, delay), 0)
}

// asked is what a run of so many seconds asked of a slowdisk, which is fast again.
func (v *volume) asked(limit int, wall float64) (*requests, error) {
	if v.loop == "" {
		return nil, nil
	}
	text := make([]byte, 512)
	n, err := unix.Lgetxattr(filepath.Dir(v.image), "user.slowdisk.counts", text)
	if err != nil {
		return nil, &os.PathError{Op: "getxattr", Path: v.image, Err: err}
	}
	var got struct {
		requests
		Waited float64 `json:"waited"`
	}
	if err := json.Unmarshal(text[:n], &got); err != nil {
		return nil, err
	}
	r := &got.requests
	r.Depth, r.Bound = got.Waited/wall, float64(r.Reads+r.Writes)/float64(limit)
	return r, v.slow(0)
}

// asked is the median of what a contestant's runs asked of a disk.
type asked struct {
	wall, requests, mib, depth, deepest, bound []float64
}

// tellDisks writes what was asked of slow disks.
func tellDisks(w io.Writer, records []record) {
	byCell := map[cell]map[string]*asked{}
	for _, r := range records {
		if r.Disk == nil {
			continue
		}
		if byCell[r.cell] == nil {
			byCell[r.cell] = map[string]*asked{}
		}
		a := byCell[r.cell][r.Contestant]
		if a == nil {
			a = &asked{}
			byCell[r.cell][r.Contestant] = a
		}
		a.wall = append(a.wall, r.Wall)
		a.requests = append(a.requests, float64(r.Disk.Reads+r.Disk.Writes))
		a.mib = append(a.mib, float64(r.Disk.Bytes)/(1<<20))
		a.depth = append(a.depth, r.Disk.Depth)
		a.deepest = append(a.deepest, float64(r.Disk.Deepest))
		a.bound = append(a.bound, r.Wall/r.Disk.Bound)
	}
	if len(byCell) == 0 {
		return
	}
	fmt.Fprintln(w, "\n| disk | contestant | requests | MiB | in flight: mean, most | median s | × bound |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, c := range slices.SortedFunc(maps.Keys(byCell), func(x, y cell) int { return cmp.Compare(x.String(), y.String()) }) {
		for _, name := range slices.Sorted(maps.Keys(byCell[c])) {
			a := byCell[c][name]
			fmt.Fprintf(w, "| %s | %s | %.0f | %.0f | %.1f, %.0f | %.3g | %.2f |\n", c, name, quantile(a.requests, 0.5), quantile(a.mib, 0.5),
				quantile(a.depth, 0.5), quantile(a.deepest, 0.5), quantile(a.wall, 0.5), quantile(a.bound, 0.5))
		}
	}
}
