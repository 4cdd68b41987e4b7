// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// image builds a system image with a policy of its own.
func image(t *testing.T) (root string) {
	t.Helper()
	root = filepath.Join(treetest.Fresh(t, "tmpfs"), "image")
	treetest.Build(t, root, treetest.Text(t, `
dir dev
dir proc
dir sys
dir run
dir etc/selinux/mine/contexts/files
dir usr/bin
file usr/bin/x%02d x40
link usr/bin/sh x01
dir srv/data
file srv/data/f
fifo srv/data/pipe
link lib usr/bin
`))
	for name, text := range map[string]string{
		"config":                                      "SELINUXTYPE=mine\n",
		"mine/contexts/customizable_types":            "kept_t\n",
		"mine/contexts/files/file_contexts":           "/.* system_u:object_r:default_t:s0\n/ -d system_u:object_r:root_t:s0\n/dev(/.*)? system_u:object_r:device_t:s0\n/proc -d <<none>>\n/usr/bin(/.*)? system_u:object_r:bin_t:s0\n/usr/bin/x\\d[3-5] -- system_u:object_r:exec_t:s0\n/lib -l system_u:object_r:lib_t:s0\n",
		"mine/contexts/files/file_contexts.subs_dist": "/srv /usr/bin\n",
	} {
		treetest.Must(t, os.WriteFile(filepath.Join(root, "etc/selinux", name), []byte(text), 0o600))
	}
	return root
}

// typed compares the types of entries of an image.
func typed(t *testing.T, root string, types map[string]string) {
	t.Helper()
	labels := treetest.Read(t, root)
	for path, typ := range types {
		if got := labels[path]; got != "system_u:object_r:"+typ+":s0" {
			t.Errorf("%s has %q", path, got)
		}
	}
}

// untouched fails the test if anything but labels is left in an image.
func untouched(t *testing.T, root string) {
	t.Helper()
	if _, err := unix.Lgetxattr(root, "trusted.fastlabel.seal", nil); !errors.Is(err, unix.ENODATA) {
		t.Errorf("an attribute on the top directory: %v", err)
	}
	if in, err := os.ReadDir(filepath.Join(root, "run")); err != nil || len(in) != 0 {
		t.Errorf("in /run: %v, %v", in, err)
	}
}

// TestRestoreconRoot: what is in an image is labelled as if it were /, by its own policy.
func TestRestoreconRoot(t *testing.T) {
	treetest.Need(t, "root", "plain") // the loaded policy is another than the image's
	root := image(t)
	link := filepath.Join(filepath.Dir(root), "link")
	treetest.Must(t, os.Symlink("image", link))
	says(t, 0, "restorecon", "-R", "--root", link, filepath.Join(link, "usr"), root)
	typed(t, root, map[string]string{
		".": "root_t", "dev": "device_t", "sys": "default_t", "usr": "default_t", "usr/bin": "bin_t", "usr/bin/x01": "bin_t", "usr/bin/x04": "exec_t",
		"usr/bin/sh": "bin_t", "lib": "lib_t", "srv": "bin_t", "srv/data/f": "bin_t", "srv/data/pipe": "bin_t", "etc/selinux/config": "default_t",
	})
	untouched(t, root)
	if got := treetest.Read(t, root)["proc"]; strings.Contains(got, ":default_t:") {
		t.Errorf("proc, which is to have none, has %q", got)
	}
	contexts := root + "/etc/selinux/mine/contexts/files/file_contexts"
	for _, c := range []struct {
		code       int
		args, says string
	}{
		{1, "restorecon --root " + root + " " + filepath.Dir(root), ": it does not lie in " + root + ", which is to be taken for /"},
		{1, "restorecon --contexts " + contexts + " --root " + root + "/usr/bin " + root + "/us*", "/usr\": relabel: it does not lie in "},
		{2, "restorecon --root " + root + "/usr " + root + "/usr", "/usr/etc/selinux/targeted/contexts/files/file_contexts\": open: no such file or directory; nothing was begun"},
		{2, "restorecon --root " + root + "/gone " + root, "/gone\": lstat: no such file or directory; nothing was begun"},
		{4, "restorecon -R -n --root / --contexts " + contexts + " " + root + "/usr", ", 42 to write, 1 right, 0 failed, "},
	} {
		expects(t, real(), c.args, c.code, c.says)
	}
	// An absolute link would be one of the host.
	config := filepath.Join(root, "etc/selinux/config")
	treetest.Must(t, os.Rename(config, config+".is"))
	treetest.Must(t, os.Symlink("/etc/hostname", config))
	expects(t, real(), "restorecon --root "+root+" "+root, 2, " leads out of "+root)
}

// TestRestoreconWithoutProc: in a chroot without /proc, as where an image is built, all of it is
// labelled, bare /dev and /proc too.
func TestRestoreconWithoutProc(t *testing.T) {
	treetest.Need(t, "root", "setxattrat")
	root := image(t)
	for _, args := range []string{"-R /", "/usr/bin/x01", "-R /dev /lib /srv/data/pipe"} {
		cmd := exec.Command(os.Args[0], append([]string{"restorecon"}, strings.Fields(args)...)...)
		cmd.Env = append(os.Environ(), "FASTLABEL_TEST_AS=real", "FASTLABEL_TEST_ROOT="+root)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), " 0 failed, ") {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
	untouched(t, root)
	typed(t, root, map[string]string{".": "root_t", "dev": "device_t", "usr/bin/x01": "bin_t", "lib": "lib_t", "srv/data/pipe": "bin_t"})
}

// TestSetfiles: an image gets the labels that it gets by setfiles -r. FASTLABEL_IMAGE is another
// than a small one (make test-image).
func TestSetfiles(t *testing.T) {
	treetest.Need(t, "root", "plain", "setfiles")
	root, kind := os.Getenv("FASTLABEL_IMAGE"), "default"
	if root == "" {
		root, kind = image(t), "mine"
	}
	unlabel := func() {
		err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err == nil {
				err = unix.Lremovexattr(path, treetest.Attr)
			}
			if errors.Is(err, unix.ENODATA) {
				err = nil
			}
			return err
		})
		treetest.Must(t, err)
	}
	contexts := filepath.Join(root, "etc/selinux", kind, "contexts/files/file_contexts")
	unlabel()
	t.Log(says(t, 0, "restorecon", "-R", "-F", "--root", root, root))
	ours := treetest.Read(t, root)
	unlabel()
	cmd := exec.Command("setfiles", "-F", "-r", root, contexts, root)
	treetest.Output(t, cmd)
	t.Logf("setfiles: %v of processor time", cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	if d := treetest.Diff(treetest.Read(t, root), ours); len(d) > 0 {
		t.Errorf("by setfiles it is otherwise: %q", d[:min(20, len(d))])
	}
	if len(ours) < 50 {
		t.Errorf("%d entries", len(ours))
	}
}
