// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPicture records what the README shows: a volume is looked at, labelled,
// and looked at again. Nothing holds the run back.
func TestPicture(t *testing.T) {
	const columns, rows = 84, 10
	n := *files
	if *picture == "" {
		n = 2000 // the recording is tested, and nothing kept
	}
	dir := volume(t, n)
	w := newTerminal(t, dir, filepath.Join(dir, "bin"), columns, rows)
	w.tmux("send-keys", "-l", "PS1='\\[\\e[32m\\]$\\[\\e[0m\\] '")
	w.enter()
	w.clear()

	var frames []frame
	show := func(seconds float64) {
		if screen := w.coloured(); len(frames) == 0 || frames[len(frames)-1].screen != screen {
			frames = append(frames, frame{screen, seconds})
		} else {
			frames[len(frames)-1].seconds += seconds
		}
	}
	for _, line := range []string{"fastlabel probe -l s0:c35,c75 pv", "fastlabel -l s0:c35,c75 pv", "fastlabel probe -l s0:c35,c75 pv", "fastlabel verify -l s0:c35,c75 pv"} {
		before := w.screen()
		w.text(line)
		w.until(`(?m)^\$ ` + line + ` *\s*\z`)
		show(0.8)
		w.enter()
		for looked := time.Now(); w.screen() == before || !isEnded(w.screen()); looked = time.Now() {
			time.Sleep(200 * time.Millisecond)
			show(time.Since(looked).Seconds())
		}
		show(1.5)
	}
	show(4)
	text, err := svg(frames, columns, rows, "fastlabel at work on a million files")
	if err != nil {
		t.Fatal(err)
	}
	if *picture == "" {
		return
	}
	if err := os.WriteFile(*picture, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
