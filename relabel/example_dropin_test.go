// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"syscall"

	"github.com/opencontainers/selinux/go-selinux"

	"github.com/fastlabel/fastlabel/relabel"
)

// A runtime relabels a volume that was given with :z or :Z. A volume that has
// no labels is no reason not to start the container.
func ExampleRelabel() {
	const mountLabel = "system_u:object_r:container_file_t:s0:c35,c75"
	shared := false // true for :z
	err := relabel.Relabel("/srv/volumes/web", mountLabel, shared)
	var where *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOTSUP):
		log.Print("the volume has no labels")
	case errors.As(err, &where):
		log.Printf("%s could not be labelled: %v", where.Path, where.Err)
	}
}

// Without a label there is nothing to do, whether SELinux is on or not.
func ExampleRelabel_nothing() {
	fmt.Println(relabel.Relabel("/srv/volumes/web", "", true))
	// Output: <nil>
}

// Label one file, as a command like chcon does.
func ExampleChcon() {
	err := relabel.Chcon("/srv/volumes/web/index.html", "system_u:object_r:container_file_t:s0", false)
	if errors.Is(err, syscall.EPERM) {
		log.Print("it is immutable, or somebody else's: ", err)
	}
}

// What is gone when its turn comes is no error; a tree that is not there is one.
func ExampleChcon_gone() {
	const label = "system_u:object_r:container_file_t:s0"
	fmt.Println(relabel.Chcon("/no/such/volume", label, false))
	fmt.Println(errors.Is(relabel.Chcon("/no/such/volume", label, true), fs.ErrNotExist))
	// Output:
	// <nil>
	// true
}

// Callers of go-selinux find the errors that they know.
func ExampleChcon_errors() {
	err := relabel.Chcon("", "system_u:object_r:container_file_t:s0", true)
	fmt.Println(errors.Is(err, selinux.ErrEmptyPath))
	err = relabel.Chcon("/srv/volumes/web", "container_file_t", true)
	fmt.Println(errors.Is(err, selinux.ErrInvalidLabel), errors.Is(err, relabel.ErrLabel))
	// Output:
	// true
	// true true
}
