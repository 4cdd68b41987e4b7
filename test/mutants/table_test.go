// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// root is the project's.
const root = "../.."

// TestTable: each entry applies, and names a test that there is. That it builds shows
// TestMutants, or the attack that it is the control of.
func TestTable(t *testing.T) {
	form := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, m := range All() {
		if seen[m.Name] || !form.MatchString(m.Name) {
			t.Errorf("%q: not a name, or not the only one", m.Name)
		}
		seen[m.Name] = true
		if m.Breaks == "" || m.By == "" && m.Inside == "" {
			t.Errorf("%s: it does not say what it breaks, or what it dies by", m.Name)
		}
		if _, err := m.Apply(root); err != nil {
			t.Error(err)
		}
		for _, e := range m.Edits {
			if e.Old == e.New {
				t.Errorf("%s: nothing is changed", m.Name)
			}
		}
		name, dir := m.Test()
		for dir, name := range map[string]string{dir: name, "test/system/selinuxvm/inside": m.Inside} {
			name, _, _ = strings.Cut(name, "/")
			if out, err := exec.Command("grep", "-rqs", "--include=*_test.go", "^func "+name+"(", root+"/"+dir).CombinedOutput(); name != "" && err != nil {
				t.Errorf("%s: there is no test %s in %s: %v %s", m.Name, name, dir, err, out)
			}
		}
	}
}
