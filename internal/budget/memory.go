// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Memory returns the bytes that one run may take for a while beyond what it needs: an eighth of what
// the machine has left, and a quarter of each limit of the control groups that the process is in; 0
// if that is not known. root is that of the filesystem.
func Memory(root fs.FS) int64 {
	memory, _ := fs.ReadFile(root, "proc/meminfo")
	_, line, _ := strings.Cut(string(memory), "MemAvailable:")
	var available int64
	if _, err := fmt.Sscanf(line, "%d kB", &available); err != nil {
		return 0
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	most, known := available<<10/8, false
	for line := range strings.Lines(string(groups)) { // number:controllers:path
		_, line, _ = strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(line, ":")
		top, limit := "sys/fs/cgroup", "memory.max"
		switch controllers {
		case "":
			_, err := fs.Stat(root, "sys/fs/cgroup/cgroup.controllers")
			known = known || err == nil
		case "memory": // version 1
			top, limit = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at := path.Clean("/" + group); ; at = path.Dir(at) {
			text, err := fs.ReadFile(root, path.Join(top, at, limit))
			known = known || err == nil
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // else there is none
				most = min(most, n/4)
			}
			if at == "/" {
				break
			}
		}
	}
	if !known {
		return 0
	}
	return most
}
