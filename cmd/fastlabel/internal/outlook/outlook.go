// SPDX-License-Identifier: Apache-2.0

// Package outlook says what container runtimes will do with a volume and why, and
// what to write so that they do less.
//
//	outlook.go   what each does
//	advice.go    what to know besides, and what to write
package outlook

// Volume is what is known of a volume, and of the pods that will use it.
type Volume struct {
	NoLabels string // why no label can be written there; "" if one can
	ReadOnly bool   // its mount is
	Off      bool   // SELinux is off on this machine
	Refused  bool   // it is one of the system's directories
	Right    bool   // the root has the label that is asked for
	Vouched  bool   // a finished run to that label left its mark there

	Drawn           bool // no level is asked for
	ContainerdDraws bool // only containerd draws one
	Differ          bool // containers ask for several labels
	LeftByCRIO      string
	Unasked         bool   // the pods have no annotation that lets CRI-O skip it
	Recursive       bool   // they keep the kubelet from mounting with the label
	Shared          bool   // the level has no categories
	Plugin          string // the kubelet's, if it mounted the volume
}

// Way is what one runtime does with the volume when a container starts.
type Way struct {
	Runtime string `json:"runtime"`
	Now     Work   `json:"now"`      // as the volume is
	Then    Work   `json:"labelled"` // once its root has the label
	Why     string `json:"why"`      // of Now: a sentence
}

// Work is what is done to a volume.
type Work int

// None does not look; Root reads one label; Reads reads all and writes those
// that differ; ReadsOnce is Reads at the first start of a container, and Root at
// later ones; Writes writes all; Labels is fastlabel; Fails creates no container.
const (
	None Work = iota
	Root
	Reads
	ReadsOnce
	Writes
	Labels
	Fails
)

func (w Work) String() string {
	return [...]string{"nothing", "reads one label", "reads every label", "reads every label once", "writes every label", "labels it", "fails"}[w]
}

func (w Work) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// Why a runtime does what it does. Sources, with versions: docs/runtimes.md.
const (
	whyReads  = "PATH has the label. go-selinux reads that of every entry all the same, and writes those that differ."
	whyWrites = "PATH does not have the label. go-selinux then writes it to every entry, and reads none."
	whyDrawn  = "No level is asked for, so each start draws another, and the label never fits."
	whyRoot   = "It reads PATH's label, which is right, and nothing beneath."
	whyOnce   = "It reads every label at a container's first start, and only PATH's at later ones."
	whyLabels = "It reads the labels, writes those that differ, and PATH's last."
)

// Ways are those of the runtimes that most people have.
func (v Volume) Ways() []Way {
	podman := v.asked()
	podman.Runtime = "podman with :Z"
	if v.Shared {
		podman.Runtime = "podman with :z"
	}
	podman.trust(ReadsOnce, whyOnce)

	crio := v.asked()
	if v.LeftByCRIO != "" {
		crio = Way{Why: "CRI-O relabels nothing here: " + v.LeftByCRIO + "."}
	}
	containerd := v.asked()
	switch {
	case containerd.Now == None:
		containerd = Way{Now: Fails, Then: Fails, Why: "No label can be written there (" + v.NoLabels + "), which it takes for a failure: no container is created."}
	case v.ContainerdDraws && containerd.Now != Fails:
		containerd = Way{Now: Writes, Then: Writes, Why: "A container with seLinuxOptions of its own, and no level in them, gets another level at each start."}
	}
	if why := v.unasked(); why != "" {
		crio, containerd = Way{Why: why}, Way{Why: why}
	}
	crio.Runtime, containerd.Runtime = "CRI-O", "containerd"
	annotated := crio
	annotated.Runtime = "CRI-O with the annotation"
	annotated.trust(Root, whyRoot)

	hook := v.asked()
	if hook.Now == Fails && !v.Refused {
		hook = Way{Why: "Its mount is read-only, which is ignored."}
	}
	hook.Runtime = "fastlabel's hook"
	hook.trust(Root, whyRoot)
	if hook.Now == Writes {
		hook.Now, hook.Why = Labels, whyLabels
	}
	if hook.Then == Writes {
		hook.Then = Labels
	}
	return []Way{crio, annotated, containerd, podman, hook}
}

// asked is what any runtime does that is asked to relabel the volume.
func (v Volume) asked() Way {
	switch {
	case v.Refused:
		return Way{Now: Fails, Then: Fails, Why: "PATH is a directory of the system, which may not be relabelled: a container that asks for it is not created."}
	case v.NoLabels != "":
		return Way{Why: "No label can be written there (" + v.NoLabels + "), which is ignored."}
	case v.ReadOnly && !v.Right:
		return Way{Now: Fails, Then: Fails, Why: "Its mount is read-only and PATH does not have the label: no container is created that asks for it."}
	case v.Drawn:
		return Way{Now: Writes, Then: Writes, Why: whyDrawn}
	case v.Right:
		return Way{Now: Reads, Then: Reads, Why: whyReads}
	}
	return Way{Now: Writes, Then: Reads, Why: whyWrites}
}

// trust is of a runtime that finds without a walk that all is right.
func (w *Way) trust(work Work, why string) {
	if w.Now == Reads {
		w.Now, w.Why = work, why
	}
	if w.Then == Reads {
		w.Then = work
	}
}

// unasked says why the kubelet never has the volume relabelled, "" if it may
// (docs/kubernetes.md, "Which volumes are relabelled").
func (v Volume) unasked() string {
	switch {
	case v.Plugin == "kubernetes.io/nfs":
		return "The kubelet never asks for NFS to be relabelled."
	case v.Plugin == "kubernetes.io/csi" && v.NoLabels != "":
		return "No label can be written there (" + v.NoLabels + "), and the kubelet does not ask."
	}
	return ""
}
