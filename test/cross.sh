#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/cross.sh: the module builds for the other platforms. Linux is vetted
# too, tests and all; elsewhere the library answers errors.ErrUnsupported.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

for arch in amd64 arm64 386; do
    GOOS=linux GOARCH=$arch go build ./...
    GOOS=linux GOARCH=$arch go vet ./...
    echo "cross: linux/$arch builds and vets"
done
for os in darwin windows; do
    GOOS=$os GOARCH=amd64 go build ./...
    echo "cross: $os/amd64 builds"
done
