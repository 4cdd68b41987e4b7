// SPDX-License-Identifier: Apache-2.0

// Package stanza writes what has to stand in the files of those who run
// containers, so that a volume's label is the one that they ask for. What it
// writes is read by their own decoders in test/deploy.
//
//	stanza.go       the label, and what can stand in a file
//	crio.go         CRI-O's drop-in with its RuntimeClass
//	podman.go       a Quadlet with the command
//	kubernetes.go   a pod
package stanza

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What runtimes give a volume where nobody says otherwise.
const (
	defaultUser = "system_u"
	fileRole    = "object_r"
	defaultType = "container_file_t"
)

// Handler is the runtime handler of the drop-in, and the class that leads to it.
const Handler = "fastlabel-volumes"

// TrySkip is CRI-O's annotation for passing over a volume that is labelled, as
// all versions know it; from 1.35 on it has a name beside, and this one goes.
const (
	TrySkip    = "io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel"
	trySkipNew = "try-skip-volume-selinux-label.crio.io"
)

// label is a context, taken apart.
type label struct{ user, typ, level string }

func parse(context string) (label, error) {
	f := strings.SplitN(context, ":", 4)
	if len(f) < 4 {
		return label{}, fmt.Errorf("%s is no context with a level", context)
	}
	if f[1] != fileRole {
		return label{}, fmt.Errorf("no runtime asks for the role %s: it is always %s", f[1], fileRole)
	}
	if strings.Contains(f[3], "-") {
		return label{}, errors.New("no runtime asks for a range of levels")
	}
	return label{f[0], f[2], f[3]}, nil
}

// shared says that every container may use what bears the label.
func (l label) shared() bool { return !strings.Contains(l.level, ":") }

// printable refuses what the line of a file cannot hold.
func printable(path string) error {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return errors.New("the path has bytes that a line of text cannot show")
	}
	return nil
}
