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
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
	"github.com/fastlabel/fastlabel/internal/mountinfo"
	"github.com/fastlabel/fastlabel/internal/secctx"
)

const (
	// MaxState bounds the state. Kubernetes allows 256 KiB of annotations a
	// pod; CRI-O puts them in twice, once as JSON in a string.
	MaxState = 4 << 20
	// maxConfig bounds config.json: ten times what etcd takes for a pod
	// (1.5 MiB).
	maxConfig = 16 << 20
)

// DecodeState decodes the state that a runtime writes to a hook's stdin. What is not needed is
// ignored, as crun's root. The state that is returned beside an error serves to name the container.
func DecodeState(text []byte) (specs.State, error) {
	var s specs.State
	if len(text) == 0 {
		return s, errors.New("the state on stdin is empty")
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the state on stdin: %w", err)
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

// maxDestinations bounds a list; a pod has tens of mounts. For more there is true.
const maxDestinations = 256

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
		if len(all) == maxDestinations {
			return nil, fmt.Errorf("%s lists more than %d destinations", AskRelabel, maxDestinations)
		}
		all = append(all, item)
	}
	return all, nil
}

// What "true" means, of all that a container has: the directories that are its
// volumes, and that it may write to. A runtime binds much else: the host's
// configuration, its devices, its kernel's filesystems, the kubelet's secrets. To
// give those the label of one container would break the host, or others.

// Host has the directories of the host itself.
type Host struct{ whole, closed, kubelet []string } // directories, by each of their names

// TheHost resolves links: a source is resolved too, and /etc or /var/lib/kubelet
// may be a link on this host.
func TheHost() Host {
	return Host{named(mountinfo.NeverWhole...), named(mountinfo.HostsOwn...), named("/var/lib/kubelet")}
}

func named(dirs ...string) (all []string) {
	for _, d := range dirs {
		all = append(all, d)
		if real, err := filepath.EvalSymlinks(d); err == nil && real != d {
			all = append(all, real)
		}
	}
	return all
}

// NeverWhole is NoVolume's reason where a list of destinations is refused too.
const NeverWhole = "a system directory or device, or holds one"

// NoVolume returns why the mount of source, which is resolved, is no volume; "" if
// it is one.
func (h Host) NoVolume(m Mount, source string) string {
	info, err := os.Lstat(source)
	if err == nil && info.Mode()&os.ModeDevice != 0 || slices.ContainsFunc(h.whole, func(p string) bool { return lies(source, p) }) {
		return NeverWhole
	}
	if slices.ContainsFunc(h.closed, func(p string) bool { return lies(p, source) }) {
		return "the host's own"
	}
	if h.isKubelets(source) {
		return "the kubelet's own"
	}
	switch {
	case err != nil: // the engine tells
		return ""
	case !info.IsDir():
		return kind(info.Mode())
	case m.readOnly():
		return "mounted read-only"
	}
	return ""
}

// beneathPods is what the kubelet keeps for a pod, wherever its directory is. Of
// a volume's directory it is the plugin, of a subpath the volume.
var beneathPods = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*?/pods/[^/]+)/(?:volumes/([^/]+)/|etc-hosts/|containers/|volume-subpaths/([^/]+)/)`)
})

// isKubelets reports whether source is written by the kubelet: its directory but
// for the volumes in it, and of those secrets, config maps and the like.
func (h Host) isKubelets(source string) bool {
	if at := beneathPods().FindStringSubmatch(source + "/"); at != nil {
		pod, plugin, volume := at[1], at[2], at[3]
		switch {
		case volume != "":
			return slices.ContainsFunc(kubeletWrites, func(name string) bool {
				info, err := os.Lstat(filepath.Join(pod, "volumes", name, volume))
				return err == nil && info.IsDir()
			})
		case plugin != "":
			return slices.Contains(kubeletWrites, plugin)
		}
		return true
	}
	return slices.ContainsFunc(h.kubelet, func(k string) bool { return lies(k, source) || lies(source, k) })
}

// kubeletWrites are the plugins whose volumes the kubelet writes and labels.
var kubeletWrites = []string{"kubernetes.io~configmap", "kubernetes.io~downward-api", "kubernetes.io~projected", "kubernetes.io~secret"}

// lies reports whether path is dir, or lies beneath it.
func lies(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// readOnly reports whether the container cannot write there: the last word counts.
func (m Mount) readOnly() (ro bool) {
	for _, o := range m.Options {
		switch o {
		case "ro", "rro":
			ro = true
		case "rw", "rrw":
			ro = false
		}
	}
	return ro
}
