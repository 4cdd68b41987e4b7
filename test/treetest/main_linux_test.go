// SPDX-License-Identifier: Apache-2.0

package treetest

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

const (
	right = "system_u:object_r:container_file_t:s0"
	wrong = "unconfined_u:object_r:user_home_t:s0"
)
