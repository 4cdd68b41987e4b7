// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A system is a tree like that of a whole machine, with a policy's file contexts for it.
// Contestants have them as the machine's own: in a mount namespace in which /etc/selinux
// is another. There a substitution has the tree looked up as if it were /, as it would
// be on that machine: with the rules moved to where the tree is, libselinux, which goes
// by the first component of a path, would try most of them on each entry.

const (
	// unlabeled is what a wrong label is: of a type that no rule has, and that is not
	// customizable.
	unlabeled = "system_u:object_r:unlabeled_t:s0"
	// common is what the floor writes: the label that most entries have by the rules.
	common = "system_u:object_r:usr_t:s0"
	// contexts is where the namespace has the rules.
	contexts = "/etc/selinux/bench/contexts/files/file_contexts"
)

// asSystem has a command run where these rules are the machine's.
func (b *binaries) asSystem(argv ...string) []string {
	return append([]string{"unshare", "-m", "sh", "-c", `mount --bind "$0" /etc/selinux && exec "$@"`, filepath.Join(b.specs, "selinux")}, argv...)
}

// newSystem puts the rules where asSystem mounts them, for a tree at root, and returns
// which they are.
func (b *binaries) newSystem(root string) (policy string, err error) {
	policy = b.contexts
	if policy == "" {
		if err := run("../test/policy.sh", "../bin/policy"); err != nil {
			return "", err
		}
		policy = "../bin/policy/etc/selinux/default/contexts/files/file_contexts"
	}
	etc := filepath.Join(b.specs, "selinux")
	to := filepath.Join(etc, strings.TrimPrefix(contexts, "/etc/selinux/"))
	if err := errors.Join(os.RemoveAll(etc), os.MkdirAll(filepath.Dir(to), 0o755)); err != nil {
		return policy, err
	}
	// What is compiled counts only if it is not older than the text.
	for _, name := range []string{"", ".homedirs", ".local", ".subs", ".subs_dist", ".bin", ".homedirs.bin", ".local.bin", "/../../customizable_types"} {
		text, err := os.ReadFile(filepath.Clean(policy + name))
		if name != "" && errors.Is(err, fs.ErrNotExist) {
			if name != ".subs" {
				continue
			}
			err = nil
		}
		if name == ".subs" {
			text = fmt.Appendf(text, "\n%s /\n", root)
		}
		if err == nil {
			err = os.WriteFile(filepath.Clean(to+name), text, 0o644)
		}
		if err != nil {
			return policy, err
		}
	}
	return policy, os.WriteFile(filepath.Join(etc, "config"), []byte("SELINUX=permissive\nSELINUXTYPE=bench\n"), 0o644)
}

// prepareSystem brings about the state. The floor gives one label to all, and reads what
// has been labelled by rules.
func (f *field) prepareSystem(c cell) (string, error) {
	switch {
	case c.State == "wrong":
		f.byRules = false
		return common, f.floor("-m", "write", f.root, unlabeled)
	case c.State != "right":
		return "", fmt.Errorf("no such state of a system: %s", c.State)
	case f.byRules:
		return common, nil
	}
	f.byRules = true
	return common, run(f.binaries.asSystem(fastlabel()(f.binaries, c, "", f.root)...)...)
}

// checkSystem sees that setfiles would change nothing after ours, and ours nothing after
// the others.
func (f *field) checkSystem(who contestant) error {
	argv := []string{f.binaries.fastlabel, "restorecon", "-R", "-n", "-v", f.root}
	if strings.HasPrefix(who.name, "fastlabel") {
		argv = []string{"setfiles", "-n", "-v", "-T", "0", contexts, f.root}
	}
	argv = f.binaries.asSystem(argv...)
	said, err := exec.Command(argv[0], argv[1:]...).Output()
	if n := bytes.Count(bytes.ToLower(said), []byte("would relabel ")); n > 0 {
		return fmt.Errorf("%s would change %d: %.300s", strings.Join(argv, " "), n, said)
	}
	return err
}

