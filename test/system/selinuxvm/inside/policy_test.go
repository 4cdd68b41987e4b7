// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// granted asks the loaded policy for a permission.
func granted(t *testing.T, process, on, class, permission string) bool {
	t.Helper()
	number := func(name string) int {
		text, err := os.ReadFile("/sys/fs/selinux/class/" + class + "/" + name)
		n, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || err2 != nil {
			t.Fatal(name, err, err2)
		}
		return n
	}
	answer, err := asked(t, "access", fmt.Sprintf("%s %s %d", process, on, number("index")))
	treetest.Must(t, err)
	first, _, _ := strings.Cut(answer, " ")
	allowed, err := strconv.ParseUint(first, 16, 32)
	if err != nil {
		t.Fatal(answer, err)
	}
	return allowed>>(number("perms/"+permission)-1)&1 == 1
}

// asked writes a question to a file of the kernel's, and reads the answer; an error is
// the kernel's no.
func asked(t *testing.T, name, question string) (string, error) {
	t.Helper()
	f, err := os.OpenFile("/sys/fs/selinux/"+name, os.O_RDWR, 0)
	treetest.Must(t, err)
	defer f.Close()
	if _, err := unix.Write(int(f.Fd()), []byte(question)); err != nil {
		return "", err
	}
	buf := make([]byte, 4096)
	n, err := unix.Read(int(f.Fd()), buf)
	treetest.Must(t, err)
	return strings.TrimRight(string(buf[:n]), "\x00"), nil
}
