// SPDX-License-Identifier: Apache-2.0

package stanza

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Podman is a Quadlet for a container that uses the volume at path with the label
// context, and does not have podman walk it. Its first lines have the command;
// word quotes for a shell.
func Podman(context, path string, word func(string) string) (string, error) {
	l, err := parse(context)
	if err != nil {
		return "", err
	}
	if err := printable(path); err != nil {
		return "", err
	}
	switch {
	case !filepath.IsAbs(path):
		return "", errors.New("podman wants an absolute path")
	case strings.Contains(path, ":"):
		return "", errors.New("podman takes a colon for the end of the path")
	case strings.ContainsAny(path, `$%"'\`), strings.TrimSpace(path) != path:
		return "", errors.New("systemd and podman do not agree on how to quote this path")
	}
	relabel, note := "io.fastlabel.relabel=/data", ""
	command := []string{"podman", "run"}
	var lines []string
	option := func(key, name, value string) {
		command = append(command, "--security-opt", "label="+name+":"+value)
		if key == "" {
			lines = append(lines, "PodmanArgs=--security-opt label="+name+":"+value)
			return
		}
		lines = append(lines, key+"="+value)
	}
	if l.shared() {
		note = "# This level has no categories: every container may use the volume.\n"
		command = append(command, "--annotation", "io.fastlabel.shared=true")
		lines = append(lines, "Annotation=io.fastlabel.shared=true")
	} else {
		option("SecurityLabelLevel", "level", l.level)
	}
	if l.typ != defaultType {
		option("SecurityLabelFileType", "filetype", l.typ)
	}
	if l.user != defaultUser {
		option("", "user", l.user)
	}
	command = append(command, "--annotation", relabel, "-v", path+":/data", "IMAGE")
	for i, w := range command {
		command[i] = word(w)
	}
	return fmt.Sprintf(`# /etc/containers/systemd/example.container, or by hand:
#: %s
# Neither :z nor :Z, with which podman reads or writes every label when the
# container is first started. The volume is labelled beforehand, or by fastlabel's
# hook: without it the annotation does nothing.
%s[Container]
Image=IMAGE
Volume=%s:/data
Annotation=%s
%s
`, strings.Join(command, " "), note, path, relabel, strings.Join(lines, "\n")), nil
}
