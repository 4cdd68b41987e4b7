#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/imports.sh: what a program takes in with the library. Builds a module
# outside this one, which imports relabel and nothing else, and fails if that
# brings any module but those in $allowed, or makes it raise a version above those
# in $floor. Imports relabel from a module with the versions of CRI-O, and fails if
# that changes any other line of its go.mod. Builds the library with the oldest Go
# that it promises, and holds its drop-ins against the newest go-selinux. Prints how
# much the program grows, beside the same program with go-selinux's label.Relabel,
# and how long the packages take to initialize. Last it breaks a copy of the library,
# which imports pflag and needs a newer module there, and sees the checks notice.
set -euo pipefail
cd "$(dirname "$0")/.."
repo=$PWD
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=mod

module=github.com/fastlabel/fastlabel
allowed="github.com/cyphar/filepath-securejoin
$module
github.com/opencontainers/selinux
golang.org/x/sys"
# go-selinux v1.13.1 is the first without CVE-2025-52881, x/sys v0.30.0 the first with
# setxattrat.
floor="go 1.25.0
github.com/opencontainers/selinux v1.13.1
golang.org/x/sys v0.30.0"
newest=v1.15.1 # of go-selinux

die() { echo "imports: FAILED: $*" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/fastlabel-imports.XXXXXX")
trap 'rm -rf "$work"' EXIT

# program NAME IMPORT CALL [MODULE@VERSION]: a module outside that makes the call,
# and requires that version, else this module.
program() {
    mkdir "$work/$1"
    printf 'module example.com/%s\n\ngo 1.25.0\n' "$1" >"$work/$1/go.mod"
    if [ -n "${4-}" ]; then
        go -C "$work/$1" mod edit -require "$4"
    else
        go -C "$work/$1" mod edit -require "$module@v0.0.0" -replace "$module=$repo"
    fi
    {
        printf 'package main\n\n'
        [ -z "$2" ] || printf 'import (\n\t"os"\n\n\t"%s"\n)\n\n' "$2"
        printf 'func main() {\n'
        [ -z "$2" ] || printf '\tif len(os.Args) == 3 && %s(os.Args[1], os.Args[2], false) != nil {\n\t\tos.Exit(1)\n\t}\n' "$3"
        printf '}\n'
    } >"$work/$1/main.go"
    go -C "$work/$1" build -trimpath -ldflags "-s -w" -o program . 2>"$work/$1/log" || { cat "$work/$1/log" >&2; return 1; }
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

# changes NAME: the lines of go.mod that change where a module with CRI-O's versions
# imports relabel, but for the one that requires it.
changes() {
    mkdir "$work/$1"
    cat >"$work/$1/go.mod" <<'END'
module example.com/crio

go 1.26.4

require (
	github.com/klauspost/compress v1.18.4
	github.com/opencontainers/selinux v1.13.1
	github.com/sirupsen/logrus v1.9.4
	go.yaml.in/yaml/v3 v3.0.4
	golang.org/x/sys v0.45.0
)
END
    cat >"$work/$1/main.go" <<'END'
package main

import (
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/opencontainers/selinux/go-selinux/label"
	_ "github.com/sirupsen/logrus"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sys/unix"
)

func main() {}
END
    go -C "$work/$1" mod tidy 2>"$work/$1/log" || { cat "$work/$1/log" >&2; return 1; }
    versions "$1" >"$work/$1/before"
    printf 'package main\n\nimport _ "%s/relabel"\n' "$module" >"$work/$1/relabel.go"
    go -C "$work/$1" mod edit -require "$module@v0.0.0" -replace "$module=$repo"
    go -C "$work/$1" mod tidy 2>"$work/$1/log" || { cat "$work/$1/log" >&2; return 1; }
    versions "$1" | diff "$work/$1/before" - | grep '^[<>]' | grep -vx "> $module v0.0.0" || true
}

# versions NAME: what the go.mod of that module requires, a line each.
versions() { grep -oE '^go .*|^toolchain .*|[^ 	]+ v[0-9][^ ]*' "$work/$1/go.mod" | LC_ALL=C sort; }

size() { stat -c %s "$work/$1/program"; }

# grown NAME: by how many bytes more than the empty program.
grown() { printf '%s: %d KiB more than an empty main (%d KiB)\n' "$1" $((($(size "$1") - $(size empty)) / 1024)) $(($(size empty) / 1024)); }

program empty "" ""
program relabel "$module/relabel" relabel.Relabel
program go-selinux github.com/opencontainers/selinux/go-selinux/label label.Relabel "github.com/opencontainers/selinux@$newest"

check relabel || die "relabel brings other modules"
echo "imports: relabel brings these modules and no other:"
modules relabel | sed 's/^/  /'
raised=$(go -C "$work/relabel" list -m -f '{{if .Main}}go {{.GoVersion}}{{else}}{{.Path}} {{.Version}}{{end}}' \
    example.com/relabel github.com/opencontainers/selinux golang.org/x/sys)
[ "$raised" = "$floor" ] || die "the library raises versions: $raised"
printf 'imports: and these versions, or later ones:\n  %s\n' "${floor//$'\n'/$'\n  '}"
changed=$(changes crio) || die "no module has the versions of CRI-O"
[ -z "$changed" ] || die "CRI-O's go.mod changes: $changed"
echo "imports: a module with CRI-O's versions imports relabel, and no other line of its go.mod changes"
GOTOOLCHAIN=go1.25.0 go vet ./relabel/... ./internal/... || die "Go 1.25 does not build the library"
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

mkdir -p "$work/copy/test"
cp -r go.mod go.sum internal relabel "$work/copy"
cp -r test/treetest "$work/copy/test"
printf 'package relabel\n\nimport _ "github.com/spf13/pflag"\n' >"$work/copy/relabel/broken.go"
repo=$work/copy
program broken "$module/relabel" relabel.Relabel
if check broken >"$work/said"; then
    die "a library that imports pflag passes"
fi
grep -q spf13/pflag "$work/said" || die "what is wrong is not named"
echo "imports: a copy of the library that imports pflag is noticed"
go -C "$work/copy" mod edit -require go.yaml.in/yaml/v3@v3.0.6
changes copied >"$work/said"
grep -q 'yaml/v3 v3.0.6' "$work/said" || die "a copy that needs a newer yaml passes"
echo "imports: so is one that needs a newer yaml"

cp go.mod "$work/newest.mod"
cp go.sum "$work/newest.sum"
sed -i "s|\(opencontainers/selinux\) v.*|\1 $newest|" "$work/newest.mod"
go test -modfile "$work/newest.mod" -count=1 -run '^TestDropinContract$' ./relabel >"$work/said" ||
    { cat "$work/said"; die "the drop-ins do otherwise than go-selinux $newest"; }
echo "imports: the drop-ins do as go-selinux $newest does, but for the differences listed"
