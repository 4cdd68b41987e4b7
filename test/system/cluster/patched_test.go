// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/test/system/selinuxvm"
	"github.com/fastlabel/fastlabel/test/treetest"
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

// buildPatched builds containerd with the changes in dir, and with the library as it is in
// the working tree.
func buildPatched(t *testing.T, dir string) string {
	t.Helper()
	cache, err := selinuxvm.CacheDir(cacheName)
	treetest.Must(t, err)
	tree := containerd.tree(t, filepath.Join(cache, containerd.key()))
	files := map[string]string{filepath.Dir(optsFile) + "/fastlabel.go": group}
	for _, c := range patched {
		if files[c.file] == "" {
			files[c.file] = read(t, filepath.Join(tree, c.file))
		}
		if n := strings.Count(files[c.file], c.old); n != 1 {
			t.Fatalf("%s has %q %d times, not once", c.file, c.old, n)
		}
		files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
	}
	write := func(name, text string) string {
		to := filepath.Join(dir, patchedName+name)
		treetest.Must(t, os.WriteFile(to, []byte(text), 0o644))
		return to
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range files {
		overlay.Replace[filepath.Join(tree, file)] = write("-"+filepath.Base(file), text)
	}
	text, err := json.Marshal(overlay)
	treetest.Must(t, err)
	overlayFile := write(".json", string(text))
	write(".sum", read(t, filepath.Join(tree, "go.sum")))
	modFile := write(".mod", read(t, filepath.Join(tree, "go.mod")))
	root, err := filepath.Abs(house)
	treetest.Must(t, err)
	const library = "github.com/fastlabel/fastlabel"
	goRun(t, dir, "mod", "edit", "-require="+library+"@v0.0.0", "-replace="+library+"="+root, modFile)
	file := filepath.Join(dir, patchedName)
	program{containerd, "cmd/containerd"}.build(t, tree, file, "-modfile="+modFile, "-overlay="+overlayFile)
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	treetest.Must(t, err)
	return string(text)
}
