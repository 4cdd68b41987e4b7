// SPDX-License-Identifier: Apache-2.0

package stanza

import (
	"strings"
	"testing"
)

const private = "system_u:object_r:container_file_t:s0:c10,c20"

func word(w string) string { return "<" + w + ">" }

// What the label says is in the text, and what is the default is not. That others
// can read the text is shown in test/deploy.
func TestStanzas(t *testing.T) {
	for context, c := range map[string]struct{ pod, quadlet, without []string }{
		private: {
			[]string{`level: "s0:c10,c20"`},
			[]string{"\nSecurityLabelLevel=s0:c10,c20\n", "<--security-opt> <label=level:s0:c10,c20>", "\nVolume=/srv/v:/data\n"},
			[]string{"user", "FileType", "lxc_contexts", "shared"},
		},
		"system_u:object_r:container_file_t:s0": {
			[]string{`level: "s0"`, "every container of the node"},
			[]string{"\nAnnotation=io.fastlabel.shared=true\n", "every container may use"},
			[]string{"SecurityLabelLevel"},
		},
		"user_u:object_r:svirt_lxc_file_t:s0:c1": {
			[]string{`user: "user_u"`, "it is svirt_lxc_file_t only where"},
			[]string{"\nSecurityLabelFileType=svirt_lxc_file_t\n", "\nPodmanArgs=--security-opt label=user:user_u\n", "<label=filetype:svirt_lxc_file_t>"},
			[]string{"type: "},
		},
	} {
		pod, err := Kubernetes(context)
		quadlet, err2 := Podman(context, "/srv/v", word)
		if err != nil || err2 != nil {
			t.Error(context, err, err2)
		}
		for text, all := range map[string][]string{pod: c.pod, quadlet: c.quadlet} {
			for _, want := range all {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %q is not in\n%s", context, want, text)
				}
			}
		}
		for _, no := range c.without {
			if strings.Contains(pod+quadlet, no) {
				t.Errorf("%s: %q is in\n%s%s", context, no, pod, quadlet)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, context := range []string{"", "container_file_t", "a:object_r:b", "system_u:system_r:container_t:s0", "system_u:object_r:x_t:s0-s0:c0.c3"} {
		if text, err := Kubernetes(context); err == nil {
			t.Errorf("%q: %s", context, text)
		}
		if text, err := Podman(context, "/v", word); err == nil {
			t.Errorf("%q: %s", context, text)
		}
	}
	for _, path := range []string{"v", "/a:b", "/a\nPodmanArgs=--privileged", "/a\x1b", "/a\xff", "/a ", "/%h", "/$HOME", `/a\`, `/"`, "/'"} {
		if text, err := Podman(private, path, word); err == nil {
			t.Errorf("%q: %s", path, text)
		}
	}
	if text, err := Podman(private, "/srv/my volume é", word); err != nil || !strings.Contains(text, "\nVolume=/srv/my volume é:/data\n") {
		t.Error(text, err)
	}
}
