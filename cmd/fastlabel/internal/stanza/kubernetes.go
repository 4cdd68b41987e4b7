// SPDX-License-Identifier: Apache-2.0

package stanza

import (
	"fmt"
	"strings"
)

// Kubernetes is a pod of which the volumes get the label context.
func Kubernetes(context string) (string, error) {
	l, err := parse(context)
	if err != nil {
		return "", err
	}
	var options, note strings.Builder
	fmt.Fprintf(&options, "      level: %q\n", l.level)
	if l.user != defaultUser {
		fmt.Fprintf(&options, "      user: %q\n", l.user)
	}
	if l.typ != defaultType {
		fmt.Fprintf(&note, `# The type of volumes is the node's, not the pod's: it is %s only where
# "file" in /etc/selinux/*/contexts/lxc_contexts says so. A type in
# seLinuxOptions is the process's.
`, l.typ)
	}
	if l.shared() {
		note.WriteString(`# This level has no categories: every container of the node may use the volume.
`)
	}
	return note.String() + `apiVersion: v1
kind: Pod
metadata:
  name: example
  annotations:
    # CRI-O passes over a volume that is labelled, if the class lets it: see
    # --output crio. CRI-O 1.35 calls it ` + trySkipNew + `.
    ` + TrySkip + `: "true"
    # fastlabel's hook labels what CRI-O and containerd do not: a hostPath, NFS.
    io.fastlabel.relabel: /data
spec:
  runtimeClassName: ` + Handler + `
  securityContext:
    seLinuxOptions:
` + options.String() + `  containers:
    - name: app
      image: IMAGE
      volumeMounts:
        - name: data
          mountPath: /data
  volumes:
    - name: data
      persistentVolumeClaim:
        claimName: CLAIM
`, nil
}
