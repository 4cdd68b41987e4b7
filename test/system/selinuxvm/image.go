// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// recipe is counted up when the code that makes an image changes what it makes.
const recipe = "3"

//go:embed guest
var guest embed.FS

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

// suites are where the kernels are from.
var suites = []Kernel{
	{Suite: "bookworm", Setxattrat: false},
	{Suite: "trixie-backports", Setxattrat: true},
}

// Prepare finds the image in the cache or makes it, in one to three minutes.
// A caller waits while another makes it. say is told what takes long.
func Prepare(ctx context.Context, say func(string)) (*Image, error) {
	if err := able(); err != nil {
		return nil, err
	}
	cache, err := CacheDir("selinuxvm")
	if err != nil {
		return nil, err
	}
	key, err := hashRecipe()
	if err != nil {
		return nil, err
	}
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	dir := filepath.Join(cache, key)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		say("making an image of the machine in " + dir)
		if err := makeImage(ctx, cache, dir); err != nil {
			return nil, fmt.Errorf("make the machine's image: %w", err)
		}
	}
	return openImage(dir)
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

// hashRecipe names the image by what it is made from.
func hashRecipe() (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, recipe, suites, rootSuite, rootPackages, unpacking, modules)
	err := fs.WalkDir(guest, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := guest.ReadFile(path)
		fmt.Fprintln(sum, path, len(text))
		sum.Write(text)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))[:16], err
}

// lock takes a file's lock, which goes with the process if not before.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if err != syscall.EINTR {
			return nil, errors.Join(&fs.PathError{Op: "flock", Path: name, Err: err}, f.Close())
		}
	}
}

// makeImage makes dir, whole or not at all. Its caller holds the cache's lock,
// so what stands there unfinished is nobody's.
func makeImage(ctx context.Context, cache, dir string) (err error) {
	stale, err := filepath.Glob(filepath.Join(cache, "new-*"))
	if err != nil {
		return err
	}
	for _, old := range stale {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	finished := filepath.Join(work, "image")
	if err := os.Mkdir(finished, 0o755); err != nil {
		return err
	}
	mirror, err := findMirror(ctx)
	if err != nil {
		return err
	}

	// Packages of kernels are fetched and unpacked while debootstrap works.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	trees := make([]string, len(suites))
	for i, k := range suites {
		trees[i] = filepath.Join(work, k.Suite)
		wait.Go(func() {
			if err := unpackKernel(ctx, mirror, k.Suite, trees[i]); err != nil {
				cancel(fmt.Errorf("the kernel of %s: %w", k.Suite, err))
			}
		})
	}
	root := filepath.Join(work, "root")
	image := Image{Kernels: append([]Kernel(nil), suites...)}
	if err := makeRoot(ctx, mirror, root, filepath.Join(finished, "root.img")); err != nil {
		cancel(fmt.Errorf("the root: %w", err))
	}
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for i := range image.Kernels {
		k := &image.Kernels[i]
		if k.Release, err = makeKernel(ctx, trees[i], root, filepath.Join(finished, k.Suite)); err != nil {
			return fmt.Errorf("the kernel of %s: %w", k.Suite, err)
		}
	}
	text, err := json.MarshalIndent(image, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(finished, "image.json"), text, 0o644); err != nil {
		return err
	}
	syscall.Sync() // the name must not outlive what it stands for
	return os.Rename(finished, dir)
}

func openImage(dir string) (*Image, error) {
	text, err := os.ReadFile(filepath.Join(dir, "image.json"))
	if err != nil {
		return nil, err
	}
	image := &Image{dir: dir}
	if err := json.Unmarshal(text, image); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return image, nil
}

// run runs a program and gives its stdout; the error has the end of its stderr.
func run(cmd *exec.Cmd) (string, error) {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail(stdout.String()+stderr.String(), 30))
	}
	return stdout.String(), nil
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
