// SPDX-License-Identifier: Apache-2.0

package rows

import "github.com/fastlabel/fastlabel/relabel/internal/sys"

// Pieces cuts records into pieces of so many entries. What cannot be parsed is in the last.
func Pieces(records []byte, entries int) (pieces [][]byte) {
	count, off := 0, 0
	for off < len(records) {
		_, length, err := sys.Parse(records[off:])
		if err != nil {
			break
		}
		off += length
		if count++; count == entries && off < len(records) {
			pieces = append(pieces, records[:off:off])
			records, off, count = records[off:], 0, 0
		}
	}
	return append(pieces, records)
}

// Sample says where in records the first plain entries, so many of them, end, and where
// the last of these begins. Where it cannot be parsed that far, it is an error.
func Sample(records []byte, entries int, special map[uint64]bool) (end, last int, err error) {
	for plain := 0; plain < entries && end < len(records); {
		r, length, err := sys.Parse(records[end:])
		if err != nil {
			return 0, 0, err
		}
		if IsPlain(r, special) && !sys.IsDot(r.Name) {
			plain++
		}
		end, last = end+length, end
	}
	return end, last, nil
}
