// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// verdict is what a root is worth after the power came back.
type verdict int

const (
	trustedNew  verdict = iota // and all beneath it has the new label
	trustedOld                 // and all beneath it has the old label
	sealed                     // it is trusted for nothing
	falseNew                   // it says new, and something beneath does not
	falseOld                   // it says old, and something beneath does not
	damaged                    // entries are missing, or cannot be read
	unmountable                // the filesystem was not to be had any more
	verdicts
)

var verdictNames = [verdicts]string{"new", "old", "sealed", "false new", "false old", "damaged", "unmountable"}

func (v verdict) String() string { return verdictNames[v] }

func (v verdict) isBad() bool { return v >= falseNew }

// tally counts points.
type tally struct {
	points   int
	verdicts [verdicts]int
	undone   int // of them, after the command's end, and yet not new
}

func (s *tally) add(v verdict, undone bool) {
	s.points++
	s.verdicts[v]++
	if undone {
		s.undone++
	}
}

func (s *tally) false() int { return s.verdicts[falseNew] + s.verdicts[falseOld] }

// lost are points at which the filesystem itself was.
func (s *tally) lost() int { return s.verdicts[unmountable] + s.verdicts[damaged] }

func (s *tally) String() string {
	var b strings.Builder
	for v, n := range s.verdicts[:unmountable] {
		if n > 0 {
			fmt.Fprintf(&b, "%d %s, ", n, verdict(v))
		}
	}
	fmt.Fprintf(&b, "%d unmountable, %d undone after exit 0", s.verdicts[unmountable], s.undone)
	return b.String()
}

// point is what was found after a power loss.
type point struct {
	verdict verdict
	found   string
}

// look brings the power back, and reads all labels: it mounts what is left, as a boot
// does.
func (g *ground) look(t *testing.T, left pages, ask bool) point {
	t.Helper()
	image := filepath.Join(g.scratch, "left")
	left.write(t, image, g.size())
	defer os.Remove(image)
	if len(g.fsck) > 0 {
		out, err := exec.Command(g.fsck[0], append(g.fsck[1:], image)...).CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: it mended something
			return point{unmountable, string(out)}
		}
	}
	dir, err := g.mount(image, false)
	if err != nil {
		return point{unmountable, err.Error()}
	}
	defer g.unmount(t)
	root := filepath.Join(dir, "root")
	labels, err := readLabels(root)
	if err != nil {
		return point{damaged, err.Error()}
	}
	if ask {
		g.ask(t, root, labels["."])
	}
	return g.judge(labels)
}

// ask has the command itself read the root.
func (g *ground) ask(t *testing.T, root, label string) {
	t.Helper()
	want := 0
	if label != newLabel || claimed(root) {
		want = 4
	}
	if code := exitCode(t, exec.Command(fastlabel(t), "probe", "-q", "--label", newLabel, root)); code != want {
		t.Errorf("the root has %q, and probe exits %d", label, code)
	}
}

// readLabels reads root and everything beneath it; errors are findings.
func readLabels(root string) (map[string]string, error) {
	out := map[string]string{}
	buf := make([]byte, 256)
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		n, err := unix.Lgetxattr(p, treetest.Attr, buf)
		switch err {
		case nil:
			out[rel] = strings.TrimSuffix(string(buf[:n]), "\x00")
		case unix.ENODATA:
			out[rel] = treetest.None
		default:
			return &fs.PathError{Op: "lgetxattr", Path: p, Err: err}
		}
		return nil
	})
	return out, err
}

func (g *ground) judge(labels map[string]string) point {
	root, wrong := labels["."], 0
	example := ""
	for p, label := range labels {
		if label != root {
			wrong++
			example = p + " " + label
		}
	}
	found := fmt.Sprintf("root %s; %d of %d entries have others, such as %s", root, wrong, len(labels), example)
	switch {
	case len(labels) != g.entries:
		return point{damaged, fmt.Sprintf("%d entries of %d; %s", len(labels), g.entries, found)}
	case root == newLabel && wrong > 0:
		return point{falseNew, found}
	case root == newLabel:
		return point{trustedNew, found}
	case root == oldLabel && wrong > 0:
		return point{falseOld, found}
	case root == oldLabel:
		return point{trustedOld, found}
	}
	return point{sealed, found}
}

// keep leaves a violation's image behind, for the run that made it cannot be
// had again: go test -artifacts.
func (g *ground) keep(t *testing.T, left pages, where string) {
	t.Helper()
	left.write(t, filepath.Join(t.ArtifactDir(), strings.ReplaceAll(where, " ", "-")+".img"), g.size())
}
