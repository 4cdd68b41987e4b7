// SPDX-License-Identifier: Apache-2.0

// Package deploy holds the files of deploy/ against the source and against each
// other, and docs/output.schema.json against what the command prints. It runs make
// install, and the systemd unit under systemd-analyze and with its rights.
//
// What reads the other files is their proof: an API server takes the manifests (make
// test-manifests), pods run by them (make test-cluster), and podman takes the hook's
// file and the Quadlet (make test-runtimes).
package deploy
