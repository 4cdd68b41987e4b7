// SPDX-License-Identifier: Apache-2.0

package exit

import "testing"

// worse is symmetric, knows every code, and 0 is the mildest.
func TestWorse(t *testing.T) {
	mildFirst := []int{Done, Differs, Refused, Failed, Usage, TimedOut, Interrupted, Terminated}
	for i, a := range mildFirst {
		for j, b := range mildFirst {
			if want := mildFirst[max(i, j)]; Worse(a, b) != want {
				t.Errorf("worse(%d, %d) is %d, not %d", a, b, Worse(a, b), want)
			}
		}
	}
}
