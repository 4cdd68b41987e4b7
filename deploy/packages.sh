#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deploy/packages.sh VERSION NFPM DIR: makes a deb and an rpm in DIR. They hold what make
# install installs with PREFIX=/usr, where each distribution looks for it, and the
# licence and changes where it wants them. Beside each is fastlabel-hook, with what
# install-hook installs: the hook is active where that is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
version=$1 nfpm=$2 dir=$3

case $version in
v[0-9]*.* | [0-9]*.*) # v1.2.3-4-gabc comes after 1.2.3
    version=${version#v}
    version=${version/-/+}
    ;;
*) # a commit alone comes before all that have a number
    version=0~git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d).$version ;;
esac
PACKAGE_VERSION=${version//-/.}
PACKAGE_ARCH=$(go env GOARCH)
export PACKAGE_VERSION PACKAGE_ARCH

# documents KIND NAME FILES: what the distribution wants to be told of a package.
documents() {
    local kind=$1 name=$2 files=$3
    local doc=$files/usr/share/doc/$name
    mkdir -p "$doc"
    if [ "$kind" = deb ]; then
        {
            echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
            echo 'Source: https://github.com/fastlabel/fastlabel'
            printf '\nFiles: *\nCopyright: 2026 the fastlabel authors\nLicense: Apache-2.0\n'
            echo ' On Debian systems the licence is in /usr/share/common-licenses/Apache-2.0.'
        } >"$doc/copyright"
        gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
        printf '%s (%s-1) unstable; urgency=medium\n\n  * What changed is in changelog.gz.\n\n -- %s  %s\n' \
            "$name" "$PACKAGE_VERSION" "$MAINTAINER" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.Debian.gz"
    else
        install -m 644 CHANGELOG.md "$doc/CHANGELOG.md"
        install -D -m 644 LICENSE "$files/usr/share/licenses/$name/LICENSE"
    fi
}

# package KIND NAME FILES: the package, of what is in FILES.
package() {
    local kind=$1 name=$2 files=$3
    local config=bin/package-$kind-$name.yaml
    documents "$kind" "$name" "$files"
    find "$files" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    {
        cat "deploy/$name.yaml" deploy/nfpm.yaml
        echo contents:
        (cd "$files" && find . -type f -printf "  - { src: \"$files/%P\", dst: \"/%P\" }\\n" | LC_ALL=C sort)
    } >"$config"
    "$nfpm" package --config "$config" --packager "$kind" --target "$dir/"
}

for kind in deb rpm; do
    zsh=site-functions
    [ "$kind" = rpm ] || zsh=vendor-completions
    for name in fastlabel fastlabel-hook; do
        files=bin/package-$kind-$name target=install
        [ "$name" = fastlabel ] || target=install-hook
        rm -rf "$files"
        make "$target" PREFIX=/usr ZSHDIR="/usr/share/zsh/$zsh" DESTDIR="$PWD/$files" >/dev/null
        package "$kind" "$name" "$files"
    done
done
