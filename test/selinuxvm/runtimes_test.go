// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import "testing"

// ofRuntimes matches the tests of package inside that start containers. They
// have machines of their own, for each start takes seconds.
const ofRuntimes = "^TestRuntime"

// TestRuntimes runs in both kernels those that start containers with the
// machine's runc, crun and podman.
func TestRuntimes(t *testing.T) {
	runInside(t, "-test.run="+ofRuntimes)
}
