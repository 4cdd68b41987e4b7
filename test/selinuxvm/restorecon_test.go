// SPDX-License-Identifier: Apache-2.0

package selinuxvm

import "testing"

// ofRestorecon matches the tests of package inside that change the labels of the whole
// machine. They have machines of their own.
const ofRestorecon = "^TestRestorecon"

// TestRestorecon runs in both kernels those that compare fastlabel restorecon with the
// machine's restorecon.
func TestRestorecon(t *testing.T) {
	runInside(t, "-test.run="+ofRestorecon)
}
