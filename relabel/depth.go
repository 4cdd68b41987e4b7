// SPDX-License-Identifier: Apache-2.0

package relabel

// Depth says how much of a volume Labelled reads.
type Depth int

const (
	// Root reads the root's own label: a commit record (contract point 1).
	Root Depth = iota
	// Top reads the root's label and those of the root's own entries.
	Top
)
