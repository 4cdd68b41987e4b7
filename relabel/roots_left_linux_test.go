// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestLeftAlone holds what the options say to leave against what is labelled.
func TestLeftAlone(t *testing.T) {
	for engine, m := range engines() {
		for _, c := range []struct {
			name    string
			exclude []string
			one     bool
			left    []string // named by Trace.Skip
			same    []string // not labelled
		}{
			{"nothing", nil, false, nil, nil},
			{"one filesystem", nil, true, []string{"m"}, []string{"m", "m/in"}},
			{"directory", []string{"d"}, false, []string{"d"}, []string{"d", "d/f", "d/e", "d/e/f"}},
			{"by another name", []string{"d/e/../../d/../d/e"}, false, []string{"d/e"}, []string{"d/e", "d/e/f"}},
			{"file", []string{"d/f"}, false, []string{"d/f"}, []string{"d/f"}},
			{"mountpoint", []string{"m"}, false, []string{"m"}, []string{"m", "m/in"}},
			{"in a mount", []string{"m/in"}, false, []string{"m/in"}, []string{"m/in"}},
		} {
			t.Run(engine+" "+c.name, func(t *testing.T) {
				root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+`
dir .
dir d
file d/f
dir d/e
file d/e/f
dir m
mount m tmpfs
file m/in
`)
				treetest.Set(t, root, "m", oldLabel)
				o := Options{OneFilesystem: c.one}
				for _, p := range c.exclude {
					o.Exclude = append(o.Exclude, root+"/"+p)
				}
				left, told := map[string]string{}, 0
				o.Trace = &Trace{Skip: func(path, why string) { left[path] = why; told++ }}
				r, err := tree(t.Context(), root, newLabel, o, as(m))
				adds(t, r)
				if err != nil || !r.Complete || r.Skipped != int64(len(c.left)) || told != len(c.left) {
					t.Errorf("%+v, %v, %v", r, err, left)
				}
				want := treetest.Read(t, root)
				for p := range want {
					want[p] = newLabel
				}
				for _, p := range c.same {
					want[p] = oldLabel
				}
				if d := treetest.Diff(want, treetest.Read(t, root)); len(d) > 0 {
					t.Errorf("wanted and found:\n%s", lines(d))
				}
				for _, p := range c.left {
					if left[filepath.Join(root, p)] == "" {
						t.Errorf("%s is not named: %v", p, left)
					}
				}
			})
		}
	}
}

// TestExcludeUnknown: an exclusion that is nothing must not go unnoticed, nor
// stand for the working directory; nor may it be told as a root that is gone.
func TestExcludeUnknown(t *testing.T) {
	root := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir d\nfile d/f\n")
	t.Chdir(filepath.Join(root, "d"))
	before := treetest.Snapshot(t, root+"/...")
	for _, p := range []string{"none", root + "/none/d", "", "d\x00"} {
		r, err := Tree(t.Context(), root, newLabel, &Options{Exclude: []string{p}})
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "exclude "+p+": ") || r.Seen != 0 {
			t.Errorf("exclude %q: %+v, %v", p, r, err)
		}
		if d := treetest.Diff(before, treetest.Snapshot(t, root+"/...")); len(d) > 0 {
			t.Errorf("exclude %q:\n%s", p, lines(d))
			return
		}
	}
}

// TestExcludedRoot: an exclusion that is the root, or holds it, is an error.
func TestExcludedRoot(t *testing.T) {
	treetest.Need(t, "root")
	dir := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir d/e\nfile d/e/f\nfile g\ndir bound\n")
	bind(t, filepath.Join(dir, "d"), filepath.Join(dir, "bound"))
	for root, exclude := range map[string]string{
		"d": "d", "d/e": "d", "d/e/f": "d/e/f", "d/e/../e": ".", "g": ".", "bound": "d", "bound/e": "bound",
	} {
		before := treetest.Snapshot(t, dir+"/...")
		r, err := Tree(t.Context(), dir+"/"+root, newLabel, &Options{Exclude: []string{filepath.Join(dir, exclude)}})
		if err == nil || r.Complete || r.Seen != 0 || pathOf(err) != dir+"/"+root {
			t.Errorf("%s without %s: %+v, %v", root, exclude, r, err)
		}
		if d := treetest.Diff(before, treetest.Snapshot(t, dir+"/...")); len(d) > 0 {
			t.Errorf("%s without %s:\n%s", root, exclude, lines(d))
		}
	}
	for root, exclude := range map[string]string{"d": "g", "g": "d", "d/e": "d/e/f"} { // the control
		if r, err := Tree(t.Context(), dir+"/"+root, newLabel, &Options{Exclude: []string{filepath.Join(dir, exclude)}}); err != nil || r.Seen == 0 {
			t.Errorf("%s without %s: %+v, %v", root, exclude, r, err)
		}
	}
}

