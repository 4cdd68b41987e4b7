// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// allowed matches the rules of deploy/selinux/fastlabel.cil that give the engine's domains
// their rights.
var allowed = regexp.MustCompile(`(?m)^\(allow fastlabel_domain .*\)$`)

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

// installation installs the command $1 and deploy/selinux, as its first lines say, with
// more from the standard input.
const installation = `set -e
mkdir -p ${0%/*}
cp $1 $0
cd $(mktemp -d /root/modules-XXXXXX)
cp /payload/fastlabel.cil .
cat >local.cil
semodule -i fastlabel.cil -i local.cil
restorecon -iRF $0 /run/fastlabel
`

// setUpOnce does so with the domains of the tests.
var setUpOnce = sync.OnceValue(func() error {
	text, err := os.ReadFile("/payload/fastlabel.cil")
	if err != nil {
		return err
	}
	rules := strings.Join(allowed.FindAllString(string(text), -1), "\n") + "\n"
	cmd := exec.Command("sh", "-c", installation, installed, command)
	cmd.Stdin = strings.NewReader(local + newDomain("narrow_t") + newDomain("bare_t") + newDomain("same_user_t") +
		strings.ReplaceAll(rules, "fastlabel_domain", "same_user_t") + entered("fastlabel_t") + entered("container_engine_t"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
})

func setUp(t *testing.T) {
	t.Helper()
	treetest.Must(t, setUpOnce())
}
