// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/exit"
	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// A real run is told of by the inodes in use on its filesystem.
func TestProgressReal(t *testing.T) {
	treetest.Need(t, "root")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir := treetest.Fresh(t, "ext4")
	var empty syscall.Statfs_t
	treetest.Must(t, syscall.Statfs(dir, &empty))
	reserved := int(empty.Files-empty.Ffree) - int(treetest.Count(t, dir).All) // ext4's own: nine, and with orphan_file ten
	treetest.Build(t, dir, treetest.Text(t, "dir a/b/c\nfile a/f%03d x100\n"))
	all := int(treetest.Count(t, dir).All)
	want := fmt.Sprintf(`"total":%d,"percent":`, all+reserved)
	told := make(chan struct{})
	r, w := io.Pipe()
	a := real()
	a.tree = func(ctx context.Context, root, label string, o *relabel.Options, check bool) (relabel.Report, error) {
		o.Throttle = func(context.Context, int) error { <-told; return nil } // until something was said of it
		return relabel.Tree(ctx, root, label, o)
	}
	var line string
	go func() {
		lines := bufio.NewScanner(r)
		for (!strings.Contains(line, `"total"`) || strings.Contains(line, `"seen":0,`)) && lines.Scan() {
			line = lines.Text()
		}
		close(told)
		_, _ = io.Copy(io.Discard, r)
	}()
	if code := a.run(t.Context(), nil, w, io.Discard, []string{"--json", "-p", "-T2", "-l", "s0:c1", dir}); code != exit.Done {
		t.Errorf("exit %d", code)
	}
	w.Close()
	if <-told; !strings.Contains(line, want) {
		t.Errorf("%s\nnot %s", line, want)
	}
}
