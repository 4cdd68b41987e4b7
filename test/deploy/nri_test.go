// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// checkNRI: the node plugin has the rights that the unit has, the lock, and what is
// mounted on the node later.
func checkNRI(t *testing.T, f files) faults {
	t.Helper()
	c := &cluster{overlay: "nri", rights: unitRights(t)}
	text, err := render(f, "nri")
	if err != nil {
		c.add("%v", err)
		return c.found
	}
	c.decode(text)
	spec, volumes := c.daemons.Spec.Template.Spec, map[string]corev1.Volume{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = v
	}
	if len(c.workloads) != 1 || len(spec.Containers) != 1 || c.space.Name != c.daemons.Namespace || c.account.Name != spec.ServiceAccountName {
		c.add("%d workloads, namespaces %q and %q, accounts %q and %q", len(c.workloads), c.space.Name, c.daemons.Namespace, c.account.Name, spec.ServiceAccountName)
		return c.found
	}
	// Nothing is mounted in these.
	const flat = "/var/run/nri /metrics /run/fastlabel"
	container := spec.Containers[0]
	container.VolumeMounts = slices.DeleteFunc(slices.Clone(container.VolumeMounts), func(m corev1.VolumeMount) bool {
		return strings.Contains(flat, m.MountPath) && m.MountPath != "/run/fastlabel"
	})
	c.checkRights(func(format string, a ...any) { c.add("%s", fmt.Sprintf(format, a...)) }, container, volumes)
	for _, m := range spec.Containers[0].VolumeMounts {
		if v := volumes[m.Name].HostPath; v == nil || v.Path != m.MountPath && m.MountPath != "/metrics" {
			c.add("%s is not the node's", m.MountPath)
		}
	}
	if c.space.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		c.add("the namespace refuses the pods")
	}
	return c.found
}

func TestNRI(t *testing.T) {
	for _, fault := range checkNRI(t, readKubernetes(t)) {
		t.Error(fault)
	}
	const daemons, setup = "nri/daemonset-nri.yaml", "nri/setup.yaml"
	for name, b := range map[string]struct{ file, old, new, fault string }{
		"a field":            {daemons, "serviceAccountName:", "serviceAccountname:", "serviceAccountname"},
		"a file":             {"nri/kustomization.yaml", "  - daemonset-nri.yaml\n", "", "0 workloads"},
		"a restricted space": {setup, "enforce: privileged", "enforce: baseline", "refuses the pods"},
		"a capability less":  {daemons, ", FOWNER]", "]", "capabilities"},
		"privileged":         {daemons, "runAsUser: 0", "runAsUser: 0\n            privileged: true", "rights"},
		"no propagation":     {daemons, "/kubelet/pods\n              mountPropagation: HostToContainer\n", "/kubelet/pods\n", "may be missing"},
		"no lock":            {daemons, "            path: /run/fastlabel", "            path: /run", "lock is not there"},
		"another directory":  {daemons, "            path: /var/run/nri", "            path: /run/nri2", "/var/run/nri is not the node's"},
	} {
		f := readKubernetes(t)
		if !strings.Contains(f[b.file], b.old) {
			t.Fatalf("%s: %s has no %q to break", name, b.file, b.old)
		}
		f[b.file] = strings.Replace(f[b.file], b.old, b.new, 1)
		if found := checkNRI(t, f); !slices.ContainsFunc(found, func(fault string) bool { return strings.Contains(fault, b.fault) }) {
			t.Errorf("%s: found %q, not %q", name, found, b.fault)
		}
	}
}
