#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deploy/image.sh PROGRAM VERSION CYCLONEDX FILE: writes the container image of fastlabel
# or fastlabel-nri to FILE, an OCI archive for amd64 and arm64 with the static program, its
# licence and its bill of materials. Inside it is localhost/PROGRAM:VERSION.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 version=$2 cyclonedx=$3 file=$(realpath -m "$4")
case $program in
fastlabel) package=cmd/fastlabel docs=docs what='SELinux labels for directory trees, in parallel' ;;
fastlabel-nri) package=nri docs=nri what='SELinux labels for the volumes of pods, before their runtime: experimental' ;;
*)
    echo "image.sh: $program: fastlabel or fastlabel-nri" >&2
    exit 2
    ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for arch in amd64 arm64; do
    root=$work/$arch
    doc=$root/usr/share/doc/$program
    mkdir -p "$root/usr/bin" "$doc"
    GOOS=linux GOARCH=$arch CGO_ENABLED=0 go -C "$package" build -trimpath -ldflags "-s -w -X main.version=$version" -o "$root/usr/bin/$program" .
    "$cyclonedx" bin -json -noserial -notimestamp -std -version "$version" -output "$doc/$program.cdx.json" "$root/usr/bin/$program"
    cp LICENSE "$doc/LICENSE"
done
mkdir -p "${file%/*}"
go -C deploy run ./image -o "$file" -program "$program" -description "$what" -docs "$docs" -version "$version" \
    -revision "$(git rev-parse HEAD)" -created "$SOURCE_DATE_EPOCH" "$work/amd64" "$work/arm64"
