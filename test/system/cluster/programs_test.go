// SPDX-License-Identifier: Apache-2.0

package cluster

import (
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
	"testing"

	"github.com/fastlabel/fastlabel/test/system/selinuxvm"
	"github.com/fastlabel/fastlabel/test/treetest"
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

// build gives the file of each program, built now unless the cache has it.
func build(t *testing.T) map[string]string {
	t.Helper()
	cache, err := selinuxvm.CacheDir(cacheName)
	treetest.Must(t, err)
	files := map[string]string{}
	for _, p := range programs {
		dir := filepath.Join(cache, p.module.key())
		file := filepath.Join(dir, "bin", p.name())
		files[p.name()] = file
		if _, err := os.Stat(file); err == nil {
			continue
		}
		say("building " + file)
		treetest.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		p.build(t, p.module.tree(t, dir), file)
	}
	return files
}

// key names the directory of a module's programs by all that they are made from.
func (m module) key() string {
	sum := sha256.Sum256(fmt.Append(nil, m, runtime.Version()))
	return strings.ReplaceAll(m.path, "/", "-") + "@" + m.version + "-" + hex.EncodeToString(sum[:4])
}

// tree is a directory in which go build builds the module's packages: a copy of the
// module, or a module that requires it, made at the first need.
func (m module) tree(t *testing.T, dir string) string {
	t.Helper()
	tree := filepath.Join(dir, "tree")
	if _, err := os.Stat(tree); !errors.Is(err, fs.ErrNotExist) {
		treetest.Must(t, err)
		return tree
	}
	var from struct{ Dir, GoMod string }
	treetest.Must(t, json.Unmarshal(goRun(t, "", "mod", "download", "-json", m.path+"@"+m.version), &from))
	treetest.Must(t, os.MkdirAll(dir, 0o755))
	made, err := os.MkdirTemp(dir, "new-")
	treetest.Must(t, err)
	defer os.RemoveAll(made)
	if m.copied {
		treetest.Must(t, os.CopyFS(made, os.DirFS(from.Dir)))
	} else {
		m.wrap(t, from.GoMod, made)
	}
	treetest.Must(t, os.Rename(made, tree))
	return tree
}

// wrap writes a go.mod that requires the module. What the module's own go.mod replaces
// counts only where it is the main module, so it is said again.
func (m module) wrap(t *testing.T, goMod, dir string) {
	t.Helper()
	var own struct {
		Go      string
		Godebug []struct{ Key, Value string }
		Replace []struct{ Old, New struct{ Path string } }
	}
	treetest.Must(t, json.Unmarshal(goRun(t, "", "mod", "edit", "-json", goMod), &own))
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
	treetest.Must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text.String()), 0o644))
}

func (p program) build(t *testing.T, tree, file string, more ...string) {
	t.Helper()
	pkg := p.module.path
	if p.pkg != "" {
		pkg += "/" + p.pkg
	}
	args := append([]string{"build", "-trimpath", "-mod=mod", "-o", file + ".new"}, p.module.flags...)
	goRun(t, tree, append(append(args, more...), pkg)...)
	treetest.Must(t, os.Rename(file+".new", file))
}

func goRun(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return out
}
