// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// With "true" nothing that is the host's, the kubelet's or read-only gets the
// label of a container; what is listed does.
func TestHookHosts(t *testing.T) {
	kubelet := t.TempDir()
	pod := kubelet + "/pods/0b9c1f2e-uid"
	for _, d := range []string{
		"/volumes/kubernetes.io~secret/s", "/volumes/kubernetes.io~configmap/c", "/volumes/kubernetes.io~projected/kube-api-access", "/volumes/kubernetes.io~downward-api/d",
		"/volumes/kubernetes.io~csi/pvc/mount", "/volumes/kubernetes.io~empty-dir/e", "/volume-subpaths/s/web/0", "/volume-subpaths/pvc/web/1", "/containers/web/0",
	} {
		treetest.Must(t, os.MkdirAll(pod+d, 0o700))
	}
	treetest.Must(t, os.WriteFile(pod+"/etc-hosts", nil, 0o600))
	for source, want := range map[string]string{
		"/": NeverWhole, "/etc": NeverWhole, "/etc/localtime": "the host's own", "/usr/share/zoneinfo": "the host's own", "/run": NeverWhole, "/dev/shm": "the host's own", "/dev/null": NeverWhole,
		"/proc/1": "the host's own", "/sys": NeverWhole, "/etcetera": "", "/var/lib/kubelet": "the kubelet's own", "/var/lib": NeverWhole, "/var/log": NeverWhole, "/home": NeverWhole, "/home/app": "", "/var/log/app": "", "/var/lib/kubelet/pods": "the kubelet's own",
		"/var/lib/kubelet/plugins/p/globalmount": "the kubelet's own", "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/p/mount": "", "/var/lib/kubelet/pods/u/volumes/kubernetes.io~secret/p": "the kubelet's own",
		pod + "/volumes/kubernetes.io~secret/s": "the kubelet's own", pod + "/volumes/kubernetes.io~configmap/c": "the kubelet's own", pod + "/volumes/kubernetes.io~projected/kube-api-access": "the kubelet's own",
		pod + "/volumes/kubernetes.io~downward-api/d": "the kubelet's own", pod + "/volumes/kubernetes.io~csi/pvc/mount": "", pod + "/volumes/kubernetes.io~empty-dir/e": "",
		pod + "/volume-subpaths/s/web/0": "the kubelet's own", pod + "/volume-subpaths/pvc/web/1": "", pod + "/etc-hosts": "the kubelet's own", pod + "/containers/web/0": "the kubelet's own",
		kubelet: "",
	} {
		if got := TheHost().NoVolume(Mount{}, source); got != want {
			t.Errorf("%s: %q, not %q", source, got, want)
		}
	}
}

// A fixed place that is a link on the host is left alone by its other name too.
func TestHookLinked(t *testing.T) {
	treetest.Need(t, "root")
	dir := t.TempDir()
	treetest.Must(t, os.MkdirAll(dir+"/etc/app", 0o700))
	treetest.Must(t, os.Symlink(dir+"/etc", dir+"/link"))
	h := Host{whole: named(dir + "/link"), closed: named(dir + "/link")}
	for source, want := range map[string]string{dir + "/etc": NeverWhole, dir + "/etc/app": "the host's own", dir: NeverWhole} {
		if got := h.NoVolume(Mount{}, source); got != want {
			t.Errorf("%s: %q", source, got)
		}
	}
	h = Host{kubelet: named(dir + "/link")}
	if got := h.NoVolume(Mount{}, dir+"/etc/app"); got != "the kubelet's own" {
		t.Errorf("%q", got)
	}
}
