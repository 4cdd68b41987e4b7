// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
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

	"github.com/fastlabel/fastlabel/test/system/selinuxvm"
)

// module is one that programs are built from, by its version on the module proxy.
type module struct {
	path, version string
	// staging are the versions of the modules that its go.mod replaces by directories
	// of its own repository, and that are published beside it.
	staging string
	// copied says that its tree is built in a copy, where files can be replaced: go build
	// takes no overlay over the module cache.
	copied bool
	flags  []string
}

var (
	kubernetes = module{
		path: "k8s.io/kubernetes", version: "v1.37.2", staging: "v0.37.2",
		flags: []string{"-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2" +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"},
	}
	etcd       = module{path: "go.etcd.io/etcd/server/v3", version: "v3.7.3", flags: []string{"-ldflags=-s -w"}}
	containerd = module{
		path: "github.com/containerd/containerd/v2", version: "v2.4.2", copied: true,
		flags: []string{"-tags=no_btrfs,no_zfs,no_devmapper,no_aufs", "-ldflags=-s -w -X github.com/containerd/containerd/v2/version.Version=v2.4.2"},
	}
)

// program is one of the cluster's, named like the last part of its package.
type program struct {
	module module
	pkg    string // below the module's path
}

func (p program) name() string {
	if p.pkg == "" {
		return "etcd"
	}
	return filepath.Base(p.pkg)
}

// programs are in the order in which they are built: what is needed first, first.
var programs = []program{
	{etcd, ""},
	{containerd, "cmd/containerd"},
	{containerd, "cmd/containerd-shim-runc-v2"},
	{containerd, "cmd/ctr"},
	{kubernetes, "cmd/kube-apiserver"},
	{kubernetes, "cmd/kubectl"},
	{kubernetes, "cmd/kubelet"},
	{kubernetes, "cmd/kube-controller-manager"},
	{kubernetes, "cmd/kube-scheduler"},
}

// cacheName is the directory in which what was built is kept. It may be deleted at any
// time.
const cacheName = "cluster"

// Build gives the file of each program, built now unless the cache has it. say is told
// what takes long.
func Build(ctx context.Context, say func(string)) (map[string]string, error) {
	cache, err := selinuxvm.CacheDir(cacheName)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, p := range programs {
		dir := filepath.Join(cache, p.module.key())
		file := filepath.Join(dir, "bin", p.name())
		files[p.name()] = file
		if _, err := os.Stat(file); err == nil {
			continue
		}
		say("building " + file)
		tree, err := p.module.tree(ctx, dir)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := p.build(ctx, tree, file); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// key names the directory of a module's programs by all that they are made from.
func (m module) key() string {
	sum := sha256.Sum256(fmt.Append(nil, m, runtime.Version()))
	return strings.ReplaceAll(m.path, "/", "-") + "@" + m.version + "-" + hex.EncodeToString(sum[:4])
}

// tree is a directory in which go build builds the module's packages: a copy of the
// module, or a module that requires it, made at the first need.
func (m module) tree(ctx context.Context, dir string) (string, error) {
	tree := filepath.Join(dir, "tree")
	if _, err := os.Stat(tree); !errors.Is(err, fs.ErrNotExist) {
		return tree, err
	}
	var from struct{ Dir, GoMod string }
	if err := goJSON(ctx, "", &from, "mod", "download", "-json", m.path+"@"+m.version); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return "", err
	}
	if m.copied {
		err = os.CopyFS(made, os.DirFS(from.Dir))
	} else {
		err = m.wrap(ctx, from.GoMod, made)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(made))
	}
	return tree, os.Rename(made, tree)
}

// wrap writes a go.mod that requires the module. What the module's own go.mod replaces
// counts only where it is the main module, so it is said again.
func (m module) wrap(ctx context.Context, goMod, dir string) error {
	var own struct {
		Go      string
		Godebug []struct{ Key, Value string }
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := goJSON(ctx, "", &own, "mod", "edit", "-json", goMod); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "module wrapper\n\ngo %s\n", own.Go)
	for _, g := range own.Godebug {
		fmt.Fprintf(&text, "godebug %s=%s\n", g.Key, g.Value)
	}
	fmt.Fprintf(&text, "require %s %s\n", m.path, m.version)
	for _, r := range own.Replace {
		if m.staging != "" && strings.HasPrefix(r.New.Path, "./") {
			fmt.Fprintf(&text, "replace %s => %s %s\n", r.Old.Path, r.Old.Path, m.staging)
		}
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text.String()), 0o644)
}

func (p program) build(ctx context.Context, tree, file string, more ...string) error {
	pkg := p.module.path
	if p.pkg != "" {
		pkg += "/" + p.pkg
	}
	args := append([]string{"build", "-trimpath", "-mod=mod", "-o", file + ".new"}, p.module.flags...)
	if _, err := goRun(ctx, tree, append(append(args, more...), pkg)...); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func goJSON(ctx context.Context, dir string, to any, args ...string) error {
	out, err := goRun(ctx, dir, args...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, to)
}

func goRun(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, stderr.String())
	}
	return out, nil
}
