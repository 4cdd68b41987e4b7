#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deploy/release.sh VERSION NFPM CYCLONEDX DIR: makes all of a release in DIR: for amd64
# and arm64 an archive to unpack in /, a deb, an rpm and a bill of materials, the
# container image for both, and SHA256SUMS. The same source makes the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
version=$1 nfpm=$2 cyclonedx=$3 dir=$(realpath -m "$4")

case $MAINTAINER in
*.invalid\>) echo 'release: who answers for the packages? MAINTAINER="Name <address>"' >&2; exit 1 ;;
esac
rm -rf "$dir"
mkdir -p "$dir"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for arch in amd64 arm64; do
    name=fastlabel-$version-linux-$arch
    root=$work/$arch
    export GOOS=linux GOARCH=$arch
    deploy/packages.sh "$version" "$nfpm" "$dir" >/dev/null
    make install PREFIX=/usr/local DESTDIR="$root" >/dev/null
    "$cyclonedx" bin -json -noserial -notimestamp -std -version "$version" -output "$dir/$name.cdx.json" "$root/usr/local/bin/fastlabel"
    install -D -m 644 -t "$root/usr/local/share/doc/fastlabel" LICENSE CHANGELOG.md "$dir/$name.cdx.json"
    tar -C "$root" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s -c usr | gzip -9n >"$dir/$name.tar.gz"
    unset GOOS GOARCH
done
deploy/image.sh fastlabel "$version" "$cyclonedx" "$dir/fastlabel-$version.oci.tar"
(cd "$dir" && sha256sum -- * >SHA256SUMS)
