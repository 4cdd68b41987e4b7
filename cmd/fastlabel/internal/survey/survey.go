// SPDX-License-Identifier: Apache-2.0

// Package survey reads the labels of a part of a tree, bounded in time and in
// number, and tells from it how large the tree may be and what a read takes. It
// writes nothing, follows no link, and leaves mounts alone.
//
//	survey.go        what is asked, what comes out
//	take_linux.go    the three passes over a tree
//	dir_linux.go     one directory: reached, listed, its labels read
//	size.go          how large the tree may be
package survey

import (
	"cmp"
	"slices"
	"time"
)

// Limits bound a survey. The first that is reached ends it. Zero limits have all
// of the tree read, directory by directory, and nothing drawn.
type Limits struct {
	Time    time.Duration
	Entries int // labels read, and names kept in memory
}

// Sample is what a survey found.
type Sample struct {
	Entries     int64 // labels read, the root's too
	Directories int64 // whose entries were listed
	// Whole says that this was all there is beneath the root, but for mounts,
	// and for what could not be read.
	Whole bool
	// Counted says that all directories were listed, so that the number of
	// entries is known.
	Counted bool
	Labels  []Count // those of the entries beneath the root, the most frequent first
	Others  int64   // entries with labels that are not in Labels: there were too many
	Failed  int64   // entries and directories that could not be read
	First   error   // the first of these

	// Least and Most are how many entries the tree may have, the root too. Most
	// is 0 if nothing bounds it.
	Least, Most int64
	Each        time.Duration // what it took to list and to read one entry, on average
	Elapsed     time.Duration
}

// Count is how many entries bear a label; "" is for those that bear none.
type Count struct {
	Label   string
	Top     int64 // entries of the root
	Beneath int64 // deeper ones
}

// maxLabels is how many labels are told apart: a volume has a few, and a hostile
// one may have as many as entries.
const maxLabels = 1000

// counts counts labels.
type counts struct {
	of     map[string]*Count
	others int64
}

func (c *counts) add(label string, top bool) {
	n := c.of[label]
	if n == nil {
		if len(c.of) == maxLabels {
			c.others++
			return
		}
		n = &Count{Label: label}
		c.of[label] = n
	}
	if top {
		n.Top++
	} else {
		n.Beneath++
	}
}

func (c *counts) list() []Count {
	list := make([]Count, 0, len(c.of))
	for _, n := range c.of {
		list = append(list, *n)
	}
	Sort(list)
	return list
}

// Sort puts the most frequent label first.
func Sort(list []Count) {
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Top+b.Beneath, a.Top+a.Beneath), cmp.Compare(a.Label, b.Label))
	})
}
