// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

const fileType = "system_u:object_r:container_file_t:"

// makeFiles makes root, with n empty files below it, a thousand in each directory. They
// have the type of what is mounted somewhere, which no container may read.
func makeFiles(t *testing.T, root string, n int) {
	t.Helper()
	treetest.Must(t, os.MkdirAll(root, 0o777))
	treetest.Must(t, syscall.Setxattr(root, "security.selinux", []byte("system_u:object_r:mnt_t:s0\x00"), 0))
	for i := range n {
		dir := filepath.Join(root, fmt.Sprint(i/1000))
		if i%1000 == 0 {
			treetest.Must(t, os.MkdirAll(dir, 0o777))
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		treetest.Must(t, err)
		f.Close()
	}
}

// label is that of a file or a directory, or why there is none.
func label(path string) string {
	var buf [256]byte
	n, err := syscall.Getxattr(path, "security.selinux", buf[:])
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(string(buf[:n]), "\x00")
}

// read counts an entry under each label, and how many beneath root were changed, their
// labels among it, since then.
func read(t *testing.T, root string, since time.Time) (labels map[string]int, changed int) {
	t.Helper()
	labels = map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			return err
		}
		labels[label(path)]++
		if path != root && time.Unix(st.Ctim.Unix()).After(since) {
			changed++
		}
		return nil
	})
	treetest.Must(t, err)
	return labels, changed
}

// holds fails the test unless all of the volume has the label.
func holds(t *testing.T, root, level string) {
	t.Helper()
	if labels, _ := read(t, root, time.Time{}); len(labels) != 1 || labels[fileType+level] == 0 {
		t.Errorf("not all of %s has the level %s: %v", root, level, labels)
	}
}
