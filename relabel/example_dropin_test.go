// SPDX-License-Identifier: Apache-2.0

package relabel_test

import (
	"errors"
	"io/fs"
	"log"
	"syscall"

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

// Label one file, as a command like chcon does.
func ExampleChcon() {
	err := relabel.Chcon("/srv/volumes/web/index.html", "system_u:object_r:container_file_t:s0", false)
	if errors.Is(err, syscall.EPERM) {
		log.Print("it is immutable, or somebody else's: ", err)
	}
}
