// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// Past a PATH that stalls the next are done, but not what it takes in.
func TestStall(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a/b", "c", "d"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var did []string
	others := make(chan struct{})
	a := app{tree: func(_ context.Context, root, _ string, o relabel.Options) (relabel.Report, error) {
		if root == "a" {
			o.OnStall([]relabel.HungCall{{Call: "getxattrat", Path: "a/x"}})
			<-others
		}
		mu.Lock()
		defer mu.Unlock()
		if did = append(did, root); len(did) == 2 {
			close(others)
		}
		for range maxListed + 5 { // to be counted at once
			o.OnFailure(errors.New("x"))
		}
		return relabel.Report{Seen: 100, Failed: maxListed + 5}, errors.New("x")
	}}
	got := transcript(a, calls("-v=false a a/b c d"))
	if strings.Join(did, " ") != "c d a" {
		t.Errorf("did %q", did)
	}
	for _, root := range []string{"a", "c", "d"} {
		if !strings.Contains(got, root+": 5 more failures") {
			t.Errorf("%s was not counted:\n%s", root, got)
		}
	}
	if !strings.Contains(got, "2> fastlabel: a: waiting for getxattrat \"a/x\"\n") || strings.Contains(got, "a/b: ") {
		t.Error(got)
	}
}

// A probe that gets no answer holds up neither the others nor the end.
func TestProbeHangs(t *testing.T) {
	a := fake()
	var mu sync.Mutex
	asked := map[string]bool{}
	ctx, cancel := context.WithCancelCause(t.Context())
	a.labelled = func(root, _ string, _ relabel.Depth) (bool, error) {
		mu.Lock()
		asked[root] = true
		mu.Unlock()
		if root == "/hung" {
			<-t.Context().Done()
		}
		cancel(signalled{syscall.SIGTERM})
		return true, nil
	}
	var out, err bytes.Buffer
	var code int
	treetest.Returns(t, "probe", func() { code = a.run(ctx, nil, &out, &err, []string{"probe", "/hung", "/p"}) })
	mu.Lock()
	defer mu.Unlock()
	want := "fastlabel: /hung: waiting for the filesystem\nfastlabel: \"/hung\": the filesystem does not answer\n"
	if code != exitTerminated || !asked["/p"] || out.String() != "/p: labelled: the root has this label; no record of a run\n" || err.String() != want {
		t.Errorf("exit %d, %q, %q", code, out.String(), err.String())
	}
}

// Where a path leads is found without asking a server.
func TestServerOf(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := filepath.EvalSymlinks(".")
	if err == nil {
		here, err = filepath.Abs(here)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"vol/nfs/local", "vol/sub", "other"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"abs": here + "/vol/nfs/x", "rel": "vol/./nfs", "vol/up": "../other", "loop": "loop", "vol/nfs/out": "../../other",
	} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	nfs := here + "/vol/nfs"
	mounts := map[string]string{"/": "ext4", "/proc": "proc", nfs: "nfs4", nfs + "/local": "xfs", here + "/volume": "fuse.sshfs"}
	for path, want := range map[string]struct {
		point string
		any   bool
	}{
		"vol":               {"", true},
		"vol/nfs":           {nfs, true},
		"vol/nfs/":          {nfs, true},
		nfs + "/deep/below": {nfs, true},
		"abs":               {nfs, true},
		"rel/x":             {nfs, true},
		"rel/../sub":        {nfs, true}, // the way goes through it
		"vol/nfs/local":     {nfs, true},
		"vol/nfs/out":       {nfs, true},
		"vol/sub":           {"", false},
		"vol/up":            {"", false},
		"vol/up/../other/.": {"", false},
		"other":             {"", false},
		"nothere/at/all":    {"", false},
		"volume/x":          {here + "/volume", true},
		".":                 {"", true},
		"/":                 {"", true},
		"loop":              {inDoubt, true},
		"/proc/self/root/x": {inDoubt, true},
		"/proc/self/status": {"", false},
	} {
		if point, any := serverOf(mounts, path); point != want.point || any != want.any {
			t.Errorf("%s: %q, %v", path, point, any)
		}
	}
	if point, _ := serverOf(map[string]string{"/": "nfs", "/var": "ext4"}, "/var/../etc"); point != "/" {
		t.Errorf("a served root: %q", point)
	}
	if point, _ := serverOf(map[string]string{"/": "fuseblk"}, "/"); point != "/" {
		t.Errorf("the root: %q", point)
	}
}
