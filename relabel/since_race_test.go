// SPDX-License-Identifier: Apache-2.0

//go:build linux && race

package relabel

// The race detector makes the histories slow, and is after something else.
func init() { histories = 100 }
