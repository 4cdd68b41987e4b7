// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fastlabel/fastlabel/test/system/selinuxvm"
	"github.com/fastlabel/fastlabel/test/treetest"
)

// control is the cluster's control plane. It runs on the host, on loopback: nothing of
// it asks for SELinux, and in the machine it takes longer than all else.
type control struct {
	dir       string
	programs  map[string]string
	cert, key string // files
	server    string // URL of the API server, on the host
	inside    string // the same in the machine
}

// startControl starts the API server, and then these others.
func startControl(t *testing.T, programs map[string]string, others ...string) *control {
	t.Helper()
	c := &control{dir: t.TempDir(), programs: programs}
	c.cert, c.key = c.makeKeys(t)
	etcd, peers, api := freePort(t), freePort(t), freePort(t)
	c.server, c.inside = fmt.Sprintf("https://127.0.0.1:%d", api), fmt.Sprintf("https://10.0.2.2:%d", api)
	local := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	c.start(t, "etcd", "--data-dir", filepath.Join(c.dir, "etcd-data"), "--unsafe-no-fsync",
		"--listen-client-urls", local(etcd), "--advertise-client-urls", local(etcd),
		"--listen-peer-urls", local(peers), "--initial-advertise-peer-urls", local(peers), "--initial-cluster", "default="+local(peers))
	tokens := c.write(t, "tokens", "secret,admin,1,system:masters\n")
	c.start(t, "kube-apiserver", "--etcd-servers", local(etcd), "--secure-port", fmt.Sprint(api), "--bind-address", "127.0.0.1",
		"--advertise-address", "10.0.0.1", "--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.96.0.0/16",
		"--tls-cert-file", c.cert, "--tls-private-key-file", c.key, "--service-account-issuer", "https://x",
		"--service-account-key-file", c.key, "--service-account-signing-key-file", c.key,
		"--authorization-mode", "AlwaysAllow", "--token-auth-file", tokens, "--allow-privileged",
		"--disable-admission-plugins", "TaintNodesByCondition,DefaultTolerationSeconds")
	c.write(t, "kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, c.server))
	c.await(t, 5*time.Minute)
	for _, name := range others {
		c.start(t, name, "--kubeconfig", filepath.Join(c.dir, "kubeconfig"), "--leader-elect=false", "--secure-port", "0")
	}
	return c
}

// start starts a program that ends with the test, also if that is killed.
func (c *control) start(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := os.Create(filepath.Join(c.dir, name))
	treetest.Must(t, err)
	cmd := exec.Command(c.programs[name], args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = out, out, c.dir
	ended := make(chan struct{})
	if err := selinuxvm.Start(cmd, func(error) { close(ended) }); err != nil { // it is killed
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error says that it has ended
		<-ended
		out.Close()
		if text, err := os.ReadFile(out.Name()); err == nil && t.Failed() {
			t.Logf("the end of what %s said:\n%s", name, text[max(0, len(text)-2000):])
		}
	})
}

func (c *control) kubectl(args ...string) ([]byte, error) {
	cmd := exec.Command(c.programs["kubectl"], append([]string{"--kubeconfig", filepath.Join(c.dir, "kubeconfig")}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir) // of its cache
	out, err := cmd.Output()
	if exit, is := err.(*exec.ExitError); is {
		return out, fmt.Errorf("%s: %w\n%s", cmd, err, exit.Stderr)
	}
	return out, err
}

func (c *control) await(t *testing.T, limit time.Duration) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Second) {
		_, err := c.kubectl("get", "--raw", "/readyz")
		if err == nil {
			return
		}
		if time.Since(begin) > limit {
			t.Fatalf("the API server is not ready: %v", err)
		}
	}
}

func (c *control) write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(c.dir, name)
	treetest.Must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// makeKeys makes the API server's certificate and its key, which signs the tokens of
// service accounts too.
func (c *control) makeKeys(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	treetest.Must(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	signed, err := x509.CreateCertificate(rand.Reader, form, form, k.Public(), k)
	treetest.Must(t, err)
	text, err := x509.MarshalECPrivateKey(k)
	treetest.Must(t, err)
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return c.write(t, "cert", block("CERTIFICATE", signed)), c.write(t, "key", block("EC PRIVATE KEY", text))
}

// freePort is one on loopback that nobody listened on a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	treetest.Must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
