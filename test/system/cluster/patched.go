// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fastlabel/fastlabel/test/system/selinuxvm"
)

const (
	house    = "../../.."
	optsFile = "internal/cri/opts/spec_linux_opts.go"
	makeFile = "internal/cri/server/container_create.go"
	call     = "label.Relabel(src, mountLabel, false)"
	imported = `"github.com/opencontainers/selinux/go-selinux/label"`
)

//go:embed containerd/group.go.txt
var group string

// change is one in a file of containerd: a text that is there once, and what is there
// in its place.
type change struct{ file, old, new string }

// patchedName is that of the containerd with a relabel.Group in place of go-selinux.
const patchedName = "containerd-group"

// patched are its changes. The options of a container's specification get a context of
// their own, which never ends. With the request's they leave when its deadline comes.
var patched = []change{
	{optsFile, imported, ""},
	{optsFile, call, "volumeLabel(ctx, src, mountLabel)"},
	{makeFile, "c.buildContainerSpec(\n\t\tplatform,", "c.buildContainerSpec(\n\t\tr.ctx,\n\t\tplatform,"},
	{makeFile, ") buildContainerSpec(\n", ") buildContainerSpec(\n\tctx context.Context,\n"},
	{makeFile, "return c.runtimeSpec(id,", "return c.runtimeSpec(ctx, id,"},
	{makeFile, ") runtimeSpec(id string,", ") runtimeSpec(ctx context.Context, id string,"},
	{makeFile, "ctx := util.NamespacedContext()\n\tcontainer :=", "ctx = util.WithNamespace(ctx)\n\tcontainer :="},
}

// apply gives the files of tree that the changes make.
func apply(tree string, changes []change) (map[string]string, error) {
	files := map[string]string{}
	for _, c := range changes {
		if _, is := files[c.file]; !is {
			text, err := os.ReadFile(filepath.Join(tree, c.file))
			if err != nil {
				return nil, err
			}
			files[c.file] = string(text)
		}
		if n := strings.Count(files[c.file], c.old); n != 1 {
			return nil, fmt.Errorf("%s has %q %d times, not once", c.file, c.old, n)
		}
		files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
	}
	return files, nil
}

// BuildPatched builds containerd with the changes in dir, and with the library as it is in
// the working tree.
func BuildPatched(ctx context.Context, dir string) (string, error) {
	cache, err := selinuxvm.CacheDir(cacheName)
	if err != nil {
		return "", err
	}
	tree, err := containerd.tree(ctx, filepath.Join(cache, containerd.key()))
	if err != nil {
		return "", err
	}
	files, err := apply(tree, patched)
	if err != nil {
		return "", err
	}
	files[filepath.Dir(optsFile)+"/fastlabel.go"] = group
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range files {
		to := filepath.Join(dir, patchedName+"-"+filepath.Base(file))
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(tree, file)] = to
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	overlayFile := filepath.Join(dir, patchedName+".json")
	if err := os.WriteFile(overlayFile, text, 0o644); err != nil {
		return "", err
	}
	modFile := filepath.Join(dir, patchedName+".mod")
	for _, ext := range []string{".mod", ".sum"} {
		text, err := os.ReadFile(filepath.Join(tree, "go"+ext))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(strings.TrimSuffix(modFile, ".mod")+ext, text, 0o644); err != nil {
			return "", err
		}
	}
	root, err := filepath.Abs(house)
	if err != nil {
		return "", err
	}
	const library = "github.com/fastlabel/fastlabel"
	if _, err := goRun(ctx, dir, "mod", "edit", "-require="+library+"@v0.0.0", "-replace="+library+"="+root, modFile); err != nil {
		return "", err
	}
	file := filepath.Join(dir, patchedName)
	return file, program{containerd, "cmd/containerd"}.build(ctx, tree, file, "-modfile="+modFile, "-overlay="+overlayFile)
}
