// SPDX-License-Identifier: Apache-2.0

package stanza

// CRIO is the drop-in with which pods may ask CRI-O to pass over a volume that
// is labelled. The RuntimeClass is in its comment, each line behind "#: ".
func CRIO() string {
	return `# /etc/crio/crio.conf.d/99-fastlabel.conf, on each node; then restart crio.
# Pods of the RuntimeClass below may ask CRI-O to pass over a volume whose top
# directory bears their label already.

[crio.runtime.runtimes.` + Handler + `]
inherit_default_runtime = true
# What else your default handler has, such as default_annotations, is not
# inherited: repeat it. CRI-O 1.35 and later also take
# "` + trySkipNew + `"; before that it costs the handler.
allowed_annotations = [
    "` + TrySkip + `",
]

# The class, once a cluster: sed -n 's/^#: //p' FILE | kubectl apply -f -
#: apiVersion: node.k8s.io/v1
#: kind: RuntimeClass
#: metadata:
#:   name: ` + Handler + `
#: handler: ` + Handler + `
`
}
