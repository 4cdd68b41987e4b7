// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	securityv1 "github.com/openshift/api/security/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const ourImage = "registry.example/fastlabel:"

// overlays are the directories to apply, with what each has beside the workloads.
var overlays = map[string][]string{
	"containerd": {"Namespace", "PriorityClass", "ServiceAccount"},
	"crio":       {"Namespace", "PriorityClass", "RuntimeClass", "ServiceAccount"},
	"openshift":  {"MachineConfig", "Namespace", "PriorityClass", "RuntimeClass", "SecurityContextConstraints", "ServiceAccount"},
}

// readKubernetes are the texts of deploy/kubernetes by path.
func readKubernetes(t *testing.T) files {
	t.Helper()
	dir, f := os.DirFS("../../deploy/kubernetes"), files{}
	err := fs.WalkDir(dir, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dir, path)
		f[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// render has kustomize make what kubectl apply -k sends.
func render(f files, overlay string) ([]byte, error) {
	memory := filesys.MakeFsInMemory()
	for path, text := range f {
		if err := memory.WriteFile("/"+path, []byte(text)); err != nil {
			return nil, err
		}
	}
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/"+overlay)
	if err != nil {
		return nil, err
	}
	return m.AsYaml()
}

// cluster is an overlay, decoded.
type cluster struct {
	found     faults
	overlay   string
	program   string   // fastlabel
	rights    []string // the capabilities that the unit has
	kinds     []string // of what is not a workload
	space     corev1.Namespace
	account   corev1.ServiceAccount
	priority  schedulingv1.PriorityClass
	class     nodev1.RuntimeClass
	scc       securityv1.SecurityContextConstraints
	machine   mcfgv1.MachineConfig
	job       batchv1.Job
	daemons   appsv1.DaemonSet
	example   appsv1.Deployment
	workloads []workload
}

func (c *cluster) add(format string, a ...any) {
	c.found.add("%s: %s", c.overlay, fmt.Sprintf(format, a...))
}

// decode reads the objects strictly: no field that a type has not, and none twice.
func (c *cluster) decode(text []byte) {
	into := map[string]any{
		"v1 Namespace": &c.space, "v1 ServiceAccount": &c.account, "scheduling.k8s.io/v1 PriorityClass": &c.priority,
		"node.k8s.io/v1 RuntimeClass": &c.class, "security.openshift.io/v1 SecurityContextConstraints": &c.scc,
		"machineconfiguration.openshift.io/v1 MachineConfig": &c.machine,
		"batch/v1 Job": &c.job, "apps/v1 DaemonSet": &c.daemons, "apps/v1 Deployment": &c.example,
	}
	for object := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(object, &kind); err != nil {
			c.add("%v", err)
		}
		key := kind.APIVersion + " " + kind.Kind
		if into[key] == nil {
			c.add("%s is there twice, or unknown", key)
			continue
		}
		data, err := yaml.YAMLToJSONStrict(object)
		if err != nil {
			c.add("%s: %v", key, err)
		}
		wrong, err := json.UnmarshalStrict(data, into[key]) // as the API server: by case too
		for _, err := range append(wrong, err) {
			if err != nil {
				c.add("%s: %v", key, err)
			}
		}
		delete(into, key)
		switch kind.Kind {
		case "Job":
			c.workloads = append(c.workloads, workload{c.job.ObjectMeta, kind.Kind, &c.job.Spec.Template})
		case "DaemonSet":
			c.workloads = append(c.workloads, workload{c.daemons.ObjectMeta, kind.Kind, &c.daemons.Spec.Template})
		case "Deployment":
			c.workloads = append(c.workloads, workload{c.example.ObjectMeta, kind.Kind, &c.example.Spec.Template})
		default:
			c.kinds = append(c.kinds, kind.Kind)
		}
	}
}

// checkOverlay renders and decodes an overlay, and says what in it would not work.
func checkOverlay(t *testing.T, f files, overlay, program string) faults {
	t.Helper()
	c := &cluster{overlay: overlay, program: program, rights: unitRights(t)}
	text, err := render(f, overlay)
	if err != nil {
		c.add("%v", err)
		return c.found
	}
	c.decode(text)
	if slices.Sort(c.kinds); !slices.Equal(c.kinds, overlays[overlay]) || len(c.workloads) != 3 {
		c.add("%d workloads, and %v", len(c.workloads), c.kinds)
	}
	if c.space.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		c.add("the namespace refuses the pods")
	}
	c.checkJob(t)
	for _, w := range c.workloads {
		c.checkWorkload(t, w)
	}
	// CRI-O skips the claim of the example, if it may.
	a := readAsks(t)
	h, _ := checkDropIn(t, readFiles(t)[dropInFile], a)
	spec := c.example.Spec.Template
	asks := slices.ContainsFunc(h.AllowedAnnotations, func(name string) bool { return spec.Annotations[name] == "true" })
	named := spec.Spec.RuntimeClassName != nil && *spec.Spec.RuntimeClassName == c.class.Name
	if crio := overlay != "containerd"; asks != crio || named != crio || crio && c.class.Handler != h.name {
		c.add("the example: annotation %v, class %v, handler %q", asks, named, c.class.Handler)
	}
	return c.found
}

