// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// house is the module whose hook is tested; FASTLABEL_HOUSE names another version.
var house = cmp.Or(os.Getenv("FASTLABEL_HOUSE"), "../../..")

// place is what the process builds once for all tests.
var place struct {
	dir     string
	hook    string // the command, as built from the house
	wrapped string // a script that becomes the hook, its stderr in a file
	rootfs  string // what containers see as /; the guest is in it
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "role-guest" { // this program is the process in the container, too
		if err := guest(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "guest:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := treetest.Main(m)
	if err := clearUp(); err != nil {
		fmt.Fprintln(os.Stderr, "runtimes:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// wrapper becomes the hook. The runtime knows the script and not the command,
// so the command does not find the runtime's timeout in config.json.
const wrapper = `#!/bin/sh
exec "$1" hook -v 2>>"$2"
`

// setUp builds the command and the containers' root, at the first need: before
// treetest.Main the process is not yet in its mount namespace.
func setUp(t testing.TB) {
	t.Helper()
	if place.rootfs != "" {
		return
	}
	dir, err := os.MkdirTemp("", "fastlabel-runtimes-")
	treetest.Must(t, err)
	place.dir, place.hook, place.wrapped = dir, filepath.Join(dir, "fastlabel"), filepath.Join(dir, "wrapped")
	rootfs := filepath.Join(dir, "rootfs")
	// What runtimes mount on must be there: containers share this root, and
	// for runc and crun it is read-only.
	for _, name := range []string{"bin", "dev", "etc", "proc", "run", "sys", "tmp", "var", guestVolume, guestWitness} {
		treetest.Must(t, os.MkdirAll(filepath.Join(rootfs, name), 0o755))
	}
	treetest.Must(t, os.WriteFile(place.wrapped, []byte(wrapper), 0o755))
	cmd := exec.Command("go", "build", "-o", place.hook, "./cmd/fastlabel")
	cmd.Dir, cmd.Env = house, append(os.Environ(), "CGO_ENABLED=0")
	treetest.Output(t, cmd)
	// There is no library in the root: this program is static.
	program, err := os.ReadFile("/proc/self/exe")
	treetest.Must(t, err)
	treetest.Must(t, os.WriteFile(filepath.Join(rootfs, guestPath), program, 0o755))
	place.rootfs = rootfs
}
