// SPDX-License-Identifier: Apache-2.0

//go:build race

package relabel

// The race detector makes these slow, and is after something else.
func init() { histories, few = 100, true }
