// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// The parts of a tree, and the last step.
func TestShardsCommand(t *testing.T) {
	treetest.Need(t, "root")
	t.Chdir(t.TempDir())
	for i := range 12 {
		if err := os.MkdirAll(fmt.Sprint("v/dir", i), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	setLabel(t, "v", "system_u:object_r:etc_t:s0")
	golden(t, "shards", alike(transcript(real(), calls(
		"--shard 0/2 v", "probe v", "--json probe v", "--commit-shards 2 v", "--json --commit-shards 2 v", "--json --shard 1/2 v", "probe v",
		"--commit-shards 2 v", "probe v", "--skip root --shard 1/2 v", "--skip root --commit-shards 2 v",
		"--shard 2/2 v", "--shard 1 v", "--shard 0/33 v", "--commit-shards 33 v", "--shard 0/2 --commit-shards 2 v", "-n --shard 0/2 v",
		"--skip unchanged --shard 0/2 v", "--shard 0/2 v/dir0/..",
		"--no-sync --shard 0/2 v", "--commit-shards 0 v", "--shard 0/2 v v/dir0", "--commit-shards 2 v v/dir0", "--shard 0/2 -f list v",
		"--commit-shards 3 v",
	))))
}
