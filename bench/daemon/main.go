// SPDX-License-Identifier: Apache-2.0

// Command daemon is a runtime's day on one node: daemon group|go-selinux SECONDS DIR has 200
// clients ask for the labels of 40 volumes in DIR, two of which have 300,000 files and the others
// 10 to 1,000. One call in four has a deadline, one in eight is cancelled, one in eight wants
// another label; and each second a volume is unmounted, when all who ask for it are stopped, and
// mounted again. It prints what the calls took and what the process did, as a row of a table.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/selinux/go-selinux"
	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/relabel"
)

const (
	clients, small, large = 200, 38, 2
	filesOfLarge          = 300_000
)

// volume is a mount; who asks for its label holds mu for reading, who unmounts it for writing.
type volume struct {
	path  string
	kept  string // the filesystem that is mounted there
	files int
	mu    sync.RWMutex
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "daemon:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: daemon group|go-selinux SECONDS DIR")
	}
	seconds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	way, stop, err := contestant(args[0])
	if err != nil {
		return err
	}
	volumes, err := grow(args[2])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	var all sync.WaitGroup
	times := make([][]time.Duration, clients)
	failed := make([]error, clients)
	for i := range clients {
		all.Go(func() { times[i], failed[i] = client(ctx, volumes, way, rand.New(rand.NewPCG(7, uint64(i)))) })
	}
	var unmounts []time.Duration
	var most usage
	for ctx.Err() == nil {
		time.Sleep(time.Second)
		now, err := used()
		if err != nil {
			return err
		}
		most = usage{max(most.threads, now.threads), max(most.files, now.files), max(most.kib, now.kib)}
		took, err := again(volumes[rand.IntN(len(volumes))], stop)
		if err != nil {
			return err
		}
		unmounts = append(unmounts, took)
	}
	all.Wait()
	var ru unix.Rusage
	if err := errors.Join(errors.Join(failed...), unix.Getrusage(unix.RUSAGE_SELF, &ru)); err != nil {
		return err
	}
	took := slices.Concat(times...)
	slices.Sort(took)
	slices.Sort(unmounts)
	cpu := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	fmt.Printf("%-10s %d calls  p50 %v  p99 %v  CPU %v  unmount p50 %v, longest %v  %d threads  %d files  %d MiB\n", args[0], len(took),
		at(took, 50), at(took, 99), cpu.Round(10*time.Millisecond), at(unmounts, 50), at(unmounts, 100), most.threads, most.files, most.kib>>10)
	return nil
}

func at(d []time.Duration, percent int) time.Duration {
	return d[min(len(d)*percent/100, len(d)-1)].Round(10 * time.Microsecond)
}

// relabelFunc returns when the volume has the label, or when ctx ends.
type relabelFunc func(ctx context.Context, path, label string) error

// contestant returns a way to label, and one to end what is under way on a volume.
func contestant(name string) (relabelFunc, func(path string) error, error) {
	switch name {
	case "group":
		var g relabel.Group
		return func(ctx context.Context, path, label string) error {
				_, err := g.Tree(ctx, path, label, relabel.SkipNone)
				return err
			}, func(path string) error {
				return g.Stop(context.Background(), path)
			}, nil
	case "go-selinux":
		// As in a runtime: the walk cannot be stopped, so who asked leaves it behind.
		return func(ctx context.Context, path, label string) error {
			done := make(chan error, 1)
			go func() { done <- selinux.Chcon(path, label, true) }()
			select {
			case err := <-done:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}, func(string) error { return nil }, nil
	}
	return nil, nil, fmt.Errorf("%s: group or go-selinux", name)
}

// client asks, waits a little, and asks again.
func client(ctx context.Context, volumes []*volume, way relabelFunc, r *rand.Rand) (took []time.Duration, err error) {
	for ctx.Err() == nil {
		i := r.IntN(len(volumes))
		v := volumes[i]
		other := 1000
		if r.IntN(8) == 0 {
			other++
		}
		label := fmt.Sprintf("system_u:object_r:container_file_t:s0:c%d,c%d", i, other)
		most := time.Hour
		if r.IntN(4) == 0 {
			most = time.Duration(1+r.IntN(500)) * time.Millisecond
		}
		call, end := context.WithTimeout(ctx, most)
		if r.IntN(8) == 0 {
			time.AfterFunc(time.Duration(r.IntN(50))*time.Millisecond, end)
		}
		v.mu.RLock()
		begin := time.Now()
		err := way(call, v.path, label)
		took = append(took, time.Since(begin))
		v.mu.RUnlock()
		ended := call.Err() != nil
		end()
		if err != nil && !ended && !errors.Is(err, relabel.ErrStopped) && !errors.Is(err, relabel.ErrOvertaken) {
			return took, err
		}
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	}
	return took, nil
}

// again unmounts a volume when nobody has it open any more, and mounts it again.
func again(v *volume, stop func(string) error) (time.Duration, error) {
	begin := time.Now()
	if err := stop(v.path); err != nil {
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := stop(v.path); err != nil {
		return 0, err
	}
	for {
		err := unix.Unmount(v.path, 0)
		if err == nil {
			break
		} else if err != unix.EBUSY {
			return 0, err
		}
		time.Sleep(time.Millisecond)
	}
	took := time.Since(begin)
	return took, v.mount()
}

func (v *volume) mount() error { return unix.Mount(v.kept, v.path, "", unix.MS_BIND, "") }

// grow makes the volumes; each is mounted, from a tmpfs that stays.
func grow(dir string) (all []*volume, err error) {
	for i := range small + large {
		v := &volume{path: filepath.Join(dir, strconv.Itoa(i)), files: 10 + i*i*990/(small*small)}
		if i >= small {
			v.files = filesOfLarge
		}
		v.kept = v.path + ".kept"
		if err := errors.Join(os.MkdirAll(v.path, 0o755), os.MkdirAll(v.kept, 0o755), unix.Mount("none", v.kept, "tmpfs", 0, "")); err != nil {
			return nil, err
		}
		for n := range v.files {
			sub := filepath.Join(v.kept, strconv.Itoa(n/1000))
			if err := os.MkdirAll(sub, 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(sub, strconv.Itoa(n)), nil, 0o644); err != nil {
				return nil, err
			}
		}
		if err := v.mount(); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

type usage struct{ threads, files, kib int }

// used counts what the process has now.
func used() (u usage, err error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); key == "Threads" || key == "VmRSS" {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				return u, err
			}
			if key == "Threads" {
				u.threads = n
			} else {
				u.kib = n
			}
		}
	}
	open, err := os.ReadDir("/proc/self/fd")
	u.files = len(open)
	return u, err
}
