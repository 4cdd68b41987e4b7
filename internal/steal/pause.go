// SPDX-License-Identifier: Apache-2.0

//go:build !race

package steal

// pause is empty here and inlined away; pause_race.go has the one that pauses.
func pause() {}
