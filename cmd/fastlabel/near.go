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

// nearest returns which of words was perhaps meant by word, "" if none: the one
// that is one slip off, or two where the word is long. Short words are all near.
func nearest(word string, words []string) string {
	best, least := "", 3
	for _, w := range words {
		allowed := 1
		if min(len(w), len(word)) > 5 {
			allowed = 2
		}
		if min(len(w), len(word)) < 4 || max(len(w), len(word)) > 64 {
			continue
		}
		if n := slips(word, w); n <= allowed && n < least {
			best, least = w, n
		}
	}
	return best
}

// slips counts the letters that are wrong, missing, too many, or swapped with
// the next, between a and b (the restricted Damerau-Levenshtein distance).
func slips(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			n := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[i-2][j-2]+1)
			}
			rows[i][j] = n
		}
	}
	return rows[len(a)][len(b)]
}
