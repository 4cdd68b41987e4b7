#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deploy/image.sh VERSION CYCLONEDX FILE: writes the container image to FILE, an OCI
# archive for amd64 and arm64 with the static program, its licence and its bill of
# materials. Inside it is localhost/fastlabel:VERSION.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 cyclonedx=$2 file=$(realpath -m "$3")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for arch in amd64 arm64; do
    root=$work/$arch
    doc=$root/usr/share/doc/fastlabel
    mkdir -p "$root/usr/bin" "$doc"
    GOOS=linux GOARCH=$arch CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$root/usr/bin/fastlabel" ./cmd/fastlabel
    "$cyclonedx" bin -json -noserial -notimestamp -std -version "$version" -output "$doc/fastlabel.cdx.json" "$root/usr/bin/fastlabel"
    cp LICENSE "$doc/LICENSE"
done
mkdir -p "${file%/*}"
go -C deploy/image run . -o "$file" -name "localhost/fastlabel:$version" -version "$version" \
    -revision "$(git rev-parse HEAD)" -created "$SOURCE_DATE_EPOCH" "$work/amd64" "$work/arm64"
