// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes cluster whose node has SELinux enforcing, and in it
// the stories of volumes: a pod that does not start, and the ways to one that does.
//
//	programs   kubelet, API server and the rest, built from pinned modules into the cache
//	patched    containerd with the library in place of go-selinux
//	guest/     what starts the node in the machine of test/system/selinuxvm
//	inside     the stories
//
// The control plane runs on the host, on loopback; containerd, the kubelet and all pods
// run in the machine. What was built is kept in fastlabel/cluster below the user's cache
// directory, or in cluster below FASTLABEL_CACHE. It may be deleted at any time.
//
//	make test-cluster                        all: README.md has the times
//	make test-cluster STORY='Fails|Job'      a part
//	CRIO=DIR make test-cluster               with CRI-O
package cluster
