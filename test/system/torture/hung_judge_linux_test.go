// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// judge looks at what was said and at what was done.
func (c *hungCell) judge(t testing.TB, text, root string, m *fuseMount, before string) {
	where := filepath.Join(root, c.path)
	about := ""
	for line := range strings.Lines(text) {
		if strings.Contains(line, where) && !strings.Contains(line, `"summary"`) {
			about += strings.ReplaceAll(line, m.dir, "")
		}
	}
	if !strings.Contains(text, where+`"`) && !strings.Contains(text, where+`\"`) && !strings.Contains(text, where+": ") {
		c.wrong["path"] = "not said: " + brief(text)
	}
	if !slices.ContainsFunc(strings.Fields(c.says), func(call string) bool { return strings.Contains(about, call) }) {
		c.wrong["call"] = "not said: " + brief(about)
	}
	if c.json {
		if what := summaryWrong(text, root, c.code); what != "" {
			c.wrong["json"] = what
		}
	}
	if n := differing(t, before, newLabel); n > 0 {
		c.wrong["rest"] = fmt.Sprintf("the PATH before: %d differ", n)
	}
	if c.rest == "" {
		return
	}
	var left []string
	behind := map[string]bool{} // names of the directory in which the call hangs
	for p, l := range treetest.Read(t, filepath.Join(m.back, "tree")) {
		if l == newLabel || p == "." || p == c.path || strings.HasPrefix(p, c.path+"/") {
			continue
		}
		if within, err := filepath.Rel(filepath.Dir(c.path), p); err == nil && !strings.HasPrefix(within, "..") {
			name, _, _ := strings.Cut(within, "/")
			behind[name] = true
			continue
		}
		left = append(left, p)
	}
	if len(left) > 0 || len(behind) > mostBehind {
		slices.Sort(left)
		c.wrong["rest"] = fmt.Sprintf("%d names of the same directory and %d others left: %s", len(behind), len(left), brief(strings.Join(left, " ")))
	}
}

// mostBehind is how many names a worker keeps beside the one whose call hangs: a piece of
// a directory has 16 on a filesystem with a server.
const mostBehind = 15

func brief(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 300 {
		s = s[:300] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// summaryWrong says what is wrong with the summary of root among JSON lines.
func summaryWrong(text, root string, code int) string {
	for _, s := range summaries(text) {
		if s.Root == root {
			if s.ExitCode != code || s.Complete != (code == 0) {
				return fmt.Sprintf("exit code %d of %+v", code, s)
			}
			return s.wrong()
		}
	}
	return "none"
}

// hungControls runs peers in the same way, under timeout(1); one that is there
// three seconds after that has fallen.
func hungControls(t *testing.T) (fell, ran int) {
	var cells []func() bool
	for _, h := range hangs {
		if h.path == "." || h.call == "getxattr" {
			continue // they may make no such call
		}
		for _, peer := range []string{"go-selinux", "chcon"} {
			cells = append(cells, func() bool { return hungPeer(t, h, peer) })
		}
	}
	if n := pick(6, len(cells), len(cells)); n < len(cells) {
		cells = cells[:n]
	}
	var mu sync.Mutex
	atOnce(8, len(cells), func(i int) {
		bad := cells[i]()
		mu.Lock()
		defer mu.Unlock()
		if ran++; bad {
			fell++
		}
	})
	return fell, ran
}

func hungPeer(t testing.TB, h hang, peer string) bool {
	m := mountFUSE(t)
	defer m.end(t)
	root := hungTree(t, m)
	m.ask(t, "hang %s %s %d deaf", h.call, h.name, h.nth)
	cmd := exec.Command("chcon", "-R", "-h", newLabel, root)
	if peer == "go-selinux" {
		cmd = gochcon(newLabel, root)
	}
	limited := exec.Command("timeout", append([]string{"1", cmd.Path}, cmd.Args[1:]...)...)
	treetest.Check(t, limited.Start())
	ended := make(chan struct{})
	go func() { _ = limited.Wait(); close(ended) }()
	defer func() { m.end(t); <-ended }()
	select {
	case <-ended:
		return false
	case <-time.After(4 * time.Second):
		return true
	}
}
