// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fastlabel/fastlabel/test/treetest"
)

// States as runtimes write them, and what is wrong with others.
const (
	runcState = `{"ociVersion":"1.2.0","id":"c1","status":"creating","pid":4422,"bundle":"/b","annotations":{"io.fastlabel.relabel":"true"}}`
	crunState = `{"ociVersion":"1.0","id":"c1","pid":4422,"root":"/b/rootfs","bundle":"/b","status":"created","annotations":{"io.fastlabel.relabel":"true"}}`
)

var badStates = map[string]string{
	"":                           "the state on stdin is empty",
	"{":                          "unexpected end of JSON input",
	"null":                       `bundle "" is not an absolute path`,
	"[]":                         "cannot unmarshal array",
	`"c1"`:                       "cannot unmarshal string",
	runcState + runcState:        "after top-level value",
	runcState + "x":              "invalid character 'x' after top-level value",
	strings.Repeat("[", 100_000): "exceeded max depth",
	`{"ociVersion":"1.2.0","id":"c1","status":"creating"}`:                                    `bundle "" is not an absolute path`,
	`{"ociVersion":"1.2.0","id":"c1","status":"creating","bundle":null}`:                      `bundle "" is not an absolute path`,
	`{"ociVersion":"1.2.0","id":"c1","status":"creating","bundle":"b"}`:                       "bundle b is not an absolute path",
	`{"ociVersion":"1.2.0","id":"c1","status":"creating","bundle":"./b\u001b["}`:              `bundle "./b\x1b[" is not an absolute path`,
	`{"ociVersion":"1.2.0","id":"c1","status":"creating","bundle":7}`:                         "bundle",
	`{"ociVersion":"1.0","id":"c1","status":"creating","pid":"1","bundle":"/b"}`:              "pid",
	`{"ociVersion":"1.0","id":"c1","status":"creating","bundle":"/b","annotations":{"a":1}}`:  "annotations",
	`{"ociVersion":"1.0","id":"c1","status":"creating","bundle":"/b","annotations":["a"]}`:    "annotations",
	`{"ociVersion":1,"id":"c1","status":"creating","bundle":"/b","annotations":{"a":"true"}}`: "ociVersion",
}

