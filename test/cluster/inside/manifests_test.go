// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestManifests: each is YAML of a kind with a name, once its values are in it, and one
// that lacks a value is an error.
func TestManifests(t *testing.T) {
	values := map[string]string{
		"NAME": "n", "PATH": "/p", "CLAIM": "c", "OPTIONS": level("s0:c1,c2"), "SUBPATH": "", "READONLY": "false",
		"LEVEL": "s0:c1,c2", "CLASS": "null", "ANNOTATIONS": "{}", "RELABEL": "true",
	}
	all, err := manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		name := strings.TrimSuffix(e.Name(), ".yaml")
		text, err := manifest(name, values)
		if err != nil {
			t.Fatal(err)
		}
		for object := range strings.SplitSeq(text, "\n---\n") {
			var o struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string
				Metadata   struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(object), &o); err != nil || o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "" {
				t.Errorf("%s: %+v, %v", name, o, err)
			}
		}
	}
	if _, err := manifest("pod", nil); err == nil {
		t.Error("no error for a pod without a name")
	}
}
