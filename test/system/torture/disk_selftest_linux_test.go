// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// block is a page filled with b.
func block(b byte) []byte { return bytes.Repeat([]byte{b}, page) }

// TestReplay holds what a cut may lose, and what it must be able to.
func TestReplay(t *testing.T) {
	base := pages{0: block('z')}
	log := logHead{Offset: 0}.pieces(nil, append(block('a'), block('b')...))
	log = append(log, piece{flush: true})
	log = logHead{Offset: page + 512}.pieces(log, block('c')) // the end of one page, the begin of the next
	log = logHead{Offset: 0}.pieces(log, block('d'))

	r := newReplay(base, log)
	for at, want := range [][]string{
		0: {"z"},
		1: {"a", "z"},
		2: {"a", "ab", "z", "zb"},
		3: {"ab"}, // the flush
		4: {"ab", "ac"},
		5: {"ab", "abc", "ac", "acc"},
		6: {"ab", "abc", "ac", "acc", "db", "dbc", "dc", "dcc"},
	} {
		r.to(at)
		rng, seen := rand.New(rand.NewPCG(1, 2)), map[string]bool{}
		for range 500 {
			left, _ := r.cut(rng)
			seen[ends(left)] = true
		}
		var got []string
		for s := range seen {
			got = append(got, s)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
	if base[0][0] != 'z' || len(base) != 1 {
		t.Error("the base was changed")
	}
}

// ends spells pages 0 to 2: the second by its last byte, the third by its
// first, which is where a write across both shows.
func ends(p pages) string {
	var out []byte
	for n, at := range []int{0, page - 1, 0} {
		if data := p[int64(n)]; data != nil {
			out = append(out, data[at])
		}
	}
	return string(out)
}
