// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"

	"github.com/fastlabel/fastlabel/relabel"
	"github.com/fastlabel/fastlabel/test/treetest"
)

const (
	oldLabel = "system_u:object_r:mnt_t:s0"
	newLabel = "system_u:object_r:container_file_t:s0:c10,c20"
	itsLevel = "s0:c10,c20"
	tenFiles = "default label=" + oldLabel + "\ndir .\nfile f%d x9\n"
	entries  = 10
)

// node is a machine as the plugin sees it: a kubelet's directory of pods, a runtime's
// sandboxes, and the side of NRI that containerd and CRI-O have.
type node struct {
	t       *testing.T
	dir     string
	sockets string
	runtime *adaptation.Adaptation
	ids     int

	mu    sync.Mutex
	conns []net.Conn // between the plugin and the runtime
}

func newNode(t *testing.T) *node {
	t.Helper()
	treetest.Need(t, "root", "tmpfs")
	// The test fails if something of the volumes is open at its end. That sockets are is
	// no matter.
	n := &node{t: t, dir: treetest.Fresh(t, "tmpfs"), sockets: t.TempDir()}
	for _, d := range []string{"pods", "bundles", "plugins", "volumes"} {
		n.mkdir(d)
	}
	l, err := net.Listen("unix", n.socket("nri"))
	treetest.Must(t, err)
	t.Cleanup(func() { l.Close(); n.cut() })
	go n.relay(l)
	return n
}

// relay connects plugins with the runtime that there is.
func (n *node) relay(l net.Listener) {
	for {
		plugin, err := l.Accept()
		if err != nil {
			return
		}
		runtime, err := net.Dial("unix", n.socket("runtime"))
		if err != nil {
			plugin.Close()
			continue
		}
		n.mu.Lock()
		n.conns = append(n.conns, plugin, runtime)
		n.mu.Unlock()
		for _, c := range [][2]net.Conn{{plugin, runtime}, {runtime, plugin}} {
			go func() {
				_, _ = io.Copy(c[0], c[1]) // until one is closed
				c[0].Close()
				c[1].Close()
			}()
		}
	}
}

// cut closes all connections, as the end of the runtime's process does: adaptation by
// itself leaves them open.
func (n *node) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.Close()
	}
	n.conns = nil
}

func (n *node) in(names ...string) string {
	return filepath.Join(append([]string{n.dir}, names...)...)
}

func (n *node) socket(of string) string { return filepath.Join(n.sockets, of) }

func (n *node) mkdir(names ...string) string {
	n.t.Helper()
	dir := n.in(names...)
	treetest.Must(n.t, os.MkdirAll(dir, 0o755))
	return dir
}

func (n *node) flags() []string {
	return []string{"--socket", n.socket("nri"), "--pods", n.in("pods"), "--bundle", n.in("bundles", "{id}"), "--log-level", "error"}
}

// start begins the runtime's side. No answer is late for it: what is late is tested.
func (n *node) start() {
	n.t.Helper()
	adaptation.SetPluginRequestTimeout(treetest.Patience)
	adaptation.SetPluginRegistrationTimeout(treetest.Patience)
	none := func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
		return nil, nil
	}
	sync := func(ctx context.Context, send adaptation.SyncCB) error { _, err := send(ctx, nil, nil); return err }
	r, err := adaptation.New("test", "1", sync, none, adaptation.WithPluginPath(n.in("plugins")), adaptation.WithSocketPath(n.socket("runtime")))
	treetest.Must(n.t, err)
	treetest.Must(n.t, r.Start())
	n.runtime = r
	n.t.Cleanup(r.Stop)
}

// ask is RunPodSandbox as the runtime makes it, for a sandbox made anew.
func (n *node) ask(p *pod) error {
	n.t.Helper()
	return n.askAs(p, p.sandbox())
}

func (n *node) askAs(p *pod, id string) error {
	return n.runtime.RunPodSandbox(n.t.Context(), &api.RunPodSandboxRequest{Pod: &api.PodSandbox{
		Id: id, Uid: p.uid, Name: p.uid, Namespace: "default", Annotations: p.annotations,
	}})
}

// registered waits until a plugin answers that an annotation is mistyped. One that has not read
// config.json in time has answered too, and would have the pod wait for the rest of the test.
func (n *node) registered() {
	n.t.Helper()
	p := n.pod("asks", "?")
	treetest.Wait(n.t, "the plugin to be registered", func() bool {
		err := n.ask(p)
		return err != nil && strings.Contains(err.Error(), "is neither a level")
	})
}

// pod is one of the node's.
type pod struct {
	n           *node
	uid         string
	annotations map[string]string
	label       string // of its sandbox
	config      string // or all of config.json
}

func (n *node) pod(uid, value string) *pod {
	return &pod{n: n, uid: uid, annotations: map[string]string{annotation: value}, label: newLabel}
}

