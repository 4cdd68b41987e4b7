// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fastlabel/fastlabel/internal/secctx"
)

// A pod's author chooses the annotation, and with it only whether the pod waits. Which
// label is written, and where, comes from what the runtime and the kubelet made: the
// sandbox's config.json and the mounts beneath the pod's own directory.
const (
	annotation = "io.fastlabel/prelabel"
	// fixed says that the level is the same at each try, without naming it: that of
	// an OpenShift namespace.
	fixed = "fixed"
)

// outcome is the end of a request, for logs and metrics.
type outcome string

const (
	labelled   outcome = "labelled"   // the volumes have the label
	goesOn     outcome = "goes_on"    // the work is under way
	mistyped   outcome = "mistyped"   // the annotation is no level
	drawn      outcome = "drawn"      // the level is not the annotation's: it changes with each try
	unconfined outcome = "unconfined" // spc_t: CRI-O does not relabel for it
	hostPID    outcome = "host_pid"   // the label of the containers is not that of the sandbox
	noLabel    outcome = "no_label"   // without SELinux, or hostIPC
	noVolume   outcome = "no_volume"  // nothing that can have a label and is written to
	unreadable outcome = "unreadable" // config.json, or the table of mounts
	failed     outcome = "failed"     // some entries could not be labelled
)

// maxConfig bounds config.json: ten times what etcd takes for a pod.
const maxConfig = 16 << 20

// safe is one element of a path. Identifiers and UIDs are of hexadecimal digits and
// hyphens; what is none must not lead elsewhere.
var safe = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// places are the directories of the kubelet and the runtime.
type places struct {
	pods    string
	bundles []string // with {id}
}

// sandbox is a sandbox as config.json describes it.
type sandbox struct {
	Process struct {
		SELinuxLabel string `json:"selinuxLabel"`
	} `json:"process"`
	Linux struct {
		MountLabel string `json:"mountLabel"`
		Namespaces []struct {
			Type string `json:"type"`
		} `json:"namespaces"`
	} `json:"linux"`
}

// sandbox reads the config.json of the sandbox id, where the runtime has it.
func (p places) sandbox(id string) (sandbox, error) {
	if !safe.MatchString(id) {
		return sandbox{}, fmt.Errorf("sandbox %q: not an identifier", id)
	}
	for _, b := range p.bundles {
		s, err := readConfig(strings.ReplaceAll(b, "{id}", id))
		if !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	return sandbox{}, fmt.Errorf("sandbox %s: no config.json in any of %q", id, p.bundles)
}

// readConfig takes nothing for config.json but a regular file, by that name, in a
// directory: it is root's own, and this costs nothing.
func readConfig(bundle string) (s sandbox, err error) {
	if info, err := os.Lstat(bundle); err != nil {
		return s, err
	} else if !info.IsDir() {
		return s, &fs.PathError{Op: "open", Path: bundle, Err: syscall.ENOTDIR}
	}
	name := filepath.Join(bundle, "config.json")
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return s, err
	}
	defer f.Close() // only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return s, err
	case !info.Mode().IsRegular():
		return s, fmt.Errorf("%s: not a regular file", name)
	case info.Size() > maxConfig:
		return s, fmt.Errorf("%s: longer than %d bytes", name, maxConfig)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// wants is the label for the pod's volumes; or an outcome other than labelled, and why.
func (s sandbox) wants(value string) (label string, o outcome, err error) {
	if s.Linux.MountLabel == "" {
		return "", noLabel, nil
	}
	if label, err = secctx.Canonical(s.Linux.MountLabel); err != nil {
		return "", unreadable, err
	}
	if value != fixed {
		// Spelled otherwise it is the same level, and the same label when composed.
		named, err := secctx.Compose(label, "", "", "", value)
		if err != nil || value == "" {
			return "", mistyped, fmt.Errorf("the annotation %s: %.80q is neither a level, such as s0:c10,c20, nor %q", annotation, value, fixed)
		}
		if named != label {
			return "", drawn, fmt.Errorf("the annotation says %s, the sandbox has %s", value, label)
		}
	}
	if fields := strings.SplitN(s.Process.SELinuxLabel, ":", 4); len(fields) > 2 && fields[2] == "spc_t" {
		return "", unconfined, nil
	}
	// Runtimes leave out what the host's namespaces are used for.
	own := len(s.Linux.Namespaces) == 0
	for _, n := range s.Linux.Namespaces {
		own = own || n.Type == "pid"
	}
	if !own {
		return "", hostPID, nil
	}
	return label, labelled, nil
}

// pods remember what pods asked that have not started, by UID.
type pods struct {
	mu   sync.Mutex
	last map[string]*memory
}

type memory struct {
	// label is that of a pod that calls its level fixed. One that is drawn at each try would
	// never be done.
	label string
	asked time.Time
	waits bool // it was told to come again
}

// remembered is many times the kubelet's pause between two tries, 10 to 15 s.
const remembered = 15 * time.Minute

// of returns what is known of a pod that asks. mu is held.
func (p *pods) of(uid string) *memory {
	now := time.Now()
	maps.DeleteFunc(p.last, func(_ string, m *memory) bool { return now.Sub(m.asked) > remembered })
	if p.last == nil {
		p.last = make(map[string]*memory)
	}
	m := cmp.Or(p.last[uid], new(memory))
	m.asked = now
	p.last[uid] = m
	return m
}

// changed reports whether the pod had another label when it asked before.
func (p *pods) changed(uid, label string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.of(uid)
	m.label = cmp.Or(m.label, label)
	return m.label != label
}

// answered notes whether the pod has to come again. One that has its label, or is not to get one here,
// is forgotten.
func (p *pods) answered(uid string, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of(uid).waits = o == goesOn; o != goesOn && o != drawn {
		delete(p.last, uid)
	}
}

// waiting counts the pods that wait: one that is deleted asks no more.
func (p *pods) waiting() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.last {
		if m.waits && time.Since(m.asked) < time.Minute {
			n++
		}
	}
	return n
}
