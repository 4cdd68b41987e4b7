// SPDX-License-Identifier: Apache-2.0

package commit

import (
	"os"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }
