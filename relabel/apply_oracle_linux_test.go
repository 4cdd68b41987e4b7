// SPDX-License-Identifier: Apache-2.0

//go:build !race

package relabel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fastlabel/fastlabel/relabel/contexts"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// TestApplyOracle: after Apply libselinux's restorecon would change nothing, and after
// that Apply writes nothing, on trees with labels at random; for the type alone and the
// whole label. What is wrong in the control is seen by both.
func TestApplyOracle(t *testing.T) {
	treetest.Need(t, "root", "plain", "gcc", "ext4")
	oracle := filepath.Join(t.TempDir(), "change")
	if out, err := exec.Command("gcc", "-o", oracle, "../internal/fcontexts/testdata/change.c", "-lselinux").CombinedOutput(); err != nil {
		treetest.Lack(t, "gcc", fmt.Errorf("libselinux1-dev: %w\n%s", err, out))
	}
	root := filepath.Join(treetest.Fresh(t, "ext4"), "tree")
	file := filepath.Join(t.TempDir(), "file_contexts")
	rules := "@(/.*)? " + usrLabel + "\n@/[a-m][^/]* -- " + etcLabel + "\n@/.*/b.* " + tmpLabel + "\n@/.*\\.conf -l " + etcLabel +
		"\n@/c/.* -p " + tmpLabel + "\n@/c/none(/.*)? <<none>>\n@/d -d " + tmpLabel + "\n@/d/a/exact " + etcLabel + "\n@/d/(a|b)/b(/.*)? " + usrLabel + "\n"
	treetest.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(rules, "@", root)), 0o600))
	all, err := contexts.Load(file) // without customizable types: libselinux's list is that of the machine's own policy
	treetest.Must(t, err)
	text := "dir .\n"
	for _, dir := range []string{"", "a/", "c/", "c/none/", "d/", "d/a/", "d/b/", "d/a/b/", "e/", "e/e/"} {
		if dir != "" {
			text += "dir " + strings.TrimSuffix(dir, "/") + "\n"
		}
		for _, name := range []string{"abc", "bcd", "exact", "x.conf", "zzz"} {
			text += "file " + dir + name + "\nlink " + dir + name + ".conf x\nfifo " + dir + "b" + name + "\n"
		}
	}
	treetest.Build(t, root, treetest.Text(t, text))
	paths := slices.Sorted(maps.Keys(treetest.Read(t, root)))
	scramble := func(r *rand.Rand) {
		for _, p := range paths {
			l := []string{usrLabel, etcLabel, tmpLabel, custom, strings.Replace(tmpLabel, "system_u", "root", 1)}[r.IntN(5)]
			treetest.Set(t, root, p, l)
		}
	}
	ask := func(how string) string {
		out, err := exec.Command(oracle, file, how, root).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	for seed := range uint64(4) {
		for how, parts := range map[string]Parts{"type,tree": PartType, "all,tree": 0} {
			r := rand.New(rand.NewPCG(seed, 22))
			scramble(r)
			wrong := int64(strings.Count(ask(how), "\n") - 1)
			checked, err := VerifyApply(t.Context(), root, Rules{Contexts: all, Parts: parts}, nil)
			if err != nil || checked.Written != wrong || wrong < 50 {
				t.Errorf("%s: libselinux would change %d, and Apply %+v, %v", how, wrong, checked, err)
			}
			if _, err := Apply(t.Context(), root, Rules{Contexts: all, Parts: parts}, nil); err != nil {
				t.Fatal(err)
			}
			ours := treetest.Read(t, root)
			if said := ask(how); said != "0\n" {
				t.Errorf("%s: after Apply libselinux would change\n%s", how, said)
			}
			scramble(rand.New(rand.NewPCG(seed, 22)))
			ask(how + ",write")
			if theirs := treetest.Read(t, root); !maps.Equal(ours, theirs) {
				t.Errorf("%s: libselinux wrote other labels", how)
			}
			again, err := Apply(t.Context(), root, Rules{Contexts: struct{ Contexts }{all}, Parts: parts}, nil)
			if err != nil || again.Written != 0 || again.Right+again.Skipped != again.Seen {
				t.Errorf("%s: after libselinux Apply wrote %+v, %v", how, again, err)
			}
		}
	}
}