// checkJob: it ends, and the exit codes lead where docs/output.md says.
func (c *cluster) checkJob(t *testing.T) {
	t.Helper()
	codes, spec := exitCodes(t), c.job.Spec
	if spec.ActiveDeadlineSeconds == nil || spec.TTLSecondsAfterFinished == nil || spec.BackoffLimit == nil || spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		c.add("the Job need not end")
	}
	want := map[batchv1.PodFailurePolicyAction][]int32{
		batchv1.PodFailurePolicyActionFailJob: {codes["Usage"], codes["Refused"]},
		batchv1.PodFailurePolicyActionIgnore:  {codes["TimedOut"], codes["Interrupted"], codes["Terminated"]},
	}
	if spec.PodFailurePolicy == nil {
		c.add("the Job has no policy")
		return
	}
	evicted := false
	for _, rule := range spec.PodFailurePolicy.Rules {
		if on := rule.OnExitCodes; on == nil {
			evicted = rule.Action == batchv1.PodFailurePolicyActionIgnore && rule.OnPodConditions[0].Type == corev1.DisruptionTarget
		} else if on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && *on.ContainerName == "fastlabel" && slices.Equal(on.Values, want[rule.Action]) {
			delete(want, rule.Action)
		} else {
			c.add("the Job's rule %s %v", rule.Action, on.Values)
		}
	}
	if len(want) > 0 || !evicted {
		c.add("the Job lacks rules: %v, evicted %v", want, evicted)
	}
}

func TestKubernetes(t *testing.T) {
	program := buildProgram(t)
	for overlay := range overlays {
		for _, fault := range checkOverlay(t, readKubernetes(t), overlay, program) {
			t.Error(fault)
		}
	}
}

