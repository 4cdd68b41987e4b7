// SPDX-License-Identifier: Apache-2.0

// Package workload reads Kubernetes manifests for what they say of SELinux: which
// label a runtime will ask of the volumes of each container.
//
//	workload.go   documents, and the pods in them
//	bound.go      what a hostile document may cost
//	label.go      what a container asks for
package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Pods is what a file of manifests holds.
type Pods struct {
	Containers []Container
	// Unread are kinds that were skipped, each once: the first maxUnread.
	Unread []string
}

// Container is one container of a pod or of a pod template.
type Container struct {
	Pod  string `json:"pod"` // kind and name, as in "Deployment web"
	Name string `json:"container"`
	Asks
}

// maxUnread is how many kinds are named that hold no pod.
const maxUnread = 20

// paths lead from a kind to the pod's spec and metadata.
var paths = map[string][]string{
	"Pod":                   {},
	"PodTemplate":           {"template"},
	"Deployment":            {"spec", "template"},
	"StatefulSet":           {"spec", "template"},
	"DaemonSet":             {"spec", "template"},
	"ReplicaSet":            {"spec", "template"},
	"ReplicationController": {"spec", "template"},
	"DeploymentConfig":      {"spec", "template"}, // OpenShift's
	"Job":                   {"spec", "template"},
	"CronJob":               {"spec", "jobTemplate", "spec", "template"},
}

type document struct {
	Kind     string    `yaml:"kind"`
	Metadata metadata  `yaml:"metadata"`
	Items    yaml.Node `yaml:"items"`
}

type metadata struct {
	Name         string            `yaml:"name"`
	GenerateName string            `yaml:"generateName"`
	Annotations  map[string]string `yaml:"annotations"`
}

// Read reads YAML or JSON, one document or several, lists too, in time linear in the
// text. A file without a pod is an error, and so is a spelling of the fields for
// SELinux that Kubernetes would ignore.
func Read(text []byte) (Pods, error) {
	var pods Pods
	d, b := yaml.NewDecoder(bytes.NewReader(text)), bound{}
	for {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = b.add(&n)
		}
		if err == nil {
			err = pods.add(&n)
		}
		if err != nil {
			return Pods{}, err
		}
	}
	if len(pods.Containers) == 0 {
		return Pods{}, fmt.Errorf("it holds no pod%s", found(pods.Unread))
	}
	return pods, nil
}

func found(kinds []string) string {
	if len(kinds) == 0 {
		return ""
	}
	return ": " + strings.Join(kinds, ", ")
}

func (p *Pods) add(n *yaml.Node) error {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	n = aliased(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil // between two lines of ---
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: not a Kubernetes object", n.Line)
	}
	var doc document
	if err := n.Decode(&doc); err != nil {
		return err
	}
	if items := aliased(&doc.Items); strings.HasSuffix(doc.Kind, "List") && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			if err := p.add(item); err != nil {
				return err
			}
		}
		return nil
	}
	path, known := paths[doc.Kind]
	if !known {
		if doc.Kind == "" {
			return fmt.Errorf("line %d: an object without a kind", n.Line)
		}
		if len(p.Unread) < maxUnread && !slices.Contains(p.Unread, doc.Kind) {
			p.Unread = append(p.Unread, doc.Kind)
		}
		return nil
	}
	name := doc.Metadata.Name
	if name == "" {
		name = doc.Metadata.GenerateName
	}
	pod := strings.TrimSpace(doc.Kind + " " + name)
	for _, key := range path {
		if n = child(n, key); n == nil {
			return fmt.Errorf("%s: it has no %s", pod, strings.Join(path, "."))
		}
	}
	containers, err := containersOf(n, pod)
	p.Containers = append(p.Containers, containers...)
	return err
}

// child returns what a mapping holds under a key, whether it is its own or merged into
// it (<<).
func child(n *yaml.Node, key string) *yaml.Node {
	var in map[string]yaml.Node
	if n.Decode(&in) != nil {
		return nil
	}
	if of, has := in[key]; has {
		return &of
	}
	return nil
}

// aliased is n, or what it is an alias of.
func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
