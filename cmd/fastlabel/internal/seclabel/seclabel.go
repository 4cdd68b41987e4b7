// SPDX-License-Identifier: Apache-2.0

// Package seclabel has the default label, and checks that a label has a level.
package seclabel

import (
	"fmt"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/internal/secctx"
)

// Default is what every container may read and write.
const Default = "system_u:object_r:container_file_t:s0"

// WithLevel is Canonical, and asks for a level: the library takes three fields
// because some policies have no levels, but every host of containers has them,
// and there the kernel would refuse each file.
func WithLevel(label string) (string, error) {
	canonical, err := secctx.Canonical(label)
	if err != nil {
		return "", err
	}
	if strings.Count(canonical, ":") < 3 {
		return "", fmt.Errorf("%s has no level; with the lowest it is %s:s0", words.Brief(canonical), words.Brief(canonical))
	}
	return canonical, nil
}
