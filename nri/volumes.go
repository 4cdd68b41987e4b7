// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fastlabel/fastlabel/internal/mountinfo"
)

// volume is a mount of a pod. Pods that share a volume have a mount of it each.
type volume struct {
	path, name string
}

// kinds are the kubelet's plugins whose volumes runtimes relabel, and where beneath
// the directory of a volume it is mounted. Not here: what the kubelet writes itself
// (secrets and the like), an emptyDir, which is made with the pod, and NFS, for which
// the kubelet does not ask (docs/kubernetes.md).
var kinds = map[string]string{
	"kubernetes.io~csi":          "mount",
	"kubernetes.io~fc":           "",
	"kubernetes.io~iscsi":        "",
	"kubernetes.io~local-volume": "",
}

// volumes are those of the pod that are mounted. The table of mounts has all that is
// asked, without a call that waits for the filesystem, and there is no link in its paths.
func (p places) volumes(uid string, mounts func() ([]mountinfo.Mount, error)) ([]volume, error) {
	if !safe.MatchString(uid) {
		return nil, fmt.Errorf("UID %q: not an identifier", uid)
	}
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	return volumesIn(all, filepath.Join(p.pods, uid, "volumes")), nil
}

// volumesIn are the mounts in dir that runtimes relabel, and that can have a label.
func volumesIn(all []mountinfo.Mount, dir string) (found []volume) {
	selinux := mountinfo.SELinux(all)
	for _, m := range mountinfo.Beneath(all, dir) {
		parts := strings.SplitN(strings.TrimPrefix(m.Point, dir+"/"), "/", 3)
		if len(parts) < 2 {
			continue
		}
		deeper, is := kinds[parts[0]]
		if !is || strings.Join(parts[2:], "") != deeper {
			continue
		}
		if m.ReadOnly || m.Kernels() || m.Unlabelable(selinux) != "" || mountinfo.Hidden(all, &m) {
			continue
		}
		found = append(found, volume{m.Point, parts[1]})
	}
	return found
}

// ofPod returns the directory of all volumes of the pod that has one at path.
func (p places) ofPod(path string) string {
	uid, _, _ := strings.Cut(strings.TrimPrefix(path, p.pods+"/"), "/")
	return filepath.Join(p.pods, uid, "volumes")
}
