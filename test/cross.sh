#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/cross.sh: the source is right for the other platforms. Linux is vetted, tests and
# all (amd64 by make lint); elsewhere the library builds, and answers errors.ErrUnsupported. What
# debuggers build, without optimization and inlining, links on every architecture
# of Linux, and nothing grows the stack in the middle of a row.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

for arch in arm64 386; do
    GOOS=linux GOARCH=$arch go vet ./...
    echo "cross: linux/$arch is vetted"
done
for os in darwin windows; do # the library; the command is for Linux alone
    GOOS=$os GOARCH=amd64 go build ./relabel/... ./internal/...
    echo "cross: $os/amd64 builds"
done

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
debug='-gcflags=all=-N -l'
for arch in ${DEBUG_ARCHS:-$(go tool dist list | sed -n 's,^linux/,,p')}; do
    GOOS=linux GOARCH=$arch go build "$debug" -o "$out/$arch" ./cmd/fastlabel
    if [[ $arch != mips* ]]; then # which objdump does not know
        split=$(go tool objdump -s 'fastlabel/internal/sys\.((.*\.)?(Mend|ReadRow|Visit|Get|Set|read|write|pin|pathOf|found|visit|begin|stopped|calls)|retried|closed)$|^syscall\.RawSyscall6$' "$out/$arch" |
            awk '/^TEXT/ { seen++; f = $2 } /morestack/ && f !~ /Mend|ReadRow|Visit|Get|Set/ || /sync\/atomic\.\(/ { print f } END { if (seen < 10) print "only " seen " functions" }' | sort -u)
        [[ -z $split ]] || { echo "cross: linux/$arch: between enter and exit the stack may grow: $split" >&2; exit 1; }
    fi
    rm "$out/$arch"
    echo "cross: linux/$arch links for a debugger"
done
go test "$debug" -count=1 ./internal/sys
echo "cross: and rows are labelled so"
