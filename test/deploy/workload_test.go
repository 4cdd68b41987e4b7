// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workload is what has a pod template.
type workload struct {
	metav1.ObjectMeta
	kind     string
	template *corev1.PodTemplateSpec
}

// checkWorkload: its pods get the rights that they need and no more, what they mount
// is there, and there is one level.
func (c *cluster) checkWorkload(t *testing.T, w workload) {
	t.Helper()
	at := func(format string, a ...any) { c.add("%s: %s", w.kind, fmt.Sprintf(format, a...)) }
	spec := w.template.Spec
	if w.Namespace != c.space.Name || spec.ServiceAccountName != c.account.Name || c.account.Namespace != c.space.Name {
		at("namespace %q, account %q", w.Namespace, spec.ServiceAccountName)
	}
	if w.Labels["app.kubernetes.io/component"] == "" {
		at("no part")
	}
	if p := spec.PriorityClassName; p != "" && p != c.priority.Name && p != "system-node-critical" {
		at("priority %s", p)
	}
	if c.overlay == "openshift" {
		user := "system:serviceaccount:" + c.space.Name + ":" + c.account.Name
		if w.template.Annotations["openshift.io/required-scc"] != c.scc.Name || !slices.Contains(c.scc.Users, user) {
			at("the SCC is not for it")
		}
		if !c.scc.AllowHostDirVolumePlugin || c.scc.RunAsUser.Type != securityv1.RunAsUserStrategyRunAsAny || c.scc.SELinuxContext.Type != securityv1.SELinuxStrategyRunAsAny {
			at("the SCC refuses it")
		}
	}
	levels, volumes := map[string]bool{}, map[string]corev1.Volume{}
	if s := spec.SecurityContext; s != nil && s.SELinuxOptions != nil {
		levels[s.SELinuxOptions.Level] = true
	}
	for _, v := range spec.Volumes {
		volumes[v.Name] = v
	}
	unused := maps.Clone(volumes)
	ours := 0
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, m := range container.VolumeMounts {
			if _, there := volumes[m.Name]; !there {
				at("no volume %s", m.Name)
			}
			delete(unused, m.Name)
		}
		if !strings.HasPrefix(container.Image, ourImage) {
			continue
		}
		levels[c.checkArgs(t, at, container)] = true
		if container.Name == "fastlabel" {
			ours++
			c.checkRights(at, container, volumes)
			if l := container.SecurityContext.SELinuxOptions.Level; l != "" {
				levels[l] = true
			}
		}
	}
	if ours != 1 || len(levels) != 1 || levels[""] || len(unused) > 0 {
		at("%d containers of ours, levels %v, unused %v", ours, slices.Collect(maps.Keys(levels)), slices.Collect(maps.Keys(unused)))
	}
}

// checkRights: those of the unit, and none by privileged. A claim is mounted only where
// the runtime leaves the type spc_t alone.
func (c *cluster) checkRights(at func(string, ...any), container corev1.Container, volumes map[string]corev1.Volume) {
	s := container.SecurityContext
	if s == nil || s.Privileged != nil || s.RunAsUser == nil || *s.RunAsUser != 0 || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
		s.SELinuxOptions == nil || s.SELinuxOptions.Type != "spc_t" || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		at("rights %+v", s)
		return
	}
	var rights []string
	for _, r := range s.Capabilities.Add {
		rights = append(rights, "CAP_"+string(r))
		if c.overlay == "openshift" && !slices.Contains(c.scc.AllowedCapabilities, r) {
			at("the SCC refuses %s", r)
		}
	}
	if slices.Sort(rights); !slices.Equal(rights, c.rights) {
		at("capabilities %v, and the unit has %v", rights, c.rights)
	}
	locks := false
	for _, m := range container.VolumeMounts {
		v := volumes[m.Name]
		locks = locks || m.MountPath == "/run/fastlabel" && v.HostPath != nil && v.HostPath.Path == m.MountPath
		if v.PersistentVolumeClaim != nil && c.overlay == "containerd" {
			at("containerd relabels %s", m.Name)
		}
		if v.HostPath != nil && m.MountPath != "/run/fastlabel" && (m.MountPropagation == nil || *m.MountPropagation != corev1.MountPropagationHostToContainer) {
			at("what is mounted below %s may be missing", m.MountPath)
		}
	}
	if !locks {
		at("the node's lock is not there")
	}
}

// checkArgs has the command itself look at the arguments, and returns the level.
func (c *cluster) checkArgs(t *testing.T, at func(string, ...any), container corev1.Container) (level string) {
	t.Helper()
	args := slices.Clone(container.Args)
	last := len(args) - 1
	path := args[last]
	if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(path+"/", m.MountPath+"/") }) {
		at("%s is not mounted", path)
	}
	for _, v := range container.Env {
		path = strings.ReplaceAll(path, "$("+v.Name+")", "value")
	}
	if strings.Contains(path, "$(") {
		at("%s is not expanded", path)
	}
	if i := slices.Index(args, "-l"); i >= 0 {
		level = args[i+1]
	}
	args[last] = t.TempDir()
	if args[0] != "probe" {
		args = append(args, "-n")
	}
	if _, code := runProgram(t, c.program, args...); code != int(exitCodes(t)["Differs"]) {
		at("exit %d: %q", code, args)
	}
	return level
}

// unitRights are the capabilities of deploy/systemd/fastlabel@.service, sorted.
func unitRights(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "\nCapabilityBoundingSet=")
	line, _, _ = strings.Cut(line, "\n")
	rights := strings.Fields(line)
	slices.Sort(rights)
	return rights
}
