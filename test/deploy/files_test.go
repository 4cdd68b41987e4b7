// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	hookFile    = "fastlabel.json"
	dropInFile  = "99-fastlabel.conf"
	classFile   = "runtimeclass.yaml"
	podFile     = "pod.yaml"
	machineFile = "machineconfig.yaml"
	hooksFile   = "machineconfig-hook.yaml"
)

// files are the texts of deploy/oci by name, and those of deploy/kubernetes that lead to
// them.
type files map[string]string

func readFiles(t *testing.T) files {
	t.Helper()
	f := files{}
	for _, pattern := range []string{"oci/*", "kubernetes/crio/runtimeclass.yaml", "kubernetes/openshift/machineconfig*.yaml"} {
		paths, err := filepath.Glob("../../deploy/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f[filepath.Base(path)] = string(text)
		}
	}
	return f
}

// faults are what a check found wrong.
type faults []string

func (f *faults) add(format string, a ...any) { *f = append(*f, fmt.Sprintf(format, a...)) }

// check runs every check. Files that do not decode are told, and what is
// compared with them is not.
func check(t *testing.T, f files) faults {
	t.Helper()
	var all faults
	for _, name := range []string{hookFile, dropInFile, classFile, podFile, machineFile, hooksFile} {
		if f[name] == "" {
			all.add("%s: missing", name)
		}
	}
	if len(f) != 6 {
		all.add("%d files, and 6 are checked", len(f))
	}
	asks := readAsks(t)
	all = append(all, checkMatching(t, f[hookFile], asks)...)
	all = append(all, checkEntry(t, f[hookFile])...)
	h, found := checkDropIn(t, f[dropInFile], asks)
	all = append(all, found...)
	class, found := checkClass(f[classFile], h)
	all = append(all, found...)
	all = append(all, checkPod(t, f, h, class, asks)...)
	for name, place := range shipped {
		all = append(all, checkMachine(f, name, place)...)
	}
	return all
}

func TestFiles(t *testing.T) {
	for _, fault := range check(t, readFiles(t)) {
		t.Error(fault)
	}
}

