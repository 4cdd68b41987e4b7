#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/imports.sh: what a program takes in with the library. Builds a module
# outside this one, which imports relabel and nothing else, and fails if that
# brings any module but those in $allowed. Prints how much the program grows,
# beside the same program with go-selinux's label.Relabel, and how long the
# packages take to initialize. Last it breaks a copy of the library, which
# imports pflag there, and sees the check notice.
set -euo pipefail
cd "$(dirname "$0")/.."
repo=$PWD
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=mod

module=github.com/fastlabel/fastlabel
# go-selinux looks for the label of a process with securejoin's safe /proc.
allowed="github.com/cyphar/filepath-securejoin
$module
github.com/opencontainers/selinux
golang.org/x/sys"

die() { echo "imports: FAILED: $*" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/fastlabel-imports.XXXXXX")
trap 'rm -rf "$work"' EXIT

# program NAME IMPORT CALL: a module outside that makes the call.
program() {
    mkdir "$work/$1"
    sed "s|^module .*|module example.com/$1|; /godirwalk\|pflag\|zap\|multierr/d" go.mod >"$work/$1/go.mod"
    go -C "$work/$1" mod edit -require "$module@v0.0.0" -replace "$module=$repo"
    cp go.sum "$work/$1/go.sum"
    {
        printf 'package main\n\n'
        [ -z "$2" ] || printf 'import (\n\t"os"\n\n\t"%s"\n)\n\n' "$2"
        printf 'func main() {\n'
        [ -z "$2" ] || printf '\tif len(os.Args) == 3 && %s(os.Args[1], os.Args[2], false) != nil {\n\t\tos.Exit(1)\n\t}\n' "$3"
        printf '}\n'
    } >"$work/$1/main.go"
    go -C "$work/$1" build -trimpath -ldflags "-s -w" -o program .
}

# modules NAME: the modules that the program's packages come from.
modules() {
    go -C "$work/$1" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}' . | grep . | LC_ALL=C sort -u
}

# check NAME: are they the allowed ones?
check() {
    local got
    got=$(modules "$1")
    [ "$got" = "$allowed" ] || { diff <(echo "$allowed") <(echo "$got") || true; return 1; }
}

size() { stat -c %s "$work/$1/program"; }

# grown NAME: by how many bytes more than the empty program.
grown() { printf '%s: %d KiB more than an empty main (%d KiB)\n' "$1" $((($(size "$1") - $(size empty)) / 1024)) $(($(size empty) / 1024)); }

program empty "" ""
program relabel "$module/relabel" relabel.Relabel
program go-selinux github.com/opencontainers/selinux/go-selinux/label label.Relabel

check relabel || die "relabel brings other modules"
echo "imports: relabel brings these modules and no other:"
modules relabel | sed 's/^/  /'
for p in relabel go-selinux; do echo "imports: $(grown $p)"; done

# inittrace prints, for each package that has something to initialize,
#   init PACKAGE @TIME ms, DURATION ms clock, ...
for p in empty go-selinux relabel; do
    best=
    for _ in {1..20}; do
        ms=$(GODEBUG=inittrace=1 "$work/$p/program" 2>&1 | awk '$1 == "init" { sum += $5 } END { printf "%.3f", sum }')
        if [ -z "$best" ] || awk "BEGIN { exit !($ms < $best) }"; then best=$ms; fi
    done
    echo "imports: $p: all packages initialize in $best ms (least of 20)"
done
echo "imports: of these, the library's own and what it needs:"
GODEBUG=inittrace=1 "$work/relabel/program" 2>&1 | grep -E 'fastlabel|opencontainers|x/sys|cyphar' | sed 's/^/  /' ||
    echo "  none has anything to initialize"

mkdir "$work/copy"
cp -r go.mod go.sum internal relabel "$work/copy"
printf 'package relabel\n\nimport _ "github.com/spf13/pflag"\n' >"$work/copy/relabel/broken.go"
repo=$work/copy
program broken "$module/relabel" relabel.Relabel
if check broken >"$work/said"; then
    die "a library that imports pflag passes"
fi
grep -q spf13/pflag "$work/said" || die "what is wrong is not named"
echo "imports: a copy of the library that imports pflag is noticed"
