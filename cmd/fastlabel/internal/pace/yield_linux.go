// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// GiveWay makes every thread of the process one that gives way to others: nice
// 19, and I/O when no other process wants any (ioprio_set(2)). Both belong to a
// thread, and a new one has them from the one that made it. So all are gone
// through again until none is new: the thread that made it had them by then.
func GiveWay() error {
	const (
		who  = 1       // IOPRIO_WHO_PROCESS, of one thread
		idle = 3 << 13 // IOPRIO_CLASS_IDLE
		last = 19
	)
	done := map[int]bool{}
	for before := -1; len(done) > before; {
		before = len(done)
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[id] {
				continue
			}
			if _, _, e := syscall.Syscall(syscall.SYS_IOPRIO_SET, who, uintptr(id), idle); e != 0 && !errors.Is(e, syscall.ESRCH) {
				return fmt.Errorf("ioprio_set: %w", e)
			}
			if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, last); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("setpriority: %w", err)
			}
			done[id] = true
		}
	}
	return nil
}
