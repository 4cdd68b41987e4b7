// SPDX-License-Identifier: Apache-2.0

package outlook

import "slices"

// MadeWithPod are the kubelet's plugins whose volumes nothing can label beforehand.
var MadeWithPod = []string{"kubernetes.io/empty-dir", "kubernetes.io/secret", "kubernetes.io/configmap", "kubernetes.io/projected", "kubernetes.io/downward-api"}

// Labels says that a label that is written beforehand is of use.
func (v Volume) Labels() bool {
	return !v.Refused && v.NoLabels == "" && (!v.ReadOnly || v.Right) && !v.Drawn && !slices.Contains(MadeWithPod, v.Plugin)
}

// Notes are what there is to know besides, each a sentence.
func (v Volume) Notes() []string {
	var notes []string
	if v.Off {
		notes = append(notes, "SELinux is off on this machine, and runtimes relabel nothing here: this is for one on which it is on.")
	}
	if v.Plugin == "" {
		notes = append(notes, "CRI-O and containerd do this if the kubelet asks, which it does not for a hostPath, NFS, or a claim that the pod declares read-only.")
	}
	if v.Plugin == "kubernetes.io/csi" && !v.Recursive && v.Labels() {
		notes = append(notes, "A CSI driver with seLinuxMount: true has the volume mounted with the label where it can, and then nothing of this happens.")
	}
	if v.Differ {
		notes = append(notes, "The containers ask for different labels: those that share the volume take it from each other at every start.")
	}
	return notes
}

// Advice is what to write, each a sentence; that PATH is to be labelled is the
// caller's to say.
func (v Volume) Advice() []string {
	switch {
	case v.Refused:
		return []string{"Nothing helps but another directory for the container."}
	case v.NoLabels != "":
		return []string{"Nothing: there is no label to write."}
	case v.ReadOnly && !v.Right:
		return []string{"The label through a mount that can be written to: this one is read-only."}
	case slices.Contains(MadeWithPod, v.Plugin):
		return []string{"Nothing: it is made with the pod (" + v.Plugin + "), so that nothing can label it beforehand."}
	case v.Drawn:
		return []string{"A fixed level: securityContext.seLinuxOptions.level of the pod, or --security-opt label=level: of podman."}
	}
	advice := []string{"For podman: this level with --security-opt label=level:, and neither :z nor :Z."}
	if v.Shared {
		advice = []string{"For podman: neither :z nor :Z."}
	}
	if v.LeftByCRIO == "" && v.unasked() == "" {
		crio := "For CRI-O to read one label: the annotation, and a RuntimeClass whose handler allows it."
		if v.Unasked {
			crio += " The pod has no such annotation."
		}
		advice = append(advice, crio)
	}
	if v.unasked() != "" {
		advice = append(advice, "The label beforehand, or the annotation of fastlabel's hook: nothing else labels it.")
	}
	if v.Differ {
		advice = append(advice, "One level for all containers that share the volume.")
	}
	if v.ContainerdDraws {
		advice = append(advice, "For containerd: the pod's level again in each container that has seLinuxOptions of its own.")
	}
	if v.Right && !v.Vouched {
		advice = append(advice, "Only PATH's own label says that all beneath it is right: fastlabel verify reads every one.")
	}
	return advice
}
