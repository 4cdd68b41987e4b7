// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPictures: each SVG is what its text draws now, is well-formed, has a dark form, and fits into
// 400 pixels so that it can be read: 56 cells of 7 pixels.
func TestPictures(t *testing.T) {
	files, err := filepath.Glob("*.txt")
	if err != nil || len(files) != 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		drawn := picture(file, string(text))
		if has, err := os.ReadFile(strings.TrimSuffix(file, "txt") + "svg"); err != nil || string(has) != drawn {
			t.Errorf("%s is not drawn: run make pictures: %v", file, err)
		}
		var svg struct {
			Width int    `xml:"width,attr"`
			Desc  string `xml:"desc"`
			Style string `xml:"style"`
		}
		if err := xml.Unmarshal([]byte(drawn), &svg); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if svg.Width > 58*wide || svg.Desc == "" || !strings.Contains(svg.Style, "prefers-color-scheme: dark") {
			t.Errorf("%s: %d pixels wide, described by %q", file, svg.Width, svg.Desc)
		}
		if moves := strings.Contains(drawn, "@keyframes"); moves && !strings.Contains(drawn, "prefers-reduced-motion: reduce") {
			t.Errorf("%s always moves", file)
		}
	}
}
