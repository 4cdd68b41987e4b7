// SPDX-License-Identifier: Apache-2.0

package outlook

import "fmt"

// Help says whether labelling a volume beforehand helps.
type Help string

// The answers; they are in JSON as they are here.
const (
	Yes  Help = "yes"
	Part Help = "in part"
	No   Help = "no"
)

// Verdict is the answer and its reasons, each a sentence.
func (v Volume) Verdict() (Help, []string) {
	help, reasons := v.judge()
	if v.Off {
		reasons = append(reasons, "SELinux is off on this machine, and runtimes relabel nothing here: this is for one on which it is on.")
	}
	return help, reasons
}

func (v Volume) judge() (Help, []string) {
	switch {
	case v.Refused:
		return No, []string{"It is a directory of the system: neither runtimes nor fastlabel relabel it."}
	case v.NoLabels != "":
		return No, []string{"It bears no labels of its own: " + v.NoLabels + ". Runtimes pass it over."}
	case v.Left != "":
		return No, []string{"No runtime relabels it: " + v.Left + "."}
	case v.Drawn:
		return No, []string{"No level is asked for, so each start draws another, and no label fits twice. Fix one: securityContext.seLinuxOptions.level of the pod, or --security-opt label=level: of podman."}
	}
	help := Yes
	reasons := []string{
		"With CRI-O it takes the annotation, else it still reads every label, as containerd does; with podman leave out :z and :Z.",
	}
	if v.Unasked {
		reasons = append(reasons, "The pod does not bear that annotation.")
	}
	switch {
	case v.Right && v.Strays > 0:
		reasons = append(reasons, fmt.Sprintf("PATH bears the label, and not all beneath it: %d of the entries that were read do not. Whoever trusts PATH leaves those as they are. Run fastlabel.", v.Strays))
	case v.Right:
		reasons = append(reasons, "PATH bears the label, and all that was read beneath it: it seems to be done. fastlabel verify reads everything.")
	}
	add := func(is bool, why string) {
		if is {
			help = Part
			reasons = append(reasons, why)
		}
	}
	add(v.Differ, "The containers ask for different labels: those that share the volume take it from each other at every start. Give them one level.")
	add(v.ContainerdDraws, "With containerd a container that has seLinuxOptions of its own, and no level in them, draws one: repeat the pod's level there.")
	add(v.LeftByCRIO != "", "CRI-O relabels nothing here: "+v.LeftByCRIO+".")
	switch v.Plugin {
	case "kubernetes.io/nfs":
		add(true, "The kubelet never has NFS relabelled: this, or the hook, is the only labelling there is.")
	case "kubernetes.io/csi":
		if v.Recursive {
			break
		}
		reasons = append(reasons, "A CSI driver with seLinuxMount: true has the volume mounted with the label where it can, and then nothing of this happens.")
	case "kubernetes.io/empty-dir", "kubernetes.io/secret", "kubernetes.io/configmap", "kubernetes.io/projected", "kubernetes.io/downward-api":
		return No, []string{"It is made with the pod (" + v.Plugin + "), so that nobody can label it beforehand; it is mostly small."}
	}
	return help, reasons
}
