// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Package yaml compares each key of a mapping with each other one, keeps an error for
// every pair that is equal, and decodes what an alias stands for each time. So nothing
// is decoded before bound has found that it is small: a text of 1 MiB may have 200,000
// values where kubectl wrote it, and a mapping of a pod has some ten keys.
const (
	maxValues = 200_000
	maxKeys   = 1000
)

// bound counts the values in all documents, those behind an alias each time.
type bound struct{ values int }

func (b *bound) add(n *yaml.Node) error {
	e := expansion{sizes: map[*yaml.Node]int{}}
	size, err := e.size(n)
	if b.values = min(b.values+size, maxValues+1); err == nil && b.values > maxValues {
		err = fmt.Errorf("more than %d values", maxValues)
	}
	return err
}

// expansion knows how large the anchors of a document are.
type expansion struct{ sizes map[*yaml.Node]int }

// size is how many values n has. It visits each node once.
func (e expansion) size(n *yaml.Node) (int, error) {
	if n.Kind == yaml.AliasNode {
		size, done := e.sizes[n.Alias]
		if !done {
			return 0, fmt.Errorf("line %d: %.40q contains itself", n.Line, n.Value)
		}
		return size, nil
	}
	if n.Kind == yaml.MappingNode {
		if err := checkKeys(n); err != nil {
			return 0, err
		}
	}
	size := 1
	for _, child := range n.Content {
		more, err := e.size(child)
		if err != nil {
			return 0, err
		}
		size = min(size+more, maxValues+1)
	}
	if n.Anchor != "" {
		e.sizes[n] = size
	}
	return size, nil
}

// checkKeys finds a key that a mapping has twice.
func checkKeys(n *yaml.Node) error {
	if len(n.Content) > 2*maxKeys {
		return fmt.Errorf("line %d: a mapping of more than %d keys", n.Line, maxKeys)
	}
	type key struct {
		kind  yaml.Kind
		value string
	}
	seen := make(map[key]int, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		at := key{k.Kind, k.Value}
		if line, twice := seen[at]; twice {
			return fmt.Errorf("line %d: mapping key %.40q already defined at line %d", k.Line, k.Value, line)
		}
		seen[at] = k.Line
	}
	return nil
}
