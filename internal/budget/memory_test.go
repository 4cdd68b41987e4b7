// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
	"testing/fstest"
)

// TestMemoryAtHand: no more than a part of what the machine has left and of the least
// limit above the process; nothing where either is not told.
func TestMemoryAtHand(t *testing.T) {
	const left, v2 = "MemTotal: 9000 kB\nMemAvailable:    8192 kB\n", "sys/fs/cgroup/cgroup.controllers"
	for _, c := range []struct {
		what  string
		files map[string]string
		want  int64
	}{
		{"no limit", map[string]string{"proc/meminfo": left, "proc/self/cgroup": "0::/\n", v2: ""}, 1 << 20},
		{"version 2", map[string]string{
			"proc/meminfo": left, "proc/self/cgroup": "0::/a/b\n", v2: "",
			"sys/fs/cgroup/a/memory.max": "65536\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
		}, 16384},
		{"version 1", map[string]string{
			"proc/meminfo": left, "proc/self/cgroup": "4:memory:/a/b\n3:cpu,cpuacct:/\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "4096\n",
		}, 1024},
		{"above our namespace", map[string]string{
			"proc/meminfo": left, "proc/self/cgroup": "0::/../b\n", v2: "", "sys/fs/cgroup/memory.max": "8192\n",
		}, 2048},
		{"no groups to be seen", map[string]string{"proc/meminfo": left, "proc/self/cgroup": "0::/\n"}, 0},
		{"no list of groups", map[string]string{"proc/meminfo": left, v2: ""}, 0},
		{"an old kernel", map[string]string{"proc/meminfo": "MemFree: 8192 kB\n", "proc/self/cgroup": "0::/\n", v2: ""}, 0},
		{"nothing", nil, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := Memory(root); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}