// Each way to break a file is noticed, in the overlay that it breaks.
func TestKubernetesBroken(t *testing.T) {
	program := buildProgram(t)
	const job, daemons, example, scc = "base/job-pvc.yaml", "base/daemonset-local.yaml", "base/init-container.yaml", "openshift/scc.yaml"
	for name, b := range map[string]struct{ overlay, file, old, new, fault string }{
		"a field":              {"crio", job, "backoffLimit:", "backOffLimit:", "backOffLimit"},
		"a file":               {"crio", "base/kustomization.yaml", "  - job-pvc.yaml\n", "", "2 workloads"},
		"another kind":         {"crio", "base/setup.yaml", "kind: PriorityClass", "kind: Priority", "Priority is there twice, or unknown"},
		"a restricted space":   {"crio", "base/setup.yaml", "enforce: privileged", "enforce: baseline", "refuses the pods"},
		"no deadline":          {"crio", job, "activeDeadlineSeconds: 21600", "suspend: false", "need not end"},
		"a code":               {"crio", job, "[2, 3]", "[1, 2, 3]", "rule FailJob [1 2 3]"},
		"a rule":               {"crio", job, "action: Ignore\n        onExitCodes", "action: Count\n        onExitCodes", "rule Count"},
		"no eviction":          {"crio", job, "type: DisruptionTarget", "type: Ready", "evicted false"},
		"no spc_t":             {"crio", job, "type: spc_t, ", "", "rights"},
		"privileged":           {"crio", example, "runAsUser: 0", "runAsUser: 0\n            privileged: true", "rights"},
		"a writable root":      {"crio", job, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "rights"},
		"a capability less":    {"crio", daemons, ", FOWNER]", "]", "capabilities [CAP_DAC_READ_SEARCH CAP_SYS_ADMIN]"},
		"a capability more":    {"crio", daemons, "FOWNER]", "FOWNER, MAC_ADMIN]", "CAP_MAC_ADMIN"},
		"two levels":           {"crio", example, `seLinuxOptions: {level: "s0:c10,c20"}`, `seLinuxOptions: {level: "s0:c10,c21"}`, "levels"},
		"no level":             {"crio", daemons, `-l, "s0:c10,c20", `, "", "levels"},
		"a flag":               {"crio", daemons, "--skip, root", "--skip, roots", "exit 2"},
		"a path":               {"crio", daemons, "/mnt/disks/data]", "/mnt/data]", "/mnt/data is not mounted"},
		"no volume":            {"crio", job, "- name: locks\n          hostPath", "- name: lock\n          hostPath", "no volume locks"},
		"a lock elsewhere":     {"crio", job, "            path: /run/fastlabel", "            path: /run", "lock is not there"},
		"no propagation":       {"crio", daemons, "              mountPropagation: HostToContainer\n", "", "may be missing"},
		"an account":           {"crio", job, "serviceAccountName: fastlabel", "serviceAccountName: default", `account "default"`},
		"a priority":           {"crio", job, "priorityClassName: fastlabel", "priorityClassName: low", "priority low"},
		"a class":              {"crio", "crio/init-container.yaml", "runtimeClassName: fastlabel-volumes", "runtimeClassName: other", "class false"},
		"an annotation":        {"crio", "crio/init-container.yaml", "io.kubernetes.cri-o.TrySkip", "io.kubernetes.cri-o.Skip", "annotation false"},
		"containerd's claim":   {"containerd", "containerd/init-container.yaml", "value: {name: pods, mountPath: /pods, mountPropagation: HostToContainer}", "value: {name: data, mountPath: /pods}", "containerd relabels data"},
		"containerd's path":    {"containerd", "containerd/job-pvc.yaml", "name: VOLUME", "name: MOUNT", "$(VOLUME) is not expanded"},
		"containerd's level":   {"containerd", "containerd/job-pvc.yaml", `[probe, -l, "s0:c10,c20"`, `[probe, -l, "s0:c10,c21"`, "levels"},
		"containerd's patch":   {"containerd", "containerd/job-pvc.yaml", "containers/0\n  path: /spec/template/spec/initContainers", "containers/1\n  path: /spec/template/spec/initContainers", "error in move"},
		"the SCC's user":       {"openshift", scc, "fastlabel:fastlabel", "fastlabel:default", "SCC is not for it"},
		"the SCC's capability": {"openshift", scc, ", FOWNER]", "]", "the SCC refuses FOWNER"},
		"the SCC's directory":  {"openshift", scc, "allowHostDirVolumePlugin: true", "allowHostDirVolumePlugin: false", "the SCC refuses it"},
		"the SCC's name":       {"openshift", "openshift/kustomization.yaml", "required-scc: fastlabel", "required-scc: privileged", "SCC is not for it"},
		"no MachineConfig":     {"openshift", "openshift/kustomization.yaml", "  - machineconfig.yaml\n", "", "and [Namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			f := readKubernetes(t)
			if !strings.Contains(f[b.file], b.old) {
				t.Fatalf("%s has no %q to break", b.file, b.old)
			}
			f[b.file] = strings.Replace(f[b.file], b.old, b.new, 1)
			found := checkOverlay(t, f, b.overlay, program)
			if !slices.ContainsFunc(found, func(fault string) bool { return strings.Contains(fault, b.fault) }) {
				t.Errorf("found %q, not %q", found, b.fault)
			}
		})
	}
}