// TestExcludeOtherDevice: a btrfs subvolume and a file of an overlay have a
// device number that is not their mount's.
func TestExcludeOtherDevice(t *testing.T) {
	t.Run("btrfs", func(t *testing.T) {
		treetest.Need(t, "btrfs")
		root := mkdir(t, on(t, "btrfs"), "root")
		sub := filepath.Join(root, "sub")
		btrfsSubvolume(t, "create", sub)
		excludes(t, root, sub)
	})
	t.Run("overlay", func(t *testing.T) {
		treetest.Need(t, "overlay")
		dir, lower := on(t, "tmpfs"), on(t, "ext4")
		root := mkdir(t, dir, "root")
		file := filepath.Join(root, "file")
		writeFile(t, filepath.Join(lower, "file"))
		data := "lowerdir=" + lower + ",upperdir=" + mkdir(t, dir, "up") + ",workdir=" + mkdir(t, dir, "work")
		mounted(t, "overlay", root, data)
		excludes(t, root, file)
	})
}

func excludes(t *testing.T, root, path string) {
	t.Helper()
	before := treetest.Snapshot(t, path+"/...")
	r, err := Tree(t.Context(), root, newLabel, &Options{Exclude: []string{path}})
	if err != nil || r.Skipped != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if d := treetest.Diff(before, treetest.Snapshot(t, path+"/...")); len(d) > 0 {
		t.Errorf("an exclusion was labelled:\n%s", lines(d))
	}
}

