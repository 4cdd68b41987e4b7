// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/internal/secctx"
)

// What a container's annotations may ask of the hook.
const (
	askRelabel = "io.fastlabel.relabel" // true, or destinations with commas between
	askShared  = "io.fastlabel.shared"  // true: level s0, for volumes that pods share
	askSkip    = "io.fastlabel.skip"    // none, root, top, unchanged
	askLabel   = "io.fastlabel.label"   // a label in place of linux.mountLabel
)

// maxDestinations bounds a list; a pod has tens of mounts. For more there is true.
const maxDestinations = 256

// askCRIO are CRI-O's own annotations: "true" asks for what skip top does.
var askCRIO = [...]string{
	"try-skip-volume-selinux-label.crio.io",
	"io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel", // its older name
}

// request is what the annotations ask.
type request struct {
	label        string // canonical
	skip         string
	all          bool     // every volume
	destinations []string // else these
}

// isAsked tells whether the annotations ask for anything.
func isAsked(annotations map[string]string) bool {
	value, ok := annotations[askRelabel]
	return ok && value != "false"
}

// readRequest reads the annotations. It returns nil where nothing is asked, and
// where there is no label: SELinux is off then, or the container goes without.
func readRequest(annotations map[string]string, mountLabel string) (*request, error) {
	if !isAsked(annotations) {
		return nil, nil
	}
	if _, own := annotations[askLabel]; !own && mountLabel == "" {
		return nil, nil
	}
	r := new(request)
	var err error
	if r.label, err = askedLabel(annotations, mountLabel); err != nil {
		return nil, err
	}
	if r.skip, err = askedSkip(annotations); err != nil {
		return nil, err
	}
	if r.all = annotations[askRelabel] == "true"; !r.all {
		r.destinations, err = askedDestinations(annotations[askRelabel])
	}
	return r, err
}

func askedLabel(annotations map[string]string, mountLabel string) (string, error) {
	label, err := "", error(nil)
	if own, ok := annotations[askLabel]; ok {
		if own == "" {
			return "", fmt.Errorf("%s is empty", askLabel)
		}
		if label, err = withLevel(own); err != nil {
			return "", fmt.Errorf("%s: %w", askLabel, err)
		}
	} else if label, err = secctx.Canonical(mountLabel); err != nil {
		return "", fmt.Errorf("linux.mountLabel: %w", err)
	}
	switch shared := annotations[askShared]; shared {
	case "true":
		return secctx.Compose(label, "", "", "", "s0")
	case "", "false":
		return label, nil
	default:
		return "", fmt.Errorf("%s is %s, not true or false", askShared, words.Brief(shared))
	}
}

// askedSkip is our own annotation, else CRI-O's, else root.
func askedSkip(annotations map[string]string) (string, error) {
	if skip, ok := annotations[askSkip]; ok {
		if skipping(&skip)(skip) != nil {
			return "", fmt.Errorf("%s is %s, not one of none, root, top, unchanged", askSkip, words.Brief(skip))
		}
		return skip, nil
	}
	for _, name := range askCRIO {
		if annotations[name] == "true" {
			return "top", nil
		}
	}
	return "root", nil
}

func askedDestinations(list string) ([]string, error) {
	if strings.TrimSpace(list) == "" {
		return nil, errors.New(askRelabel + " is empty: neither true nor a list of destinations")
	}
	var all []string
	known := map[string]bool{}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if !path.IsAbs(item) {
			return nil, fmt.Errorf("%s: %s is neither true nor an absolute destination", askRelabel, words.Brief(item))
		}
		if item = path.Clean(item); known[item] {
			continue
		}
		if len(all) == maxDestinations {
			return nil, fmt.Errorf("%s lists more than %d destinations", askRelabel, maxDestinations)
		}
		known[item] = true
		all = append(all, item)
	}
	return all, nil
}
