// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// guest is where the files are that an image is made of and by.
const guest = "../selinuxvm/guest"

// Image is a machine that can be booted with any of its kernels.
type Image struct {
	Kernels []Kernel

	dir string
}

// Kernel is one of an image's kernels.
type Kernel struct {
	Suite      string // Debian's, which has this kernel
	Release    string // as uname -r has it
	Setxattrat bool   // it has the call
}

// Prepare finds the image in the cache or makes it, in one to three minutes.
// A caller waits while another makes it. say is told what takes long.
func Prepare(say func(string)) (*Image, error) {
	if err := able(); err != nil {
		return nil, err
	}
	cache, err := CacheDir("selinuxvm")
	if err != nil {
		return nil, err
	}
	image := &Image{Kernels: []Kernel{{Suite: "bookworm"}, {Suite: "trixie-backports", Setxattrat: true}}}
	if image.dir, err = dirIn(cache); err != nil {
		return nil, err
	}
	if _, err := os.Stat(image.dir); errors.Is(err, fs.ErrNotExist) {
		say("making an image of the machine in " + image.dir)
		args := []string{"-o", filepath.Join(cache, "lock"), "bash", guest + "/image.sh", image.dir}
		for _, k := range image.Kernels {
			args = append(args, k.Suite)
		}
		if err := run(exec.Command("flock", args...)); err != nil {
			return nil, fmt.Errorf("make the machine's image: %w", err)
		}
	}
	for i := range image.Kernels {
		k := &image.Kernels[i]
		release, err := os.ReadFile(filepath.Join(image.dir, k.Suite, "release"))
		if err != nil {
			return nil, err
		}
		k.Release = strings.TrimSpace(string(release))
	}
	return image, nil
}

// dirIn names the image's directory in the cache by what the image is made from.
func dirIn(cache string) (string, error) {
	files, err := filepath.Glob(guest + "/*")
	sum := sha256.New()
	for _, f := range files {
		text, e := os.ReadFile(f)
		err = errors.Join(err, e)
		fmt.Fprintln(sum, f, len(text))
		sum.Write(text)
	}
	return filepath.Join(cache, hex.EncodeToString(sum.Sum(nil))[:16]), err
}

// programs are what an image is made with and booted by.
var programs = []string{
	"apt-cache", "apt-get", "chroot", "debootstrap", "dpkg-deb", "gpgv",
	"mkfs.ext4", "mkfs.xfs", "qemu-system-x86_64", "xz",
}

// able says why this machine cannot make or boot an image.
func able() error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("the machine's programs are for amd64, and this is %s", runtime.GOARCH)
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root, for debootstrap and for labels")
	}
	var missing []string
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing = append(missing, p)
		}
	}
	if missing != nil {
		return fmt.Errorf("not in PATH: %s (make deps-selinux installs them)", strings.Join(missing, ", "))
	}
	return nil
}

// CacheDir makes the directory of that name below FASTLABEL_CACHE, or below fastlabel in
// the user's cache directory.
func CacheDir(name string) (string, error) {
	above := os.Getenv("FASTLABEL_CACHE")
	if above == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w: set FASTLABEL_CACHE", err)
		}
		above = filepath.Join(user, "fastlabel")
	}
	dir := filepath.Join(above, name)
	return dir, os.MkdirAll(dir, 0o755)
}

// run runs a program; the error has the end of what it said.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail(string(out), 30))
	}
	return nil
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
