#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/patches.sh PROJECT=DIR...: applies docs/patches to checkouts of crio, containerd,
# podman, buildah and moby, and lets their own tests judge. Of each it copies DIR, runs the
# tests of the changed packages, applies the patch, requires the library as it is here,
# vendors it where the project vendors, and vets and tests again. It fails if the patch does
# not apply, if another line of go.mod changes, or if a test that passed passes no more.
# Ends with a row a project: tests that passed before and after, those that failed before.
set -euo pipefail
cd "$(dirname "$0")/.."
house=$PWD
module=github.com/fastlabel/fastlabel

declare -A packages=(
    [crio]='./server' [containerd]='./internal/cri/opts ./internal/cri/server' [podman]='./libpod'
    [buildah]='.' [moby]='./daemon/volume/mounts ./daemon'
)
declare -A tags=(
    [crio]='test containers_image_openpgp exclude_graphdriver_btrfs' [podman]='containers_image_openpgp exclude_graphdriver_btrfs'
    [buildah]='containers_image_openpgp exclude_graphdriver_btrfs'
)

die() { echo "patches: FAILED: $*" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/var/tmp}/fastlabel-patches.XXXXXX")
rows='| project | passed before | passed with the patch | failed before |\n|---|---|---|---|\n'
trap 'printf "%b" "$rows"; rm -rf "$work"' EXIT

# judge PROJECT FILE: the tests of the changed packages, as they ended, to FILE, and what
# go vet finds in them.
judge() {
    # shellcheck disable=SC2086 # several packages
    {
        go vet -tags "${tags[$1]-}" ${packages[$1]} 2>&1 | sed -nE 's/^([^ :]+):[0-9:]+ (.*)/FAIL vet \1 \2/p' | LC_ALL=C sort -u >"$2.vet"
    } || true
    # shellcheck disable=SC2086 # several packages
    go test -tags "${tags[$1]-}" -count=1 -timeout 1h -v ${packages[$1]} >"$work/log" 2>&1 || true
    grep -q '^\(ok\|FAIL\)\s' "$work/log" || { tail -n 30 "$work/log" >&2; die "$1: its tests do not build"; }
    sed -nE 's/^ *--- (PASS|FAIL): ([^ ]+) .*/\1 \2/p' "$work/log" | LC_ALL=C sort -u - "$2.vet" >"$2"
}

# vendor PROJECT: puts the library where the project vendors, and nothing else.
vendor() {
    [ -d vendor ] || return 0
    if go mod vendor >"$work/log" 2>&1; then return; fi
    echo "patches: $1: vendored by hand, since a module that it requires is not to be had" >&2
    go -C "$house" list -deps ./relabel | grep "^$module" >"$work/list"
    while read -r package; do
        mkdir -p "vendor/$package"
        find "$house${package#"$module"}" -maxdepth 1 -type f ! -name '*_test.go' -exec cp -t "vendor/$package" {} +
    done <"$work/list"
    {
        echo "# $module v0.0.0 => $house"
        echo "## explicit; go 1.25.0"
        cat "$work/list"
        echo "# $module => $house"
    } >>vendor/modules.txt
}

for argument in "$@"; do
    name=${argument%%=*} from=${argument#*=}
    [ -n "${packages[$name]-}" ] || die "$argument: not PROJECT=DIR, with PROJECT one of ${!packages[*]}"
    [ -f "$from/go.mod" ] || die "$from: no module"
    tree=$work/$name
    cp -r "$from" "$tree"
    cd "$tree"
    rm -rf .git
    unset GOFLAGS
    echo "patches: $name: its tests as they are"
    judge "$name" "$work/before"
    cp go.mod "$work/go.mod"
    patch -s -p1 <"$house/docs/patches/$name.patch" || die "$name: the patch does not apply"
    go mod edit -require "$module@v0.0.0" -replace "$module=$house"
    if [ ! -d vendor ]; then go mod tidy >"$work/log" 2>&1 || { cat "$work/log" >&2; die "$name: go mod tidy"; }; fi
    vendor "$name"
    other=$(diff "$work/go.mod" go.mod | grep '^[<>] .' | grep -vF "$module" || true)
    [ -z "$other" ] || die "$name: other lines of go.mod change: $other"
    echo "patches: $name: built, vetted and tested with the patch"
    judge "$name" "$work/after"
    worse=$(comm -23 <(grep PASS "$work/before") <(grep PASS "$work/after") && comm -13 <(grep FAIL "$work/before") <(grep FAIL "$work/after"))
    [ -z "$worse" ] || { tail -n 30 "$work/log" >&2; die "$name: worse with the patch: $worse"; }
    rows+="| $name | $(grep -c PASS "$work/before") | $(grep -c PASS "$work/after") | $(grep -c "^FAIL Test" "$work/before" || true) |\n"
    cd "$house"
    rm -rf "$tree"
done
[ $# -gt 0 ] || die "no project: PROJECT=DIR..."
