// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

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

// TestExcludedRoot: an exclusion that is the root, or holds it, or is nothing, is an error, and not
// that of a root that is gone. Nor does it stand for the working directory.
func TestExcludedRoot(t *testing.T) {
	treetest.Need(t, "root")
	dir := grow(t, on(t, "tmpfs"), "default label="+oldLabel+"\ndir .\ndir d/e\nfile d/e/f\nfile g\ndir bound\n")
	bind(t, filepath.Join(dir, "d"), filepath.Join(dir, "bound"))
	t.Chdir(filepath.Join(dir, "d/e"))
	before := treetest.Snapshot(t, dir+"/...")
	for _, c := range [][2]string{
		{"d", "d"}, {"d/e", "d"}, {"d/e/f", "d/e/f"}, {"d/e/../e", "."}, {"g", "."}, {"bound", "d"}, {"bound/e", "bound"}, {"d", "none"}, {"d", "none/d"},
	} {
		root, exclude := dir+"/"+c[0], filepath.Join(dir, c[1])
		r, err := Tree(t.Context(), root, newLabel, &Options{Exclude: []string{exclude}})
		if err == nil || errors.Is(err, fs.ErrNotExist) || r.Complete || r.Seen != 0 {
			t.Errorf("%s without %s: %+v, %v", root, exclude, r, err)
		}
	}
	for _, exclude := range []string{"", "none"} {
		r, err := Tree(t.Context(), dir, newLabel, &Options{Exclude: []string{exclude}})
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "exclude "+exclude+": ") || r.Seen != 0 {
			t.Errorf("exclude %q: %+v, %v", exclude, r, err)
		}
	}
	if d := treetest.Diff(before, treetest.Snapshot(t, dir+"/...")); len(d) > 0 {
		t.Error(lines(d))
	}
	for root, exclude := range map[string]string{"d": "g", "g": "d", "d/e": "d/e/f"} { // the control
		if r, err := Tree(t.Context(), dir+"/"+root, newLabel, &Options{Exclude: []string{filepath.Join(dir, exclude)}}); err != nil || r.Seen == 0 {
			t.Errorf("%s without %s: %+v, %v", root, exclude, r, err)
		}
	}
}

// TestExcludeOnOverlay: a file of an overlay has a device number that is not its mount's.
func TestExcludeOnOverlay(t *testing.T) {
	treetest.Need(t, "overlay")
	dir, lower := on(t, "tmpfs"), on(t, "ext4")
	root := mkdir(t, dir, "root")
	file := filepath.Join(root, "file")
	writeFile(t, filepath.Join(lower, "file"))
	mounted(t, "overlay", root, "lowerdir="+lower+",upperdir="+mkdir(t, dir, "up")+",workdir="+mkdir(t, dir, "work"))
	before := treetest.Snapshot(t, file)
	r, err := Tree(t.Context(), root, newLabel, &Options{Exclude: []string{file}})
	if d := treetest.Diff(before, treetest.Snapshot(t, file)); err != nil || r.Skipped != 1 || len(d) > 0 {
		t.Errorf("%+v, %v\n%s", r, err, lines(d))
	}
}

func btrfsSubvolume(t *testing.T, args ...string) {
	t.Helper()
	treetest.Output(t, exec.Command("btrfs", append([]string{"subvolume"}, args...)...))
}

