// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestWithoutProc: in a chroot without /proc each function says so. A runtime must
// not take the volume for one that is gone, or that cannot have labels.
func TestWithoutProc(t *testing.T) {
	treetest.Need(t, "root")
	root := on(t, "tmpfs")
	grow(t, mkdir(t, root, "v"), plain)
	errs := make(map[string]error)
	chroot(t, root, func() {
		const vol = "/v"
		_, errs["Tree"] = Tree(t.Context(), vol, newLabel, nil)
		_, errs["Group"] = new(Group).Tree(t.Context(), vol, newLabel, TrustNothing)
		_, errs["Labelled"] = isLabelled(vol, newLabel, TrustRoot)
		_, errs["Interrupted"] = isInterrupted(vol, newLabel)
		errs["Chcon"] = Chcon(vol, newLabel, true)
		errs["Chcon of one file"] = Chcon(vol+"/f00", newLabel, false)
	})
	for name, err := range errs {
		var at *fs.PathError
		if !errors.As(err, &at) || !strings.HasPrefix(at.Path, "/proc") || !strings.Contains(err.Error(), "no proc filesystem is mounted on /proc") {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v means something else", name, err)
		}
	}
	if n := len(bearing(t, filepath.Join(root, "v"), newLabel)); n != 0 {
		t.Errorf("%d entries are labelled", n)
	}
}
