// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	ignitiontypes "github.com/coreos/ignition/v2/config/v3_2/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// decode is strict: no field that the type has not, and none twice.
func decode(found *faults, f files, name string, into any, kind *metav1.TypeMeta, want string) {
	if err := yaml.UnmarshalStrict([]byte(f[name]), into); err != nil {
		found.add("%s: %v", name, err)
	}
	if got := kind.APIVersion + " " + kind.Kind; got != want {
		found.add("%s: kind %s", name, got)
	}
}

// checkClass: the class leads to the handler.
func checkClass(text string, h *handler) (*nodev1.RuntimeClass, faults) {
	var found faults
	c := new(nodev1.RuntimeClass)
	decode(&found, files{classFile: text}, classFile, c, &c.TypeMeta, "node.k8s.io/v1 RuntimeClass")
	if c.Handler != h.name {
		found.add("%s: handler %s is not %s", classFile, c.Handler, h.name)
	}
	return c, found
}

// checkPod: the pod leads to the class, has a level of its own, and annotations
// that arrive and say something.
func checkPod(t *testing.T, f files, h *handler, class *nodev1.RuntimeClass, a asks) (found faults) {
	t.Helper()
	p := new(corev1.Pod)
	decode(&found, f, podFile, p, &p.TypeMeta, "v1 Pod")
	if p.Spec.RuntimeClassName == nil || *p.Spec.RuntimeClassName != class.Name {
		name := "none"
		if p.Spec.RuntimeClassName != nil {
			name = *p.Spec.RuntimeClassName
		}
		found.add("%s: class %s is not %s", podFile, name, class.Name)
	}
	if s := p.Spec.SecurityContext; s == nil || s.SELinuxOptions == nil || s.SELinuxOptions.Level == "" {
		found.add("%s: no level", podFile)
	} else {
		var low, high int
		_, err := fmt.Sscanf(s.SELinuxOptions.Level, "s0:c%d,c%d", &low, &high)
		kernel := fmt.Sprintf("s0:c%d,c%d", low, high)
		if err != nil || s.SELinuxOptions.Level != kernel || low >= high || high > 1023 {
			found.add("%s: level %s is not as the kernel writes it", podFile, s.SELinuxOptions.Level)
		}
	}
	arrive := map[string]string{}
	for name, value := range p.Annotations {
		if !slices.Contains(a.own, name) && !slices.Contains(a.crio, name) {
			found.add("%s: nobody reads %s", podFile, name)
		}
		if h.removes(name) {
			found.add("%s: CRI-O removes %s", podFile, name)
			continue
		}
		// CRI-O 1.34 passes on the name of 1.35, and does nothing.
		if slices.Contains(a.crio, name) && !slices.Contains(h.AllowedAnnotations, name) {
			found.add("%s: %s does not allow %s", podFile, dropInFile, name)
		}
		arrive[name] = value
	}
	dir, _ := install(t, f[hookFile])
	if hooks, err := inject(t, dir, arrive); err != nil || len(hooks.CreateRuntime) != 1 {
		found.add("%s: the hook is not injected (%v)", podFile, err)
	}
	if !strings.Contains(f[podFile], a.crio[0]) {
		found.add("%s: no word of %s", podFile, a.crio[0])
	}
	var volumes []string
	for _, v := range p.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		var places []string
		for _, m := range c.VolumeMounts {
			places = append(places, m.MountPath)
			if !slices.Contains(volumes, m.Name) {
				found.add("%s: no volume %s", podFile, m.Name)
			}
		}
		for d := range strings.SplitSeq(arrive[a.relabel], ",") {
			if path.IsAbs(d) && !slices.Contains(places, d) {
				found.add("%s: container %s has no %s", podFile, c.Name, d)
			}
		}
	}
	return found
}

// shipped is what each MachineConfig brings, and where to: what the Machine Config
// Operator's own 00-default gives CRI-O as hooks_dir, and CRI-O's drop-ins.
var shipped = map[string]struct{ path, name string }{
	hooksFile:   {"/etc/containers/oci/hooks.d/fastlabel.json", hookFile},
	machineFile: {"/etc/crio/crio.conf.d/99-fastlabel.conf", dropInFile},
}

// checkMachine: the MachineConfig is for a pool, Ignition has nothing to say
// against it, and it ships one file of deploy/oci.
func checkMachine(f files, machine string, ships struct{ path, name string }) (found faults) {
	m := new(mcfgv1.MachineConfig)
	decode(&found, f, machine, m, &m.TypeMeta, "machineconfiguration.openshift.io/v1 MachineConfig")
	if m.Labels[mcfgv1.MachineConfigRoleLabelKey] == "" {
		found.add("%s: no role", machine)
	}
	config, report, err := ignition.Parse(m.Spec.Config.Raw)
	for _, entry := range report.Entries {
		found.add("%s: %s", machine, entry.String())
	}
	if err != nil {
		found.add("%s: %v", machine, err)
	}
	if len(config.Storage.Files) != 1 {
		found.add("%s: %d files, and not %s", machine, len(config.Storage.Files), ships.path)
		return found
	}
	checkShipped(&found, f, machine, ships.name, config.Storage.Files[0])
	if path := config.Storage.Files[0].Path; path != ships.path {
		found.add("%s: %s is not where it is read", machine, path)
	}
	return found
}

func checkShipped(found *faults, f files, machine, name string, file ignitiontypes.File) {
	if file.Mode == nil {
		found.add("%s: %s: no mode", machine, name)
	} else if *file.Mode != 0o644 {
		found.add("%s: %s: mode %o", machine, name, *file.Mode)
	}
	// Without it the first boot fails where the image has the file.
	if file.Overwrite == nil || !*file.Overwrite {
		found.add("%s: %s: no overwrite", machine, name)
	}
	if file.Contents.Source == nil {
		found.add("%s: %s has no contents", machine, name)
		return
	}
	contents, err := dataurl.DecodeString(*file.Contents.Source)
	if err != nil {
		found.add("%s: %s: %v", machine, name, err)
		return
	}
	if string(contents.Data) != f[name] {
		found.add("%s: %s differs; base64 -w0 has what belongs there", machine, name)
	}
}
