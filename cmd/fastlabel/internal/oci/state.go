// SPDX-License-Identifier: Apache-2.0

// Package oci reads what a runtime tells a hook: the state, config.json in the
// bundle, what the annotations ask, and which of the mounts are volumes.
package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

const (
	// MaxState bounds the state. Kubernetes allows 256 KiB of annotations a
	// pod; CRI-O puts them in twice, once as JSON in a string.
	MaxState = 4 << 20
	// maxConfig bounds config.json: ten times what etcd takes for a pod
	// (1.5 MiB).
	maxConfig = 16 << 20
)

// DecodeState decodes the state that a runtime writes to a hook's stdin. It refuses what
// the runtime-spec does: a state without its required parts, or with a bundle that is not
// absolute. What it does not know, as crun's root, is ignored, as the specification asks. The
// state that is returned beside an error serves to name the container.
func DecodeState(text []byte) (specs.State, error) {
	var s specs.State
	if len(text) == 0 {
		return s, errors.New("the state on stdin is empty")
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the state on stdin: %w", err)
	}
	for _, part := range []struct{ name, value string }{
		{"ociVersion", s.Version}, {"id", s.ID}, {"status", string(s.Status)}, {"bundle", s.Bundle},
	} {
		if part.value == "" {
			return s, fmt.Errorf("the state on stdin has no %s", part.name)
		}
	}
	if s.Pid < 1 && (s.Status == specs.StateCreated || s.Status == specs.StateRunning) {
		return s, fmt.Errorf("the state on stdin is %s and has no pid", s.Status)
	}
	if !filepath.IsAbs(s.Bundle) {
		return s, fmt.Errorf("bundle %s is not an absolute path", words.Brief(s.Bundle))
	}
	return s, nil
}

// Config is the part of config.json that is needed. A specs.Spec would refuse the whole file
// for a part that is not, such as the capabilities of an old one.
type Config struct {
	Annotations map[string]string `json:"annotations"`
	Mounts      []Mount           `json:"mounts"`
	Linux       struct {
		MountLabel string `json:"mountLabel"`
	} `json:"linux"`
	Hooks specs.Hooks `json:"hooks"`
}

// Mount is a mount of a container.
type Mount specs.Mount

// IsBind tells a bind mount as runtimes do: some write only the option.
func (m Mount) IsBind() bool {
	return m.Type == "bind" || slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind")
}

// Place is the destination in one spelling. Old configurations have relative
// ones, which the runtime-spec reads from the container's root.
func (m Mount) Place() string { return path.Clean("/" + m.Destination) }

// ReadConfig reads config.json in bundle. A bundle that is a link is refused,
// and so is a config.json that leads out of the bundle: neither is how a
// runtime makes them.
func ReadConfig(bundle string) (*Config, error) {
	bundle = filepath.Clean(bundle)
	info, err := os.Lstat(bundle)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("bundle %s is not a directory but %s", words.Plain(bundle), kind(info.Mode()))
	}
	root, err := os.OpenRoot(bundle)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	defer root.Close()
	// A FIFO in its place shall not hold the hook.
	f, err := root.OpenFile("config.json", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", words.Plain(bundle), err)
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is %s", kind(info.Mode()))
	}
	var text []byte
	if err == nil {
		text, err = ReadAtMost(f, maxConfig)
	}
	c := new(Config)
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		return nil, fmt.Errorf("config.json in bundle %s: %w", words.Plain(bundle), err)
	}
	return c, nil
}

// ReadAtMost reads all of r, and refuses what is longer than most.
func ReadAtMost(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("larger than %s bytes", words.Thousands(most))
	}
	return text, err
}

// Timeout is the least that the runtime gives this program, by its entries in
// config.json; 0 if they say nothing.
func (c *Config) Timeout() time.Duration {
	const most = 24 * 60 * 60 // more does not matter, and would overflow
	var least time.Duration
	for _, e := range slices.Concat(c.Hooks.Prestart, c.Hooks.CreateRuntime) {
		if e.Timeout == nil || *e.Timeout < 1 || !runsThis(e) {
			continue
		}
		if d := time.Duration(min(*e.Timeout, most)) * time.Second; least == 0 || d < least {
			least = d
		}
	}
	return least
}

// runsThis reports whether the entry is the one that started this program: by
// the file, however it is named, or by the arguments.
func runsThis(e specs.Hook) bool {
	this, _ := os.Stat("/proc/self/exe")
	that, _ := os.Stat(e.Path)
	return len(e.Args) > 0 && slices.Equal(e.Args, os.Args) || os.SameFile(this, that)
}

// kind names what is neither a directory nor a regular file.
func kind(m fs.FileMode) string {
	return map[fs.FileMode]string{
		0: "a file", fs.ModeDir: "a directory", fs.ModeSymlink: "a symbolic link", fs.ModeNamedPipe: "a FIFO", fs.ModeSocket: "a socket",
		fs.ModeDevice: "a device", fs.ModeDevice | fs.ModeCharDevice: "a device",
	}[m.Type()]
}
