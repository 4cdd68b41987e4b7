// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

// callable are the words that are commands in front of all PATHs.
func callable(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// nearest returns which of words was perhaps meant by word, "" if none. Short words
// are all near.
func nearest(word string, words []string) string {
	for _, w := range words {
		if min(len(w), len(word)) >= 4 && isSlip(word, w) {
			return w
		}
	}
	return ""
}

// isSlip tells whether at most one letter of b is wrong, missing, too many, or swapped
// with the next in a.
func isSlip(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	swapped := len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
	return len(a) < 2 && len(b) < 2 || swapped
}
