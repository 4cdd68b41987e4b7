// SPDX-License-Identifier: Apache-2.0

// Package outlook says what container runtimes will do with a volume, how long
// that takes, and whether labelling it beforehand helps.
//
//	outlook.go   what each does
//	cost.go      how long that takes
//	verdict.go   whether it helps, and why not
package outlook

// Volume is what is known of a volume, and of who will use it.
type Volume struct {
	NoLabels string // why it bears no labels of its own; "" if it does
	Off      bool   // SELinux is off on this machine
	Refused  bool   // it is one of the system's directories
	Right    bool   // the root bears the label that is asked for

	// Strays are entries beneath that do not bear it, of those that were read.
	Strays int64

	Least, Most int64   // entries; Most 0 is not known
	Each        float64 // seconds to read one

	Drawn           bool // nobody fixes the level
	ContainerdDraws bool // only containerd draws one
	Differ          bool // containers ask for several labels
	Left            string
	LeftByCRIO      string
	Unasked         bool   // the pods do not bear the annotation
	Recursive       bool   // they keep the kubelet from mounting with the label
	Shared          bool   // the level has no categories
	Plugin          string // the kubelet's, if it mounted the volume
}

// Way is what one runtime does with the volume when a container starts.
type Way struct {
	Runtime string
	Now     Work // as the volume is
	Then    Work // once its root bears the label
}

// Work is what is done to a volume.
type Work int

// None does not look; Root reads one label; Reads reads all and writes those
// that differ; Writes writes all; ReadsOnce is Reads at the first start of a
// container, and Root at later ones.
const (
	None Work = iota
	Root
	Reads
	ReadsOnce
	Writes
	Labels // fastlabel: it reads, writes what differs, and waits for the disk
)

func (w Work) String() string {
	return [...]string{"nothing", "reads one label", "reads every label", "reads every label at its first start", "writes every label", "labels it"}[w]
}

// Ways are those of the runtimes that most people have. Sources, with versions:
// docs/runtimes.md.
func (v Volume) Ways() []Way {
	now, then := Writes, Reads
	switch {
	case v.NoLabels != "" || v.Refused || v.Left != "":
		now, then = None, None
	case v.Right:
		now = Reads
	case v.Drawn:
		then = Writes
	}
	one := func(w Work, instead Work) Work { // where all right is found without a walk
		if w == Reads {
			return instead
		}
		return w
	}
	crio := Way{"CRI-O", now, then}
	annotated := Way{"CRI-O with the annotation", one(now, Root), one(then, Root)}
	if v.LeftByCRIO != "" || v.kubeletLeaves() {
		crio.Now, crio.Then, annotated.Now, annotated.Then = None, None, None, None
	}
	containerd := Way{"containerd", now, then}
	switch {
	case v.kubeletLeaves():
		containerd.Now, containerd.Then = None, None
	case v.ContainerdDraws && now != None:
		containerd.Now, containerd.Then = Writes, Writes
	}
	podman := Way{"podman with :Z", one(now, ReadsOnce), one(then, ReadsOnce)}
	if v.Shared {
		podman.Runtime = "podman with :z"
	}
	if v.Left != "" { // that is of a pod
		podman.Now, podman.Then = Writes, ReadsOnce
	}
	hook := Way{"fastlabel's hook", one(now, Root), one(then, Root)}
	for _, w := range []*Work{&hook.Now, &hook.Then} {
		if *w == Writes {
			*w = Labels
		}
	}
	return []Way{crio, annotated, containerd, podman, hook}
}

// kubeletLeaves tells by the plugin that the kubelet never has a volume
// relabelled (docs/kubernetes.md, "Which volumes are relabelled").
func (v Volume) kubeletLeaves() bool { return v.Plugin == "kubernetes.io/nfs" }
