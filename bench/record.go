// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// record is one run, a line of bench/results.
type record struct {
	Time   string `json:"time"`
	Commit string `json:"commit"`
	Kernel string `json:"kernel"`
	cell
	Entries    int    `json:"entries"`
	Contestant string `json:"contestant"`
	Round      int    `json:"round"`
	took
}

// readRecords reads files of records, one after the other.
func readRecords(names []string) ([]record, error) {
	var all []record
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			var r record
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				f.Close()
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
			all = append(all, r)
		}
		f.Close()
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}