func TestDecodeState(t *testing.T) {
	for _, text := range []string{
		runcState, crunState,
		`{"ociVersion":"1.2.0","id":"c1","status":"creating","bundle":"/b"}`,
		`{"ociVersion":"1.2.0","id":"c1","status":"creating","pid":0,"bundle":"/b","annotations":null}`,
		`{"ociVersion":"1.0","id":"c1","status":"paused","bundle":"/b","x":{"y":[1,null]}}`, // a runtime's own
		"\n " + runcState + "\n",
	} {
		s, err := DecodeState([]byte(text))
		if err != nil || s.ID != "c1" || s.Bundle != "/b" {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
	for text, want := range badStates {
		if _, err := DecodeState([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, not %s", text, err, want)
		}
	}
}

func TestReadConfig(t *testing.T) {
	dir := t.TempDir()
	make := func(name, config string) string {
		bundle := filepath.Join(dir, name)
		treetest.Must(t, os.MkdirAll(bundle, 0o700))
		if config != "" {
			treetest.Must(t, os.WriteFile(filepath.Join(bundle, "config.json"), []byte(config), 0o600))
		}
		return bundle
	}
	link := func(to, name string) string {
		name = filepath.Join(dir, name)
		treetest.Must(t, os.Symlink(to, name))
		return name
	}
	good := make("good", `{"linux":{"mountLabel":"l"},"unknown":1}`)
	link("good", "link")
	make("escape", "")
	link("../good/config.json", "escape/config.json")
	treetest.Must(t, os.Mkdir(filepath.Join(make("directory", ""), "config.json"), 0o700))
	treetest.Must(t, syscall.Mkfifo(filepath.Join(make("fifo", ""), "config.json"), 0o600))
	make("large", `{"x":"`+strings.Repeat("x", maxConfig)+`"}`)
	make("parent/b", `{"linux":{"mountLabel":"l"}}`)
	link("parent", "up")
	for name, want := range map[string]string{
		"good": "", "good/": "", "up/b": "", // as in /var/run, which links to /run
		"link": "is not a directory but a symbolic link", "link/": "but a symbolic link", "link/.": "but a symbolic link",
		"good/config.json": "is not a directory but a file",
		"nothere":          "no such file or directory",
		"escape":           "path escapes from parent",
		"directory":        "it is a directory",
		"fifo":             "it is a FIFO", // which holds nobody
		"large":            "larger than 16,777,216 bytes",
	} {
		c, err := ReadConfig(dir + "/" + name)
		switch {
		case want == "" && (err != nil || c.Linux.MountLabel != "l"):
			t.Errorf("%s: %v, %v", name, c, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, not %s", name, err, want)
		}
	}
	for _, text := range []string{"", "{", `{"mounts":{}}`, `{"mounts":[{"source":1}]}`, `{"linux":7}`, `{"hooks":{"prestart":[{"timeout":"1"}]}}`} {
		treetest.Must(t, os.WriteFile(filepath.Join(good, "config.json"), []byte(text), 0o600))
		if c, err := ReadConfig(good); err == nil || !strings.Contains(err.Error(), "config.json in bundle "+good) {
			t.Errorf("%s: %v, %v", text, c, err)
		}
	}
}

func TestReadRequest(t *testing.T) {
	const mount = "system_u:object_r:container_file_t:s0:c5,c3"
	const canonical = "system_u:object_r:container_file_t:s0:c3,c5"
	for _, c := range []struct{ annotations, mount, want string }{ // annotations as key=value, parted by blanks
		{"", mount, "nothing"},
		{"relabel=false", mount, "nothing"},
		{"shared=true skip=bogus", mount, "nothing"},
		{"relabel=true", "", "nothing"},
		{"relabel=true shared=true skip=bogus", "", "nothing"},
		{"relabel=true", mount, canonical + " root all"},
		{"relabel=true", "u:r:t", "u:r:t root all"}, // a policy without levels
		{"relabel=/a,/b", mount, canonical + " root /a /b"},
		{"relabel=/a/,/b/../a,/c/.", mount, canonical + " root /a /c"},
		{"relabel=true label=u:r:t:s0:c9,c1", mount, "u:r:t:s0:c1,c9 root all"},
		{"relabel=true label=u:r:t:s0", "", "u:r:t:s0 root all"},
		{"relabel=true label=", mount, "! io.fastlabel.label is empty"},
		{"relabel=true label=", "", "! io.fastlabel.label is empty"},
		{"relabel=true label=u:r:t", mount, "u:r:t root all"},
		{"relabel=true label=t_t", mount, "! io.fastlabel.label: \"t_t\": not a security context"},
		{"relabel=true", "garbage", "! linux.mountLabel: \"garbage\": not a security context"},
		{"relabel=true shared=true", mount, "system_u:object_r:container_file_t:s0 root all"},
		{"relabel=true shared=true label=u:r:t:s3:c1", mount, "u:r:t:s0 root all"},
		{"relabel=true shared=true", "u:r:t", "u:r:t root all"},
		{"relabel=true shared=true label=u:r:t", mount, "u:r:t root all"},
		{"relabel=true shared=false", mount, canonical + " root all"},
		{"relabel=true shared=yes", mount, "! io.fastlabel.shared is yes, not true or false"},
		{"relabel=true skip=none", mount, canonical + " none all"},
		{"relabel=true skip=root", mount, canonical + " root all"},
		{"relabel=true skip=top", mount, canonical + " top all"},
		{"relabel=true skip=unchanged", mount, "! io.fastlabel.skip is unchanged, not one of none, root, top"},
		{"relabel=true skip=", mount, "! io.fastlabel.skip is \"\", not one of none, root, top"},
		{"relabel=true skip=all", mount, "! io.fastlabel.skip is all, not one of none, root, top"},
		{"relabel=true try-skip-volume-selinux-label.crio.io=true", mount, canonical + " top all"},
		{"relabel=true io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel=true", mount, canonical + " top all"},
		{"relabel=true try-skip-volume-selinux-label.crio.io=false", mount, canonical + " root all"},
		{"relabel=true skip=none try-skip-volume-selinux-label.crio.io=true", mount, canonical + " none all"},
		{"try-skip-volume-selinux-label.crio.io=true", mount, "nothing"},
		{"relabel=", mount, "! io.fastlabel.relabel is empty"},
		{"relabel=yes", mount, "! io.fastlabel.relabel: yes is neither true nor an absolute destination"},
		{"relabel=TRUE", mount, "! io.fastlabel.relabel: TRUE is neither"},
		{"relabel=/a,b", mount, "! io.fastlabel.relabel: b is neither"},
		{"relabel=/a,,/b", mount, "! io.fastlabel.relabel: \"\" is neither"},
		{"relabel=true,/a", mount, "! io.fastlabel.relabel: true is neither"},
	} {
		annotations := map[string]string{"other": "x"}
		for pair := range strings.FieldsSeq(c.annotations) {
			key, value, _ := strings.Cut(pair, "=")
			if !strings.Contains(key, ".") {
				key = "io.fastlabel." + key
			}
			annotations[key] = value
		}
		r, err := ReadRequest(annotations, c.mount)
		var got string
		switch {
		case err != nil:
			got = "! " + err.Error()
		case r == nil:
			got = "nothing"
		case r.All:
			got = r.Label + " " + r.Skip + " all"
		default:
			got = r.Label + " " + r.Skip + " " + strings.Join(r.Destinations, " ")
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s, %s: %s, not %s", c.annotations, c.mount, got, c.want)
		}
	}
	if r, err := ReadRequest(map[string]string{AskRelabel: "/a , /b"}, mount); err != nil || len(r.Destinations) != 2 {
		t.Errorf("blanks: %v, %v", r, err)
	}
}

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
	treetest.Must(t, os.WriteFile(pod+"/etc-hosts", nil, 0o600), os.WriteFile(kubelet+"/file", nil, 0o600))
	treetest.Must(t, syscall.Mkfifo(kubelet+"/fifo", 0o600), syscall.Mknod(kubelet+"/sock", syscall.S_IFSOCK|0o600, 0))
	for source, want := range map[string]string{
		"/": NeverWhole, "/etc": NeverWhole, "/etc/localtime": "the host's own", "/usr/share/zoneinfo": "the host's own", "/run": NeverWhole, "/dev/shm": "the host's own", "/dev/null": NeverWhole,
		"/proc/1": "the host's own", "/sys": NeverWhole, "/etcetera": "", "/var/lib/kubelet": "the kubelet's own", "/var/lib": NeverWhole, "/var/log": NeverWhole, "/home": NeverWhole, "/home/app": "", "/var/log/app": "", "/var/lib/kubelet/pods": "the kubelet's own",
		"/var/lib/kubelet/plugins/p/globalmount": "the kubelet's own", "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/p/mount": "", "/var/lib/kubelet/pods/u/volumes/kubernetes.io~secret/p": "the kubelet's own",
		pod + "/volumes/kubernetes.io~secret/s": "the kubelet's own", pod + "/volumes/kubernetes.io~configmap/c": "the kubelet's own", pod + "/volumes/kubernetes.io~projected/kube-api-access": "the kubelet's own",
		pod + "/volumes/kubernetes.io~downward-api/d": "the kubelet's own", pod + "/volumes/kubernetes.io~csi/pvc/mount": "", pod + "/volumes/kubernetes.io~empty-dir/e": "",
		pod + "/volume-subpaths/s/web/0": "the kubelet's own", pod + "/volume-subpaths/pvc/web/1": "", pod + "/etc-hosts": "the kubelet's own", pod + "/containers/web/0": "the kubelet's own",
		kubelet: "", kubelet + "/fifo": "a FIFO", kubelet + "/sock": "a socket", kubelet + "/file": "a file",
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

func TestMain(m *testing.M) { os.Exit(treetest.Main(m)) }