// bulk is what most entries of a machine are: how many of a hundred directories are such
// ones, and the files in them. @ is a number of its own, # one of few.
var bulk = []struct {
	share     int
	dir, file string
}{
	{14, "usr/share/doc/lib@", "NEWS.@.gz"},
	{6, "usr/share/locale/l#/LC_MESSAGES/d@", "app@.mo"},
	{4, "usr/share/man/l#/man@", "page-@.1.gz"},
	{8, "usr/share/icons/theme#/48x48/c@", "icon-@.png"},
	{4, "usr/share/zoneinfo/r#/z@", "City@"},
	{10, "usr/lib/python3/dist-packages/p#/m@", "mod_@.py"},
	{6, "usr/lib/modules/6.1.0-#-amd64/kernel/drivers/d@", "drv-@.ko.xz"},
	{6, "usr/lib/x86_64-linux-gnu/p#/d@", "lib@.so.1"},
	{3, "usr/lib/firmware/v#/f@", "fw-@.bin"},
	{8, "usr/include/c#/h@", "part@.h"},
	{5, "usr/src/linux-headers-6.1.0-#/include/d@", "cfg@.h"},
	{2, "usr/libexec/p#/d@", "helper-@"},
	{2, "etc/p#/conf.d/d@", "@.conf"},
	{2, "var/lib/dpkg/p#/d@", "pkg@.list"},
	{2, "var/cache/p#/d@", "@.cache"},
	{2, "var/log/p#/d@", "day-@.log"},
	{2, "var/www/site#/d@", "page@.html"},
	{8, "home/user#/src/d@", "file@.go"},
	{3, "home/user#/.cache/d@", "@"},
	{2, "opt/app#/lib/d@", "@.jar"},
	{1, "srv/data#/d@", "@.dat"},
}

// plantSystem is what the rules are about, as far as they name it, for a tenth of the
// entries at most, and then bulk, in directories of lognormal size.
func plantSystem(p *planter, n int) {
	s := system{planter: p, is: map[string]uint32{".": unix.S_IFDIR}}
	for _, i := range p.rand.Perm(len(p.named)) {
		if p.count >= n/10 {
			break
		}
		s.add(p.named[i].path, p.named[i].kind, n)
	}
	for i := 0; !p.full(n); i++ {
		b, share := 0, p.rand.IntN(100)
		for share >= bulk[b].share {
			share -= bulk[b].share
			b++
		}
		dir := strings.NewReplacer("#", fmt.Sprint(i%17), "@", fmt.Sprintf("%x", i)).Replace(bulk[b].dir)
		s.add(dir, unix.S_IFDIR, n)
		for k := range int(math.Exp(1.8 + 1.2*p.rand.NormFloat64())) {
			kind := uint32(unix.S_IFREG)
			if k%10 == 9 {
				kind = unix.S_IFLNK
			}
			s.add(dir+"/"+strings.ReplaceAll(bulk[b].file, "@", fmt.Sprintf("%x", p.rand.Uint32())), kind, n)
		}
	}
}

// system is a tree in the making.
type system struct {
	*planter
	is map[string]uint32
}

// add makes an entry of this kind and the directories above it, unless it is there, or
// something in its way is no directory.
func (s *system) add(path string, kind uint32, n int) {
	if s.full(n) || s.is[path] != 0 {
		return
	}
	above := filepath.Dir(path)
	if s.add(above, unix.S_IFDIR, n); s.full(n) || s.is[above] != unix.S_IFDIR {
		return
	}
	s.is[path] = kind
	switch kind {
	case unix.S_IFDIR:
		s.dir(path)
	case unix.S_IFLNK:
		s.link(path)
	default:
		s.node(path, kind)
	}
}

// named is a path that a rule is about.
type named struct {
	path string
	kind uint32
}

// simplest has for a part of an expression what it matches.
var simplest = strings.NewReplacer(`(/.*)?`, "", `\.`, ".", `\-`, "-", `.*`, "x", `.+`, "x", `[^/]*`, "x", `[^/]+`, "x", `[0-9]+`, "1", `[0-9]*`, "1", `[0-9]`, "1")

// namedBy lists the paths that file contexts are about, but for those of expressions that
// are more than a few common ones.
func namedBy(file string) ([]named, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	kinds := map[string]uint32{
		"-d": unix.S_IFDIR, "-l": unix.S_IFLNK, "-p": unix.S_IFIFO, "-s": unix.S_IFSOCK, "-c": unix.S_IFCHR, "-b": unix.S_IFBLK,
	}
	var list []named
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0][0] != '/' {
			continue
		}
		path := strings.TrimPrefix(simplest.Replace(fields[0]), "/")
		if path == "" || strings.ContainsAny(path, `^$?*+|[({])}\`) {
			continue
		}
		kind := uint32(unix.S_IFREG)
		if k := kinds[fields[1]]; k != 0 {
			kind = k
		} else if strings.HasSuffix(fields[0], "(/.*)?") {
			kind = unix.S_IFDIR
		}
		list = append(list, named{filepath.Clean(path), kind})
	}
	return list, nil
}
