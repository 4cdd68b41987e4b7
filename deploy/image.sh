#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deploy/image.sh PROGRAM VERSION CYCLONEDX FILE: has buildah write the container image of
# fastlabel or fastlabel-nri to FILE, an OCI archive for amd64 and arm64 with the static
# program, its licence and its bill of materials. Inside it is localhost/PROGRAM:VERSION.
# The same source makes the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
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
    root=$work/files/$arch
    doc=$root/usr/share/doc/$program
    mkdir -p "$root/usr/bin" "$doc"
    GOOS=linux GOARCH=$arch CGO_ENABLED=0 go -C "$package" build -trimpath -ldflags "-s -w -X main.version=$version" -o "$root/usr/bin/$program" .
    "$cyclonedx" bin -json -noserial -notimestamp -std -version "$version" -output "$doc/$program.cdx.json" "$root/usr/bin/$program"
    install -m 644 LICENSE "$doc/LICENSE"
done
find "$work/files" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +

# It runs nothing in the image, so a directory is storage enough.
storage() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
name=localhost/$program:$version
house=https://github.com/fastlabel/fastlabel
labels=()
for label in "title=$program" "description=$what" licenses=Apache-2.0 "source=$house" "documentation=$house/tree/main/$docs" \
    "version=$version" "revision=$(git rev-parse HEAD)" "created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)"; do
    labels+=(--label "org.opencontainers.image.$label")
done
for arch in amd64 arm64; do # one after the other: their order in the manifest is that in which they end
    storage build --quiet --timestamp "$SOURCE_DATE_EPOCH" --platform "linux/$arch" --manifest "$name" \
        "${labels[@]}" --file - "$work/files" >/dev/null <<END
FROM scratch
COPY $arch /
ENTRYPOINT ["/usr/bin/$program"]
END
done
storage manifest push --quiet --all "$name" "oci:$work/image:$name" >/dev/null
sed -i 's|"org.opencontainers.image.ref.name":\("[^"]*"\)|&,"io.containerd.image.name":\1|' "$work/image/index.json" # containerd's word for it
mkdir -p "${file%/*}"
tar -C "$work/image" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf "$file" blobs index.json oci-layout
