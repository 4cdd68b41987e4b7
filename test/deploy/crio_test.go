// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/cri-o/cri-o/pkg/annotations"
)

// handler is what the drop-in uses of CRI-O's RuntimeHandler; checkDropIn holds
// it against CRI-O's source.
type handler struct {
	name               string
	InheritDefault     bool              `toml:"inherit_default_runtime,omitempty"`
	Path               string            `toml:"runtime_path,omitempty"` // before CRI-O 1.32
	Root               string            `toml:"runtime_root,omitempty"`
	AllowedAnnotations []string          `toml:"allowed_annotations,omitempty"`
	MinMemory          string            `toml:"container_min_memory,omitempty"`
	DefaultAnnotations map[string]string `toml:"default_annotations,omitempty"`
}

// dropIn is the way to it in CRI-O's configuration.
type dropIn struct {
	CRIO struct {
		Runtime struct {
			Runtimes map[string]*handler `toml:"runtimes"`
		} `toml:"runtime"`
	} `toml:"crio"`
}

func tomlKey(tag string) string {
	key, _, _ := strings.Cut(reflect.StructTag(tag).Get("toml"), ",")
	return key
}

func decodeDropIn(found *faults, text string) (d dropIn) {
	meta, err := toml.Decode(text, &d)
	if err != nil {
		found.add("%s: %v", dropInFile, err)
	}
	// CRI-O itself skips what it does not know.
	for _, key := range meta.Undecoded() {
		found.add("%s: %v is not used", dropInFile, key)
	}
	return d
}

// checkDropIn: one handler, of keys that CRI-O has, which allows what CRI-O
// knows and the hook reads.
func checkDropIn(t *testing.T, text string, a asks) (*handler, faults) {
	t.Helper()
	var found faults
	keys := handlerKeys(t)
	for field := range reflect.TypeFor[handler]().Fields() {
		if key := tomlKey(string(field.Tag)); key != "" && keys[key] != field.Type.String() {
			found.add("CRI-O's %s is %q and not %s", key, keys[key], field.Type)
		}
	}
	// What is commented out must be right as well.
	decodeDropIn(&found, regexp.MustCompile(`(?m)^#(\w)`).ReplaceAllString(text, "$1"))
	d := decodeDropIn(&found, text)
	if n := len(d.CRIO.Runtime.Runtimes); n != 1 {
		found.add("%s: %d handlers", dropInFile, n)
	}
	h := new(handler)
	for name, only := range d.CRIO.Runtime.Runtimes {
		h = only
		h.name = name
	}
	if !h.InheritDefault || h.Path == "" || h.Root == "" {
		found.add("%s: no runtime", dropInFile)
	}
	// A handler without a path is looked for in PATH by its name.
	if slices.Contains([]string{"fastlabel", "crun", "runc"}, h.name) {
		found.add("%s: the handler is named as a program", dropInFile)
	}
	for _, name := range h.AllowedAnnotations {
		if !slices.Contains(annotations.AllAllowedAnnotations, name) {
			found.add("%s: CRI-O does not know %s, and would leave the handler out", dropInFile, name)
		}
		if !slices.Contains(a.crio, name) {
			found.add("%s: the hook does not read %s", dropInFile, name)
		}
	}
	if !strings.Contains(text, a.crio[0]) {
		found.add("%s: no word of %s", dropInFile, a.crio[0])
	}
	return h, found
}

// removes tells whether CRI-O withholds the annotation from the container: what
// it knows, by its beginning, and the handler does not allow. The rule is that
// of FilterDisallowedAnnotations in its pkg/config.
func (h *handler) removes(annotation string) bool {
	for _, known := range annotations.AllAllowedAnnotations {
		if strings.HasPrefix(annotation, known) && !slices.Contains(h.AllowedAnnotations, known) {
			return true
		}
	}
	return false
}

// What the hook alone reads passes whatever is allowed, and what CRI-O knows
// does not.
func TestRemoves(t *testing.T) {
	a, none := readAsks(t), new(handler)
	for _, name := range a.own {
		if none.removes(name) {
			t.Errorf("removes %s", name)
		}
	}
	if name := a.crio[1]; !none.removes(name) || (&handler{AllowedAnnotations: a.crio[1:]}).removes(name) {
		t.Errorf("%s: removed %v if not allowed", name, none.removes(name))
	}
}
