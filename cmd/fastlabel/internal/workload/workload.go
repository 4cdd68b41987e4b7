// SPDX-License-Identifier: Apache-2.0

// Package workload reads Kubernetes objects for what they say of SELinux: which label a
// runtime will ask of the volumes of each container. It reads JSON, as kubectl -o json
// prints it: the API server has then dropped misspelled fields and added its own.
package workload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Pods is what a file of objects holds.
type Pods struct {
	Containers []Container
	// Unread are kinds that hold no pod, each once: the first maxUnread.
	Unread []string
}

const maxUnread = 20

// Container is one container of a pod or of a pod template.
type Container struct {
	Pod  string `json:"pod"` // kind and name, as in "Deployment web"
	Name string `json:"container"`
	Asks
}

// Asks is what one container asks of its volumes' labels.
//
// User and level of seLinuxOptions are the volume's too; role and type are the
// process's alone: the volume's are the policy's (InitLabels of go-selinux,
// go-selinux/label/label_linux.go, v1.15.1).
type Asks struct {
	Level string `json:"level,omitempty"` // "": it is drawn
	User  string `json:"user,omitempty"`  // "": the policy's
	Type  string `json:"-"`               // of the process; "": the policy's
	// LeftByCRIO says why CRI-O leaves the volumes alone, "" if it does not.
	// That a container is privileged changes nothing (docs/kubernetes.md).
	LeftByCRIO string `json:"left_by_crio,omitempty"`
	// ContainerdDraws says that with containerd the level is drawn all the same:
	// it takes a container's own options whole, without a level if they have
	// none. CRI-O takes from the pod what the container does not say. (Read in
	// buildContainerSpec of containerd 2, SelinuxLabel of CRI-O 1.34.)
	ContainerdDraws bool `json:"containerd_draws,omitempty"`
	// TrySkip says that the pod has CRI-O's annotation for skipping a volume that is
	// labelled, under either name.
	TrySkip bool `json:"try_skip,omitempty"`
	// Recursive says that the kubelet is told not to mount with the label.
	Recursive    bool   `json:"-"`
	RuntimeClass string `json:"runtime_class,omitempty"`
}

// TrySkip are the names of CRI-O's annotation: from 1.35, and before.
var TrySkip = []string{"try-skip-volume-selinux-label.crio.io", "io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel"}

// object is a pod, what has a template of pods, or a list.
type object struct {
	Kind     string
	Metadata metadata
	Items    []json.RawMessage
	Template *template // of a PodTemplate
	Spec     struct {
		podSpec
		Template    *template
		JobTemplate struct{ Spec struct{ Template *template } } // of a CronJob
	}
}

type metadata struct {
	Name, GenerateName string
	Annotations        map[string]string
}

type template struct {
	Metadata metadata
	Spec     podSpec
}

type podSpec struct {
	RuntimeClassName           string
	SecurityContext            securityContext
	InitContainers, Containers []struct {
		Name            string
		SecurityContext securityContext
	}
}

type securityContext struct {
	SELinuxOptions      *struct{ User, Role, Type, Level string }
	SELinuxChangePolicy string
}

// Read reads an object or several, one after the other. A file without a pod is an
// error.
func Read(text []byte) (Pods, error) {
	var pods Pods
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		items := []object{o}
		if o.Items != nil {
			items = make([]object, len(o.Items))
		}
		for i := range o.Items {
			err = cmp.Or(err, json.Unmarshal(o.Items[i], &items[i]))
		}
		if err != nil {
			return Pods{}, fmt.Errorf("no Kubernetes object in JSON: %w; to have one: kubectl get -o json", err)
		}
		for _, item := range items {
			if err := pods.add(item); err != nil {
				return Pods{}, err
			}
		}
	}
	if len(pods.Containers) == 0 {
		return Pods{}, errors.New(strings.TrimSuffix("it holds no pod: "+strings.Join(pods.Unread, ", "), ": "))
	}
	return pods, nil
}

func (p *Pods) add(o object) error {
	t := cmp.Or(o.Template, o.Spec.Template, o.Spec.JobTemplate.Spec.Template)
	if o.Kind == "Pod" {
		t = &template{o.Metadata, o.Spec.podSpec}
	}
	if t == nil {
		if len(p.Unread) < maxUnread && o.Kind != "" && !slices.Contains(p.Unread, o.Kind) {
			p.Unread = append(p.Unread, o.Kind)
		}
		return nil
	}
	pod := strings.TrimSpace(o.Kind + " " + cmp.Or(o.Metadata.Name, o.Metadata.GenerateName))
	before := len(p.Containers)
	p.Containers = append(p.Containers, t.containers(pod)...)
	if len(p.Containers) == before {
		return fmt.Errorf("%s: it has no containers", pod)
	}
	return nil
}

// containers are those of the pod.
func (t *template) containers(pod string) (all []Container) {
	spec := t.Spec
	whole := Asks{RuntimeClass: spec.RuntimeClassName, Recursive: spec.SecurityContext.SELinuxChangePolicy == "Recursive"}
	for _, name := range TrySkip {
		whole.TrySkip = whole.TrySkip || t.Metadata.Annotations[name] == "true"
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		asks := whole
		asks.take(spec.SecurityContext)
		asks.take(c.SecurityContext)
		own := c.SecurityContext.SELinuxOptions
		asks.ContainerdDraws = asks.Level != "" && own != nil && own.Level == "" && own.User+own.Role+own.Type != ""
		if asks.Type == "spc_t" {
			asks.LeftByCRIO = "the container is of the type spc_t" // CRI-O 1.34, server/container_create.go:776
		}
		all = append(all, Container{pod, c.Name, asks})
	}
	return all
}

// take lets what options say outrank what was said before.
func (a *Asks) take(c securityContext) {
	if o := c.SELinuxOptions; o != nil {
		a.User, a.Type, a.Level = cmp.Or(o.User, a.User), cmp.Or(o.Type, a.Type), cmp.Or(o.Level, a.Level)
	}
}
