// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The pod that docs/prelabel.md shows is one: no field that the type has not, and
// each mount has its volume.
func TestPageOfPod(t *testing.T) {
	const page = "../../docs/prelabel.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, pod, _ := strings.Cut(string(text), "```yaml\n")
	pod, _, _ = strings.Cut(pod, "```")
	var found faults
	p := new(corev1.Pod)
	decode(&found, files{page: pod}, page, p, &p.TypeMeta, "v1 Pod")
	for _, f := range found {
		t.Error(f)
	}
	volumes := map[string]bool{}
	for _, v := range p.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range p.Spec.Containers {
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: no volume %s", page, m.Name)
			}
		}
	}
	if s := p.Spec.SecurityContext; s == nil || s.SELinuxOptions == nil || s.SELinuxOptions.Level == "" || len(volumes) == 0 {
		t.Errorf("%s: no level, or no volume", page)
	}
}
