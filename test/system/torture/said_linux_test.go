// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"encoding/json"
	"fmt"
	"strings"
)

// summary is the line of --json about one PATH.
type summary struct {
	Type     string `json:"message_type"`
	Root     string `json:"root"`
	Seen     int64  `json:"seen"`
	Written  int64  `json:"written"`
	Right    int64  `json:"right"`
	Vanished int64  `json:"vanished"`
	Skipped  int64  `json:"skipped"`
	Failed   int64  `json:"failed"`
	Complete bool   `json:"complete"`
	ExitCode int    `json:"exit_code"`
}

// wrong reports whether the counts add up.
func (s summary) wrong() string {
	if s.Seen != s.Written+s.Right+s.Vanished+s.Skipped+s.Failed ||
		min(s.Seen, s.Written, s.Right, s.Vanished, s.Skipped, s.Failed) < 0 {
		return fmt.Sprintf("the counts do not add up: %+v", s)
	}
	return ""
}

func summaries(text string) []summary {
	var out []summary
	for line := range strings.Lines(text) {
		var s summary
		if json.Unmarshal([]byte(line), &s) == nil && s.Type == "summary" {
			out = append(out, s)
		}
	}
	return out
}

// said is what the command said in JSON of one PATH.
type said struct {
	summary
	named    int64 // failures with a message of their own
	unsealed bool  // it was said that the root is trusted for its old label still
}

func saying(text string) (s said) {
	for line := range strings.Lines(text) {
		var l struct {
			Type string `json:"message_type"`
			Text string `json:"text"`
		}
		if json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		switch l.Type {
		case "error":
			s.named++
		case "note":
			s.unsealed = s.unsealed || strings.Contains(l.Text, "the top directory keeps ")
		}
	}
	for _, one := range summaries(text) {
		s.summary = one
	}
	return s
}
