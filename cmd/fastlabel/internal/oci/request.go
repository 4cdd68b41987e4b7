// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/internal/secctx"
)

// What a container's annotations may ask of the hook.
const (
	AskRelabel = "io.fastlabel.relabel" // true, or destinations with commas between
	AskShared  = "io.fastlabel.shared"  // true: level s0, for volumes that pods share
	AskSkip    = "io.fastlabel.skip"    // none, root, top
	AskLabel   = "io.fastlabel.label"   // a label in place of linux.mountLabel
)

// TrySkip are the names of CRI-O's annotation for skipping a volume whose top directory
// has the label: the name from CRI-O 1.35 on, and the one before.
var TrySkip = []string{"try-skip-volume-selinux-label.crio.io", "io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel"}

// MaxDestinations bounds a list; a pod has tens of mounts. For more there is true.
const MaxDestinations = 256

// Request has what the annotations ask for.
type Request struct {
	Label        string // canonical
	Skip         string
	All          bool     // every volume
	Destinations []string // else these
}

// IsAsked reports whether the annotations ask for anything.
func IsAsked(annotations map[string]string) bool {
	value, ok := annotations[AskRelabel]
	return ok && value != "false"
}

// ReadRequest reads the annotations. It returns nil where nothing is asked, and
// where there is no label: SELinux is off then, or the container goes without.
func ReadRequest(annotations map[string]string, mountLabel string) (*Request, error) {
	if !IsAsked(annotations) {
		return nil, nil
	}
	if _, own := annotations[AskLabel]; !own && mountLabel == "" {
		return nil, nil
	}
	r := new(Request)
	var err error
	if r.Label, err = askedLabel(annotations, mountLabel); err != nil {
		return nil, err
	}
	if r.Skip, err = askedSkip(annotations); err != nil {
		return nil, err
	}
	if r.All = annotations[AskRelabel] == "true"; !r.All {
		r.Destinations, err = askedDestinations(annotations[AskRelabel])
	}
	return r, err
}

func askedLabel(annotations map[string]string, mountLabel string) (string, error) {
	text, from := mountLabel, "linux.mountLabel"
	if own, ok := annotations[AskLabel]; ok {
		text, from = own, AskLabel
	}
	if text == "" {
		return "", fmt.Errorf("%s is empty", from)
	}
	label, err := secctx.Canonical(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	switch shared := annotations[AskShared]; shared {
	case "true":
		if strings.Count(label, ":") == 2 { // a policy without MLS
			return label, nil
		}
		return secctx.Compose(label, "", "", "", "s0")
	case "", "false":
		return label, nil
	default:
		return "", fmt.Errorf("%s is %s, not true or false", AskShared, words.Brief(shared))
	}
}

// askedSkip is our own annotation, else CRI-O's, else root.
func askedSkip(annotations map[string]string) (string, error) {
	if skip, ok := annotations[AskSkip]; ok {
		if !slices.Contains([]string{"none", "root", "top"}, skip) {
			return "", fmt.Errorf("%s is %s, not one of none, root, top", AskSkip, words.Brief(skip))
		}
		return skip, nil
	}
	for _, name := range TrySkip { // asks for what skip top does
		if annotations[name] == "true" {
			return "top", nil
		}
	}
	return "root", nil
}

func askedDestinations(list string) ([]string, error) {
	if strings.TrimSpace(list) == "" {
		return nil, errors.New(AskRelabel + " is empty: neither true nor a list of destinations")
	}
	var all []string
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if !path.IsAbs(item) {
			return nil, fmt.Errorf("%s: %s is neither true nor an absolute destination", AskRelabel, words.Brief(item))
		}
		if item = path.Clean(item); slices.Contains(all, item) {
			continue
		}
		if len(all) == MaxDestinations {
			return nil, fmt.Errorf("%s lists more than %d destinations", AskRelabel, MaxDestinations)
		}
		all = append(all, item)
	}
	return all, nil
}
