#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Breaks the package as each testdata/mutants/*.patch says, in a copy, and runs
# the tests that the patch names (Killed-by) under the race detector. A mutant
# that passes, does not apply or does not compile fails the script; one that
# hangs until the timeout is dead. First come the named tests on sound source:
# they must pass, else their failing would say nothing.
#
#	mutants.sh          all mutants
#	mutants.sh NAME...  these
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
pkg=relabel/internal/steal
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM
bad=0

fresh() {
	rm -rf "$tmp/m"
	mkdir -p "$tmp/m/relabel/internal"
	cp "$root/go.mod" "$root/go.sum" "$tmp/m/"
	cp -r "$here" "$tmp/m/$pkg"
}

# attempt TESTS is go test -race -count=3 on the copy, built before.
attempt() {
	(cd "$tmp/m/$pkg" && "$tmp/bin" -test.count=3 -test.timeout=60s -test.failfast -test.run "^($1)\$") >"$tmp/out" 2>&1
}

build() {
	(cd "$tmp/m" && go test -race -c -o "$tmp/bin" "./$pkg") >"$tmp/out" 2>&1
}

if [ $# = 0 ]; then
	for patch in "$here"/testdata/mutants/*.patch; do
		set -- "$@" "$(basename "$patch" .patch)"
	done
fi

fresh
all=$(for m; do sed -n 's/^Killed-by: //p' "$here/testdata/mutants/$m.patch"; done | tr '\n' '|' | sed 's/|$//')
if ! build || ! attempt "$all"; then
	cat "$tmp/out"
	echo "the tests fail without a mutant"
	exit 1
fi

for m; do
	patch=$here/testdata/mutants/$m.patch
	tests=$(sed -n 's/^Killed-by: //p' "$patch")
	fresh
	if [ -z "$tests" ] || ! (cd "$tmp/m" && patch -s -p1 --fuzz=0 <"$patch") >"$tmp/out" 2>&1 || ! build; then
		printf 'ERROR     %-34s does not apply or compile\n' "$m"
		cat "$tmp/out"
		bad=1
	elif attempt "$tests"; then
		printf 'SURVIVES  %-34s %s\n' "$m" "$tests"
		bad=1
	else
		how=$(grep -m1 -oE 'DATA RACE|panic: (deadlock|test timed out)|^ +[a-z_]+_test\.go:[0-9]+: .*' "$tmp/out" | sed 's/^ *//' || true)
		printf 'dead      %-34s %-20s %s\n' "$m" "$tests" "$how"
	fi
done
exit $bad
