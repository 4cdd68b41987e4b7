// SPDX-License-Identifier: Apache-2.0

// Package terminal runs the built command as somebody at a terminal does: tmux
// plays the terminal, a shell is in it, and the volume is an ext4 of its own.
//
//	tmux_test.go     a terminal: type, wait for what appears, resize, capture
//	volume_test.go   the volume, and the program
//	session_test.go  the session, screen by screen, against testdata
//	mask_test.go     what of a screen is another at each run
//	picture_test.go  the same terminal as an SVG: docs/terminal.svg
//	svg_test.go      screens as a moving picture
//
// The screens in testdata are those of a million files. A run with fewer must
// show the same, but for the numbers.
//
//	go test . -files 1000000 -update         (here) makes them anew
//	go test . -run TestPicture -picture FILE  makes the picture
package terminal