// TestReadOnlySubvolume: a snapshot that is read-only by itself is named and left
// alone as a read-only mount is; if its top is right, what is wrong in it is. So it is among the
// root's own entries, which are read twice, and where it is mounted. A root that lies in one
// fails, as on a read-only filesystem.
func TestReadOnlySubvolume(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	dir := on(t, "btrfs")
	source := filepath.Join(dir, "source")
	btrfsSubvolume(t, "create", source)
	root := grow(t, dir, "default label="+oldLabel+"\ndir .\ndir d\nfile d/f%02d x40\nfile f%02d x40\ndir bound\n")
	treetest.Build(t, filepath.Join(source, "tree"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f\ndir d\nfile d/in\n"))
	snap, top, bound := filepath.Join(root, "d/snap"), filepath.Join(root, "snap"), filepath.Join(root, "bound")
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
		btrfsSubvolume(t, "snapshot", "-r", source, top)
		treetest.Must(t, unix.Mount(snap, bound, "", unix.MS_BIND, ""))
		before := treetest.Snapshot(t, snap+"/...")
		want := map[string]int{bound: 1} // a mount is skipped as a whole
		for _, l := range c.left {
			want[filepath.Join(snap, l)], want[filepath.Join(top, l)] = 1, 1
		}
		for engine, m := range engines() {
			for o, options := range map[string]Options{"": {}, "exact": {Exact: true}, "counted": {HardLinks: LinksSkip}, "dry": {}} {
				dry := o == "dry"
				if dry && !c.dry {
					continue
				}
				for p := range treetest.Read(t, root) {
					if !strings.Contains(p, "snap") && !strings.HasPrefix(p, "bound") {
						treetest.Set(t, root, p, oldLabel)
					}
				}
				at := fmt.Sprintf("%s, %s %s", name, engine, o)
				named := map[string]int{}
				options.Trace = &Trace{Skip: func(path, _ string) { named[path]++ }}
				r, err := tree(t.Context(), root, newLabel, options, inner{can: &m, dry: dry})
				adds(t, r)
				if err != nil || r.Complete == dry || r.Skipped != int64(len(want)) || !maps.Equal(named, want) {
					t.Errorf("%s: %+v, %v; named %v, want %v", at, r, err, named, want)
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
		if right := len(c.left) == 0; right != (err == nil) || !right && !errors.Is(err, syscall.EROFS) || r.Complete != right {
			t.Errorf("%s: as the root: %+v, %v", name, r, err)
		}
		treetest.Must(t, unix.Unmount(bound, 0))
		btrfsSubvolume(t, "delete", snap, top)
	}
}

// subvolumes runs each way to label on root, a subvolume with a directory d of 40 files, and
// compares what is named with want.
func subvolumes(t *testing.T, root string, o Options, want map[string]int) {
	t.Helper()
	ways := labellings(t)
	ways["dry"] = func(ctx context.Context, root, label string, o Options, in inner) (Report, error) {
		in.dry = true
		return tree(ctx, root, label, o, in)
	}
	ways["types"] = func(ctx context.Context, root, label string, o Options, in inner) (Report, error) {
		return apply(ctx, root, Rules{Label: label, Parts: PartType}, o, in)
	}
	for engine, m := range engines() {
		for how, run := range ways {
			for _, counted := range []HardLinks{LinksLabel, LinksSkip} {
				for _, p := range []string{".", "d", "d/f00", "d/f39"} {
					treetest.Set(t, root, p, oldLabel)
				}
				named := map[string]int{}
				o.HardLinks, o.Trace = counted, &Trace{Skip: func(path, _ string) { named[strings.TrimPrefix(path, root+"/")]++ }}
				r, err := run(t.Context(), root, newLabel, o, inner{can: &m})
				adds(t, r)
				if err != nil || r.Complete == (how == "dry") || r.Skipped != int64(len(want)) || !maps.Equal(named, want) {
					t.Errorf("%s, %s, %d: %+v, %v, named %v", engine, how, counted, r, err, named)
				}
				if how != "dry" && how != "types" && (labelOf(t, root) != newLabel || labelOf(t, root+"/d/f39") != newLabel) {
					t.Errorf("%s, %s, %d: not labelled", engine, how, counted)
				}
			}
		}
	}
}

// TestSnapshotStub: where a subvolume lay in what a snapshot was made of, the snapshot has an
// empty directory that can have no label, for ever. It is skipped and named, once, and the rest
// is done. (With SELinux on, the kernel keeps such a label in memory, and reports success.)
func TestSnapshotStub(t *testing.T) {
	treetest.Need(t, "root", "btrfs", "plain")
	dir := on(t, "btrfs")
	source, root := filepath.Join(dir, "source"), filepath.Join(dir, "tree")
	btrfsSubvolume(t, "create", source)
	treetest.Build(t, filepath.Join(source, "d"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f%02d x40\n"))
	for _, at := range []string{"d/stub", "stub"} {
		btrfsSubvolume(t, "create", filepath.Join(source, at))
	}
	btrfsSubvolume(t, "snapshot", source, root)
	for _, exact := range []bool{false, true} {
		subvolumes(t, root, Options{Exact: exact}, map[string]int{"d/stub": 1, "stub": 1})
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
// find -xdev and cp -x stop too. It can be excluded all the same.
func TestOneFilesystemSubvolumes(t *testing.T) {
	treetest.Need(t, "root", "btrfs")
	root := filepath.Join(on(t, "btrfs"), "tree")
	btrfsSubvolume(t, "create", root)
	treetest.Build(t, filepath.Join(root, "d"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f%02d x40\n"))
	for _, at := range []string{"sub", "d/sub"} {
		btrfsSubvolume(t, "create", filepath.Join(root, at))
		treetest.Set(t, root, at, oldLabel)
		treetest.Build(t, filepath.Join(root, at, "in"), treetest.Text(t, "default label="+oldLabel+"\ndir .\nfile f\n"))
	}
	left := []string{root + "/sub/...", root + "/d/sub/..."}
	before := treetest.Snapshot(t, left...)
	for _, o := range []Options{{OneFilesystem: true}, {Exclude: []string{root + "/sub", root + "/d/sub"}}} {
		subvolumes(t, root, o, map[string]int{"sub": 1, "d/sub": 1})
		if d := treetest.Diff(before, treetest.Snapshot(t, left...)); len(d) > 0 {
			t.Errorf("in the subvolumes:\n%s", lines(d))
		}
	}
	subvolumes(t, root, Options{}, map[string]int{})
	if has := labelOf(t, root+"/d/sub/in/f"); has != newLabel {
		t.Errorf("in the subvolume %s", has)
	}
}
