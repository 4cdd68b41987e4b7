// SPDX-License-Identifier: Apache-2.0

// Package deploy holds the files of deploy/oci against what reads them: podman's
// and CRI-O's own hook matcher, CRI-O's list of annotations and its configuration
// type, the types of Kubernetes and OpenShift decoded strictly, Ignition's parser;
// and against each other and the source of the hook. It runs make install. The
// command's JSON is held against docs/output.schema.json.
//
// A check is a function of the files' texts that tells what is wrong. TestFiles
// runs all of them on the files as they are, TestBroken on files broken on
// purpose, each of which a named check must notice.
//
// CRI-O's configuration package is not imported: it needs half of CRI-O, and one
// of its modules cannot be had by checksum. Its source is read instead.
//
//	go test ./... (here)   no root, no network once the modules are there
package deploy