// sandbox makes a bundle, and returns its identifier.
func (p *pod) sandbox() string {
	p.n.t.Helper()
	p.n.ids++
	id := fmt.Sprintf("%x", 0xabc000+p.n.ids)
	text := p.config
	if text == "" {
		text = fmt.Sprintf(`{"ociVersion":"1.2.0","process":{"selinuxLabel":%q},"linux":{"mountLabel":%q,"namespaces":[{"type":"pid"},{"type":"network"}]}}`,
			strings.Replace(p.label, ":object_r:container_file_t:", ":system_r:container_t:", 1), p.label)
	}
	treetest.Must(p.n.t, os.WriteFile(filepath.Join(p.n.mkdir("bundles", id), "config.json"), []byte(text), 0o600))
	return id
}

// volume makes a volume of ten entries.
func (n *node) volume(name string) string {
	n.t.Helper()
	dir := n.mkdir("volumes", name)
	treetest.Build(n.t, dir, treetest.Text(n.t, tenFiles))
	return dir
}

// mount mounts a directory as a volume of the pod.
func (p *pod) mount(dir, at string) string {
	p.n.t.Helper()
	point := p.n.mkdir("pods", p.uid, "volumes", at)
	treetest.Must(p.n.t, syscall.Mount(dir, point, "", syscall.MS_BIND, ""))
	return point
}

const localPV = "kubernetes.io~local-volume/pv"

// has counts the entries of dir that have the label.
func has(t *testing.T, dir, label string) (n int) {
	t.Helper()
	for l := range maps.Values(treetest.Read(t, dir)) {
		if l == label {
			n++
		}
	}
	return n
}

// gate holds runs up, when one has written something, until it is opened or they are
// stopped, and counts what they wrote. A run has one worker: it is held in the middle.
type gate struct {
	open  chan struct{}
	once  sync.Once
	mu    sync.Mutex
	wrote map[string]int // by path
}

func newGate() *gate { return &gate{open: make(chan struct{}), wrote: make(map[string]int)} }

func (g *gate) change(path, _, _ string) {
	g.mu.Lock()
	g.wrote[path]++
	g.mu.Unlock()
}

func (g *gate) throttle(ctx context.Context, _ int) error {
	if !g.reached() {
		return nil
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

func (g *gate) reached() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.wrote) > 0
}

func (n *node) settings(wait time.Duration, volumes int) settings {
	bundles := []string{n.in("none", "{id}"), n.in("bundles", "{id}")}
	return settings{wait: wait, volumes: volumes, linger: time.Hour, pods: n.in("pods"), bundles: bundles}
}

// plug registers a plugin in this process, whose runs pass the gate.
func (n *node) plug(wait time.Duration, volumes int, g *gate) *plugin {
	n.t.Helper()
	log, err := newLogger(n.t.Output(), "error")
	treetest.Must(n.t, err)
	p := newPlugin(n.settings(wait, volumes), log)
	p.group.Options = relabel.Options{Workers: 1, Throttle: g.throttle}
	p.group.Trace = func(root string) *relabel.Trace {
		trace := p.trace(root)
		trace.Change = g.change
		return trace
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		(&connector{socket: n.socket("nri"), index: "05", plugin: p, log: log}).serve(ctx)
	}()
	n.t.Cleanup(func() {
		stop()
		<-ended
		g.release()
		short, cancel := context.WithTimeout(context.Background(), treetest.Patience)
		defer cancel()
		treetest.Check(n.t, p.group.Shutdown(short))
		treetest.Wait(n.t, "the looks to end", func() bool { return len(p.looks) == 0 })
	})
	n.registered()
	return p
}

// of returns how many requests had this outcome.
func (c *counts) of(o outcome) float64 {
	return scraped(c.text(), fmt.Sprintf("fastlabel_nri_requests_total{outcome=%q}", o))
}

// have compares metrics, but for what their names begin with.
func (c *counts) have(t *testing.T, all map[string]float64) {
	t.Helper()
	text := c.text()
	for name, want := range all {
		if got := scraped(text, "fastlabel_nri_"+name); got != want {
			t.Errorf("%s %v, not %v", name, got, want)
		}
	}
}

// text is what Prometheus gets.
func (c *counts) text() string {
	r := httptest.NewRecorder()
	c.handler().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	return r.Body.String()
}

// scraped is the value of a metric; 0 if there is none.
func scraped(text, name string) (value float64) {
	if _, line, is := strings.Cut(text, "\n"+name+" "); is {
		_, _ = fmt.Sscan(line, &value)
	}
	return value
}

// goesOn asks until the answer is that labelling continues, and names each of what. On a
// busy machine a request may be answered before it is known what is to be labelled.
func (n *node) goesOn(p *pod, what ...string) {
	n.t.Helper()
	treetest.Wait(n.t, "an answer with "+strings.Join(what, ", "), func() bool {
		err := n.ask(p)
		if err == nil {
			n.t.Fatalf("pod %s starts", p.uid)
		}
		for _, w := range append(what, "labelling goes on") {
			if !strings.Contains(err.Error(), w) {
				return false
			}
		}
		return true
	})
}

// completes asks until the pod starts: then all of its volume is labelled.
func (n *node) completes(p *pod, vol string) {
	n.t.Helper()
	n.starts(p)
	if all := has(n.t, vol, newLabel); all != entries {
		n.t.Errorf("%d labelled", all)
	}
}

// starts asks until the pod starts.
func (n *node) starts(p *pod) {
	n.t.Helper()
	treetest.Wait(n.t, "pod "+p.uid+" to start", func() bool { return n.ask(p) == nil })
}