// Each way to break the files is noticed, and by what it breaks.
func TestBroken(t *testing.T) {
	const crio = "io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel"
	for name, b := range map[string]struct{ file, old, new, fault string }{
		"key unanchored at its start": {hookFile, `"^io`, `"io`, `injected for "xio.fastlabel.relabel"`},
		"key unanchored at its end":   {hookFile, `relabel$`, `relabel`, `injected for "io.fastlabel.relabelx"`},
		"key with bare dots":          {hookFile, `io\\.fast`, `io.fast`, `injected for "io-fastlabel.relabel"`},
		"key of another":              {hookFile, `relabel$`, `skip$`, `not injected for "io.fastlabel.relabel"="true"`},
		"value of any kind":           {hookFile, `^([^f]|$)`, ``, `injected for "io.fastlabel.relabel"="false"`},
		"value unanchored":            {hookFile, `^([^f]|$)`, `([^f]|$)`, `injected for "io.fastlabel.relabel"="false"`},
		"value true alone":            {hookFile, `^([^f]|$)`, `^true$`, `not injected for "io.fastlabel.relabel"="/data,/log"`},
		"value that hides slips":      {hookFile, `^([^f]|$)`, `^(true|/.*)$`, `not injected for "io.fastlabel.relabel"="True"`},
		"value that hides nothing":    {hookFile, `([^f]|$)`, `[^f]`, `not injected for "io.fastlabel.relabel"=""`},
		"a second condition":          {hookFile, `"annotations": {`, `"hasBindMounts": true, "annotations": {`, `not injected for "io.fastlabel.relabel"="true"`},
		"not a regular expression":    {hookFile, `([^f]|$)`, `([^f]|$`, "invalid annotation value"},
		"always":                      {hookFile, `"annotations": {`, `"always": true, "unless": {`, "injected for no annotation"},
		"stage":                       {hookFile, "createRuntime", "createContainer", "stages [createContainer]"},
		"stages":                      {hookFile, `"createRuntime"`, `"createRuntime", "poststop"`, "stages [createRuntime poststop]"},
		"no such stage":               {hookFile, "createRuntime", "create", "unknown stage"},
		"version":                     {hookFile, "1.0.0", "2.0.0", "unrecognized hook version"},
		"arguments":                   {hookFile, `, "hook"]`, `, "probe"]`, "args [fastlabel probe]"},
		"no timeout":                  {hookFile, `,` + "\n" + `    "timeout": 105`, ``, "no timeout"},
		"timeout":                     {hookFile, "105", "104", "timeout 104 s"},
		"path":                        {hookFile, "/usr/bin/fast", "/bin/fast", "path /bin/fastlabel"},
		"unknown property":            {hookFile, `"when"`, `"enabled": true, "when"`, `unknown field "enabled"`},

		"not CRI-O's key":       {dropInFile, "\ninherit_default_runtime", "\ninherits_default_runtime", "inherits_default_runtime is not used"},
		"not CRI-O's type":      {dropInFile, "= true", `= "true"`, "incompatible types"},
		"not CRI-O's table":     {dropInFile, "[crio.runtime.runtimes.", "[crio.runtimes.", "crio.runtimes"},
		"ours allowed":          {dropInFile, `"` + crio + `",`, `"` + crio + `", "io.fastlabel.relabel",`, "CRI-O does not know io.fastlabel.relabel"},
		"another allowed":       {dropInFile, `"` + crio + `",`, `"` + crio + `", "io.kubernetes.cri-o.Devices",`, "the hook does not read io.kubernetes.cri-o.Devices"},
		"none allowed":          {dropInFile, `    "` + crio + `",`, ``, "CRI-O removes " + crio},
		"nothing before 1.32":   {dropInFile, "\nruntime_path", "\n#runtime_path", "no runtime"},
		"nothing inherited":     {dropInFile, "= true", "= false", "no runtime"},
		"a program's name":      {dropInFile, "runtimes.fastlabel-volumes]", "runtimes.fastlabel]", "named as a program"},
		"commented key":         {dropInFile, "#container_min", "#containers_min", "containers_min_memory is not used"},
		"commented type":        {dropInFile, `"512KiB"`, "512", "incompatible types"},
		"the name of 1.35":      {dropInFile, `"` + crio + `",`, `"try-skip-volume-selinux-label.crio.io",`, "CRI-O does not know try-skip-volume"},
		"no word of 1.35":       {dropInFile, "try-skip-volume", "skip-volume", "no word of try-skip-volume-selinux-label.crio.io"},
		"another handler":       {dropInFile, "runtimes.fastlabel-volumes]", "runtimes.other]", "handler fastlabel-volumes is not other"},
		"two handlers":          {dropInFile, "[crio.runtime.runtimes.", "[crio.runtime.runtimes.two]\n[crio.runtime.runtimes.", "2 handlers"},
		"class's handler":       {classFile, "handler: fastlabel-volumes", "handler: fastlabel", "handler fastlabel is not fastlabel-volumes"},
		"class's kind":          {classFile, "kind: RuntimeClass", "kind: Runtimeclass", "kind node.k8s.io/v1 Runtimeclass"},
		"class's field":         {classFile, "handler:", "handle:", `unknown field "handle"`},
		"pod's field":           {podFile, "  runtimeClassName:", "  runtimeClass:", `unknown field "runtimeClass"`},
		"pod's class":           {podFile, "runtimeClassName: fastlabel-volumes", "runtimeClassName: fastlabel", "class fastlabel is not fastlabel-volumes"},
		"pod's kind":            {podFile, "\nkind: Pod", "\nkind: pod", "kind v1 pod"},
		"pod's level":           {podFile, "level: s0:c10,c20", "level: s0:c20,c10", "level s0:c20,c10"},
		"pod without a level":   {podFile, "level: s0:c10,c20", "type: spc_t", "no level"},
		"nobody's annotation":   {podFile, "    io.fastlabel.relabel: ", "    io.fastlabel.relable: ", "nobody reads io.fastlabel.relable"},
		"a name not allowed":    {podFile, "    " + crio, "    try-skip-volume-selinux-label.crio.io", "does not allow try-skip-volume-selinux-label.crio.io"},
		"nothing asked":         {podFile, "relabel: /archive", `relabel: "false"`, "the hook is not injected"},
		"pod's word of 1.35":    {podFile, "try-skip-volume", "skip-volume", "pod.yaml: no word of try-skip-volume-selinux-label.crio.io"},
		"no such volume":        {podFile, "    - name: archive\n      host", "    - name: old\n      host", "no volume archive"},
		"no such mount":         {podFile, "mountPath: /archive", "mountPath: /other", "container app has no /archive"},
		"a container without":   {podFile, "  volumes:", "    - {name: b, image: busybox}\n  volumes:", "container b has no /archive"},
		"config's field":        {machineFile, "\n  config:", "\n  configs:", `unknown field "configs"`},
		"config's kind":         {machineFile, "kind: MachineConfig", "kind: MachineConfigs", "MachineConfigs"},
		"config's role":         {machineFile, "openshift.io/role:", "openshift.io/roles:", "no role"},
		"Ignition's version":    {machineFile, "version: 3.2.0", "version: 3.20.0", "unsupported config version"},
		"Ignition's field":      {machineFile, "overwrite:", "overwrites:", "overwrites"},
		"not Ignition's type":   {machineFile, "mode: 0644", `mode: "0644"`, "mode"},
		"a file's mode":         {machineFile, "mode: 0644", "mode: 644", "mode 1204"},
		"no mode":               {machineFile, "          mode: 0644\n", "", "no mode"},
		"no contents":           {machineFile, "overwrite: true\n          contents:\n            source: data:", "contents: {} # data:", "has no contents"},
		"not a data URL":        {machineFile, "source: data:;", "source: file:", "invalid url scheme"},
		"a file is kept":        {machineFile, "overwrite: true", "overwrite: false", "overwrite"},
		"where the drop-in is":  {machineFile, "path: /etc/crio/crio.conf.d/", "path: /etc/crio/", "/etc/crio/99-fastlabel.conf"},
		"where the hook is":     {hooksFile, "path: /etc/containers/", "path: /usr/share/containers/", "/usr/share/containers/oci/hooks.d/fastlabel.json"},
		"another drop-in":       {dropInFile, "# Change: CRI-O", "# CRI-O", "99-fastlabel.conf differs"},
		"another hook":          {hookFile, "{\n", "{ \n", "fastlabel.json differs"},
		"nothing in the config": {machineFile, "    storage:\n", "    passwd: {}\n    storage:\n      links: []\n      files: []\n    x:\n", "0 files, and not"},
	} {
		t.Run(name, func(t *testing.T) {
			f := readFiles(t)
			if !strings.Contains(f[b.file], b.old) {
				t.Fatalf("%s has no %q to break", b.file, b.old)
			}
			f[b.file] = strings.Replace(f[b.file], b.old, b.new, 1)
			found := check(t, f)
			for _, fault := range found {
				if strings.Contains(fault, b.fault) {
					return
				}
			}
			t.Errorf("found %q, not %q", found, b.fault)
		})
	}
}

// A file that nobody checks is noticed, and so is one that is gone.
func TestMissing(t *testing.T) {
	f := readFiles(t)
	delete(f, podFile)
	f["other"] = "x"
	found := strings.Join(check(t, f), "\n")
	if !strings.Contains(found, "pod.yaml: missing") {
		t.Errorf("a missing file: %s", found)
	}
	f[podFile] = "x"
	if found := strings.Join(check(t, f), "\n"); !strings.Contains(found, "7 files") {
		t.Errorf("a file too many: %s", found)
	}
}
