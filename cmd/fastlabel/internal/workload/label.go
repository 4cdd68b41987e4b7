// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
	// TrySkip says that the pod has CRI-O's annotation for passing over a
	// volume that is labelled, under either name.
	TrySkip bool `json:"try_skip,omitempty"`
	// Recursive says that the kubelet is told not to mount with the label.
	Recursive    bool   `json:"-"`
	RuntimeClass string `json:"runtime_class,omitempty"`
}

// TrySkip are the names of CRI-O's annotation: from 1.35, and before.
var TrySkip = []string{"try-skip-volume-selinux-label.crio.io", "io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel"}

type template struct {
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		RuntimeClass   string          `yaml:"runtimeClassName"`
		Security       securityContext `yaml:"securityContext"`
		InitContainers []container     `yaml:"initContainers"`
		Containers     []container     `yaml:"containers"`
	} `yaml:"spec"`
}

type container struct {
	Name     string          `yaml:"name"`
	Security securityContext `yaml:"securityContext"`
}

type securityContext struct {
	SELinux *seLinuxOptions      `yaml:"seLinuxOptions"`
	Policy  string               `yaml:"seLinuxChangePolicy"`
	Rest    map[string]yaml.Node `yaml:",inline"`
}

type seLinuxOptions struct {
	User  string               `yaml:"user"`
	Role  string               `yaml:"role"`
	Type  string               `yaml:"type"`
	Level string               `yaml:"level"`
	Rest  map[string]yaml.Node `yaml:",inline"`
}

// check finds what Kubernetes would pass over, and leave the pod without the
// label that was meant.
func (s securityContext) check() error {
	for key := range s.Rest {
		if strings.HasPrefix(strings.ToLower(key), "selinux") {
			return fmt.Errorf("securityContext has no field %q; it is seLinuxOptions", key)
		}
	}
	if s.SELinux != nil {
		for key := range s.SELinux.Rest {
			return fmt.Errorf("seLinuxOptions has no field %q; it has user, role, type and level", key)
		}
	}
	return nil
}

// containersOf reads a pod or a template.
func containersOf(n *yaml.Node, pod string) ([]Container, error) {
	var t template
	if err := n.Decode(&t); err != nil {
		return nil, fmt.Errorf("%s: %w", pod, err)
	}
	spec := t.Spec
	if err := spec.Security.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", pod, err)
	}
	whole := Asks{RuntimeClass: spec.RuntimeClass, Recursive: spec.Security.Policy == "Recursive"}
	for _, name := range TrySkip {
		whole.TrySkip = whole.TrySkip || t.Metadata.Annotations[name] == "true"
	}
	var all []Container
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if err := c.Security.check(); err != nil {
			return nil, fmt.Errorf("%s, container %s: %w", pod, c.Name, err)
		}
		asks := whole
		asks.take(spec.Security.SELinux)
		asks.take(c.Security.SELinux)
		own := c.Security.SELinux
		asks.ContainerdDraws = asks.Level != "" && own != nil && own.Level == "" && own.User+own.Role+own.Type != ""
		if asks.Type == "spc_t" {
			asks.LeftByCRIO = "the container is of the type spc_t" // CRI-O 1.34, server/container_create.go:776
		}
		all = append(all, Container{pod, c.Name, asks})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: it has no containers", pod)
	}
	return all, nil
}

// take lets what options say outrank what was said before.
func (a *Asks) take(options *seLinuxOptions) {
	if options == nil {
		return
	}
	for _, o := range []struct {
		to   *string
		from string
	}{{&a.User, options.User}, {&a.Type, options.Type}, {&a.Level, options.Level}} {
		if o.from != "" {
			*o.to = o.from
		}
	}
}
