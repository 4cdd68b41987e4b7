#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/fuzz.sh [DURATION]: runs every fuzz target of the module, one after
# another, each for DURATION (10m; what go test -fuzztime takes), and prints a
# line for each: its name, how many inputs it ran, how many of them reached
# code that none before had reached, and ok or FAILED. Workers: 1, or PARALLEL.
#
# Inputs are made smaller for at most 5 s each: by default go takes a minute for
# a label of 4 KiB, of which there are seeds, and runs nothing else during it.
# A failing input is left in testdata/fuzz/TARGET beside the target, where every
# go test runs it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

duration=${1:-10m}
parallel=${PARALLEL:-1}
[[ $# -le 1 && $duration =~ ^([0-9.]+(ms|s|m|h))+$|^[0-9]+x$ ]] ||
    { echo "usage: test/fuzz.sh [DURATION], such as 90s, 10m or 1000x" >&2; exit 2; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What this platform builds, of the files that have a target.
mapfile -t dirs < <(grep -rl --include='*_test.go' --exclude-dir='.?*' '^func Fuzz' . | xargs -r dirname | LC_ALL=C sort -u)
[ ${#dirs[@]} -gt 0 ] || { echo "fuzz: there is no target" >&2; exit 1; }

ran=0
failed=0
for dir in "${dirs[@]}"; do
    go test -list '^Fuzz' "$dir" >"$log" 2>&1 || { cat "$log"; echo "fuzz: FAILED: $dir does not build" >&2; exit 1; }
    mapfile -t targets < <(grep '^Fuzz' "$log" || true)
    for target in "${targets[@]}"; do
        result=ok
        go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" \
            -fuzzminimizetime 5s -parallel "$parallel" "$dir" >"$log" 2>&1 || result=FAILED
        # The last of: fuzz: elapsed: 3s, execs: 48574 (16187/sec), new interesting: 28 (total: 39)
        execs=$(sed -n 's/^fuzz: elapsed: .*, execs: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
        new=$(sed -n 's/^fuzz: elapsed: .*, new interesting: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
        printf 'fuzz: %-22s %-20s %10s execs %5s new  %s\n' "${dir#./}" "$target" "${execs:-0}" "${new:-0}" "$result"
        ran=$((ran + 1))
        if [ "$result" != ok ]; then
            failed=$((failed + 1))
            grep -v '^fuzz: elapsed:' "$log" | cut -c 1-2000 | tail -n 40 | sed 's/^/    /'
        fi
    done
done

[ "$failed" = 0 ] || { echo "fuzz: FAILED: $failed of $ran targets" >&2; exit 1; }
echo "fuzz: $ran targets, $duration each"
