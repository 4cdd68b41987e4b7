// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// right is a permission that deploy/selinux/fastlabel.cil gives the engine. On
// volumes several of its rules give the same one.
type right struct{ on, class, permission string }

func (r right) String() string { return r.on + "/" + r.class + "/" + r.permission }

// onVolumes are the module's names for what lies in volumes, and on the way there.
var onVolumes = []string{"fastlabel_source", "fastlabel_label", "file_type"}

var allowed = regexp.MustCompile(`(?m)^\(allow fastlabel_domain (\S+) \((\S+) \(([^)]*)\)\)\)$`)

// rightsOf lists the permissions of a module, each once.
func rightsOf(module string) []right {
	var all []right
	for _, m := range allowed.FindAllStringSubmatch(module, -1) {
		on := m[1]
		if slices.Contains(onVolumes, on) {
			on = "volume"
		}
		for permission := range strings.FieldsSeq(m[3]) {
			if r := (right{on, m[2], permission}); !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

// without gives the rules of the module to a domain, but for one permission.
func without(module, domain string, lacks right) string {
	var out strings.Builder
	for _, m := range allowed.FindAllStringSubmatch(module, -1) {
		permissions := strings.Fields(m[3])
		if m[2] == lacks.class && (m[1] == lacks.on || lacks.on == "volume" && slices.Contains(onVolumes, m[1])) {
			permissions = slices.DeleteFunc(permissions, func(p string) bool { return p == lacks.permission })
		}
		if len(permissions) > 0 {
			fmt.Fprintf(&out, "(allow %s %s (%s (%s)))\n", domain, m[1], m[2], strings.Join(permissions, " "))
		}
	}
	return out.String()
}

// entered lets the tests start the command in a domain.
func entered(domain string) string {
	return fmt.Sprintf(`
(allow unconfined_t %[1]s (process (noatsecure rlimitinh siginh transition)))
(allow %[1]s unconfined_t (fd (use)))
(allow %[1]s container_file_t (file (append write)))
(allow %[1]s unconfined_t (process (sigchld)))
(allow %[1]s fastlabel_exec_t (file (entrypoint)))
`, domain)
}

// newDomain is one of the tests'.
func newDomain(name string) string {
	return fmt.Sprintf("(type %[1]s)\n(roletype system_r %[1]s)\n(typeattributeset domain (%[1]s))\n", name) + entered(name)
}

// local is what an operator would add to the module, and what the tests need.
const local = `
(typeattributeset fastlabel_source (user_home_t kept_t))

; Nothing may take container_file_t from this one.
(type kept_t)
(roletype object_r kept_t)
(typeattributeset file_type (kept_t))
(typeattributeset non_security_file_type (kept_t))
(validatetrans file (or (neq t1 kept_t) (neq t2 container_file_t)))

; All rights, but for other SELinux users' entries, or other categories.
(typeattributeset mcs_constrained_type (narrow_t))
(typeattributeset fastlabel_domain (narrow_t))
`

// installed is the command where an operator has it.
const installed = "/usr/local/bin/fastlabel"

// confined installs the command and deploy/selinux, as its first lines say, with
// a domain for each right that lacks it. It gives these.
var confined = sync.OnceValues(func() (map[right]string, error) {
	text, err := os.ReadFile("/payload/fastlabel.cil")
	if err != nil {
		return nil, err
	}
	module := string(text)
	more := local + newDomain("narrow_t") + newDomain("bare_t") + newDomain("same_user_t") + without(module, "same_user_t", right{}) +
		entered("fastlabel_t") + entered("container_engine_t")
	domains := map[right]string{}
	for i, r := range rightsOf(module) {
		domains[r] = fmt.Sprintf("lacks_%d_t", i)
		more += newDomain(domains[r]) + without(module, domains[r], r) + fmt.Sprintf("(typeattributeset can_change_object_identity (%s))\n", domains[r])
	}
	dir, err := os.MkdirTemp("/root", "modules-")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(installed), 0o755); err != nil {
		return nil, err
	}
	command, err := os.ReadFile(command)
	if err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{
		filepath.Join(dir, "fastlabel.cil"): text, filepath.Join(dir, "local.cil"): []byte(more), installed: command,
	} {
		if err := os.WriteFile(name, data, 0o755); err != nil {
			return nil, err
		}
	}
	for _, cmd := range []*exec.Cmd{
		exec.Command("semodule", "-i", "fastlabel.cil", "-i", "local.cil"),
		exec.Command("restorecon", "-iRF", installed, "/run/fastlabel"),
	} {
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", cmd, err, out)
		}
	}
	return domains, nil
})

func domains(t *testing.T) map[right]string {
	t.Helper()
	all, err := confined()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