func btrfsSubvolume(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("btrfs", append([]string{"subvolume"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestReadOnlySubvolume: a snapshot that is read-only by itself is named and left
// alone as a read-only mount is; if its top is right, what is wrong in it is. A
// root that lies in one fails, as on a read-only filesystem.
func TestReadOnlySubvolume(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	dir := on(t, "btrfs")
	source := filepath.Join(dir, "source")
	btrfsSubvolume(t, "create", source)
	root := grow(t, dir, "default label="+oldLabel+"\ndir .\ndir d\nfile d/f%02d x40\nfile f%02d x40\n")
	treetest.Build(t, filepath.Join(source, "tree"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f\ndir d\nfile d/in\n"))
	snap := filepath.Join(root, "d/snap")
	for name, c := range map[string]struct {
		right, left []string
		dry         bool // a dry run says the same
	}{
		"wrong":             {nil, []string{"."}, true},
		"right at the top":  {[]string{".", "tree"}, []string{"tree/d", "tree/f"}, false},
		"right but for one": {[]string{".", "tree", "tree/d", "tree/f"}, []string{"tree/d/in"}, false},
		"right":             {[]string{".", "tree", "tree/d", "tree/f", "tree/d/in"}, nil, true},
	} {
		for _, p := range []string{".", "tree", "tree/d", "tree/f", "tree/d/in"} {
			treetest.Set(t, source, p, oldLabel)
		}
		for _, p := range c.right {
			treetest.Set(t, source, p, newLabel)
		}
		btrfsSubvolume(t, "snapshot", "-r", source, snap)
		before := treetest.Snapshot(t, snap+"/...")
		var want []string
		for _, l := range c.left {
			want = append(want, filepath.Join(snap, l))
		}
		for engine, m := range engines() {
			for o, options := range map[string]Options{"": {}, "exact": {Exact: true}, "counted": {HardLinks: LinksSkip}, "dry": {}} {
				dry := o == "dry"
				if dry && !c.dry {
					continue
				}
				for p := range treetest.Read(t, root) {
					if !strings.HasPrefix(p, "d/snap") {
						treetest.Set(t, root, p, oldLabel)
					}
				}
				at := fmt.Sprintf("%s, %s %s", name, engine, o)
				named := map[string]string{}
				options.Trace = &Trace{Skip: func(path, why string) { named[path] = why }}
				r, err := tree(t.Context(), root, newLabel, options, inner{can: &m, dry: dry})
				adds(t, r)
				if err != nil || r.Complete == dry || r.Skipped != int64(len(want)) {
					t.Errorf("%s: %+v, %v", at, r, err)
				}
				if got := slices.Sorted(maps.Keys(named)); !slices.Equal(got, want) {
					t.Errorf("%s: named %v, want %v", at, got, want)
				}
				if !dry && (labelOf(t, root) != newLabel || labelOf(t, root+"/d/f39") != newLabel) {
					t.Errorf("%s: the rest is not labelled", at)
				}
			}
		}
		if d := treetest.Diff(before, treetest.Snapshot(t, snap+"/...")); len(d) > 0 {
			t.Errorf("%s: the snapshot changed:\n%s", name, lines(d))
		}
		r, err := Tree(t.Context(), snap, newLabel, nil)
		if right := len(want) == 0; right != (err == nil) || !right && !errors.Is(err, syscall.EROFS) || r.Complete != right {
			t.Errorf("%s: as the root: %+v, %v", name, r, err)
		}
		btrfsSubvolume(t, "delete", snap)
	}
}

// TestSnapshotStub: where a subvolume lay in what a snapshot was made of, the snapshot has an
// empty directory that can have no label, for ever. It is skipped and named, once, and the rest
// is done.
func TestSnapshotStub(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	dir := on(t, "btrfs")
	source, root := filepath.Join(dir, "source"), filepath.Join(dir, "tree")
	btrfsSubvolume(t, "create", source)
	treetest.Build(t, filepath.Join(source, "d"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f%02d x40\n"))
	stubs := []string{"d/stub", "stub"}
	for _, at := range stubs {
		btrfsSubvolume(t, "create", filepath.Join(source, at))
	}
	btrfsSubvolume(t, "snapshot", source, root)
	for engine, m := range engines() {
		for how, c := range map[string]struct {
			o     Options
			dry   bool
			rules Rules
		}{
			"":         {o: Options{}},
			"exact":    {o: Options{Exact: true}},
			"counted":  {o: Options{HardLinks: LinksSkip}},
			"dry":      {dry: true},
			"listed":   {o: Options{Trace: &Trace{Change: func(string, string, string) {}}}},
			"contexts": {rules: Rules{Contexts: contextsFor(t, root, "@(/.*)? "+newLabel+"\n")}},
			"types":    {rules: Rules{Contexts: contextsFor(t, root, "@(/.*)? "+newLabel+"\n"), Parts: PartType}},
			"parts":    {rules: Rules{Label: newLabel, Parts: PartType}},
		} {
			for _, p := range []string{".", "d", "d/f00", "d/f39"} {
				treetest.Set(t, root, p, oldLabel)
			}
			named := map[string]int{}
			if c.o.Trace == nil {
				c.o.Trace = new(Trace)
			}
			c.o.Trace.Skip = func(path, _ string) { named[strings.TrimPrefix(path, root+"/")]++ }
			var r Report
			var err error
			if c.rules.Label == "" && c.rules.Contexts == nil {
				r, err = tree(t.Context(), root, newLabel, c.o, inner{can: &m, dry: c.dry})
			} else {
				r, err = apply(t.Context(), root, c.rules, c.o, inner{can: &m, dry: c.dry})
			}
			adds(t, r)
			if err != nil || r.Complete == c.dry || r.Skipped != 2 || len(named) != 2 || named["stub"] != 1 || named["d/stub"] != 1 {
				t.Errorf("%s, %s: %+v, %v, named %v", engine, how, r, err, named)
			}
			if !c.dry && c.rules.Parts == 0 && (labelOf(t, root) == oldLabel || labelOf(t, root+"/d/f39") == oldLabel) {
				t.Errorf("%s, %s: not labelled", engine, how)
			}
		}
	}
	if _, err := Tree(t.Context(), root, newLabel, nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range []Skip{SkipRoot, SkipTop} {
		if is, err := Inspect(root, newLabel, s); !is.Labelled || err != nil {
			t.Errorf("%+v, %v", is, err)
		}
	}
	if _, err := Tree(t.Context(), root+"/stub", newLabel, nil); !errors.Is(err, syscall.ENOTSUP) {
		t.Errorf("the stub itself: %v", err)
	}
}

// TestOneFilesystemSubvolumes: a subvolume of btrfs has a device number of its own, by which
// find -xdev and cp -x stop too.
func TestOneFilesystemSubvolumes(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	root := filepath.Join(on(t, "btrfs"), "tree")
	btrfsSubvolume(t, "create", root)
	treetest.Build(t, filepath.Join(root, "d"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f%02d x40\n"))
	for _, at := range []string{"sub", "d/sub"} {
		btrfsSubvolume(t, "create", filepath.Join(root, at))
		treetest.Build(t, filepath.Join(root, at, "in"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f\n"))
	}
	for engine, m := range engines() {
		for _, one := range []bool{true, false} {
			for how, o := range map[string]Options{"": {}, "counted": {HardLinks: LinksSkip}, "rules": {}} {
				for p := range treetest.Read(t, root) {
					treetest.Set(t, root, p, oldLabel)
				}
				named := map[string]int{}
				o.OneFilesystem, o.Trace = one, &Trace{Skip: func(path, _ string) { named[strings.TrimPrefix(path, root+"/")]++ }}
				var r Report
				var err error
				if how == "rules" {
					r, err = apply(t.Context(), root, Rules{Contexts: contextsFor(t, root, "@(/.*)? "+newLabel+"\n")}, o, as(m))
				} else {
					r, err = tree(t.Context(), root, newLabel, o, as(m))
				}
				adds(t, r)
				want, within := map[string]int{}, r.Label
				if one {
					want, within = map[string]int{"sub": 1, "d/sub": 1}, oldLabel
				}
				if err != nil || !r.Complete || !maps.Equal(named, want) || r.Skipped != int64(len(want)) {
					t.Errorf("%s, %t, %s: %+v, %v, named %v", engine, one, how, r, err, named)
				}
				if got := labelOf(t, root+"/d/sub/in/f"); how != "rules" && got != within || labelOf(t, root+"/d/f39") == oldLabel || one && labelOf(t, root+"/sub") != oldLabel {
					t.Errorf("%s, %t, %s: in the subvolume %s", engine, one, how, got)
				}
			}
		}
	}
}

// TestReadOnlySubvolumeOfRoot: the entries of the root are read twice, and what is
// skipped among them is named and counted once. So it is where it is mounted.
func TestReadOnlySubvolumeOfRoot(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	dir := on(t, "btrfs")
	source := filepath.Join(dir, "source")
	btrfsSubvolume(t, "create", source)
	for name, of := range map[string]func(root, at string){
		"directory": func(root, at string) { btrfsSubvolume(t, "snapshot", "-r", source, at) },
		"mount": func(root, at string) {
			btrfsSubvolume(t, "snapshot", "-r", source, filepath.Join(dir, "snap"))
			bind(t, filepath.Join(dir, "snap"), mkdir(t, at))
		},
	} {
		root := filepath.Join(dir, name)
		treetest.Build(t, root, treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f\n"))
		at := filepath.Join(root, "at")
		of(root, at)
		for engine, m := range engines() {
			treetest.Set(t, root, ".", oldLabel)
			told := 0
			r, err := tree(t.Context(), root, newLabel, Options{Trace: &Trace{Skip: func(path, _ string) {
				if told++; path != at {
					t.Errorf("%s: named %s", engine, path)
				}
			}}}, as(m))
			adds(t, r)
			if err != nil || !r.Complete || told != 1 || r.Skipped != 1 || r.Seen != 3 {
				t.Errorf("%s, %s: %+v, %v, told %d times", name, engine, r, err, told)
			}
		}
	}
}
