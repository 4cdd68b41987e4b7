#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/mutants.sh [NAME...]: breaks the engine as each
# test/torture/mutants/*.patch says (or only those named), in a copy, and runs
# the one test that the patch names in its first line:
#
#	Dies by: TestName[/subtest...] [in ./package]     (./relabel)
#	Dies by: torture TestName
#
# The test must fail. A mutant that passes, or whose test skips, hangs or does
# not run, has survived; one that does not apply or compile is an error. What only
# the torture tests kill, as a control of theirs, is passed over. First come
# the named tests on sound source: they must pass, else their failing would say
# nothing. The mutants of the pool have a script of their own,
# relabel/internal/steal/mutants.sh.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mutants=$root/test/torture/mutants
export CGO_ENABLED=0
export FASTLABEL_PROMISE=root,ext4,xfs,btrfs,tmpfs,strace,seccomp

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
copy=$tmp/copy
mkdir -p "$copy/test"
for part in go.mod go.sum relabel cmd testdata test/treetest; do
    cp -r "$root/$part" "$copy/$part"
done

# header NAME sets test and pkg; package is "torture" where no unit test kills.
header() {
    local line
    line=$(sed -n '1s/^Dies by: //p' "$mutants/$1.patch")
    pkg=./relabel test=$line
    case $line in
    torture\ *) pkg=torture test=${line#torture } ;;
    *\ in\ *) pkg=${line##* in } test=${line% in *} ;;
    esac
    [[ $test =~ ^Test[^\ ]+$ ]]
}

# build makes the test program of pkg from the copy as it stands. Paths are
# trimmed so that go's cache serves copies in other places too.
build() { (cd "$copy" && go test -trimpath -ldflags '-s -w' -c -o "$tmp/$1" "$pkg") >"$tmp/out" 2>&1; }

# attempt PROGRAM runs test, at its package, and nothing else.
attempt() {
    (cd "$copy/$pkg" && "$tmp/$1" -test.count=1 -test.timeout=120s -test.v \
        -test.run "^${test//\//\$/^}\$") >"$tmp/out" 2>&1
}

# verdict STATUS says what became of test: PASS, FAIL, or neither.
verdict() {
    if [[ $1 = 0 ]] && grep -q "^ *--- PASS: $test " "$tmp/out" && ! grep -q '^ *--- SKIP' "$tmp/out"; then
        echo PASS
    elif [[ $1 = 1 ]] && grep -q "^ *--- FAIL: $test " "$tmp/out"; then
        echo FAIL
    fi
}

if [[ $# = 0 ]]; then
    for file in "$mutants"/*.patch; do
        set -- "$@" "$(basename "$file" .patch)"
    done
fi

declare -A sound=() # what passed on sound source, by package
for name; do
    if [[ ! -f $mutants/$name.patch ]] || ! header "$name"; then
        echo "$name: there is no such patch, or its first line names no test"
        exit 1
    fi
    [[ $pkg = torture || -n ${sound[$pkg $test]-} ]] && continue
    program=sound-${pkg//[.\/]/_}
    if [[ ! -f $tmp/$program ]] && ! build "$program"; then
        cat "$tmp/out"
        echo "$pkg does not build without a mutant"
        exit 1
    fi
    status=0
    attempt "$program" || status=$?
    if [[ $(verdict $status) != PASS ]]; then
        cat "$tmp/out"
        echo "$test in $pkg does not pass without a mutant"
        exit 1
    fi
    sound[$pkg $test]=yes
done

count=0 survived=0 errors=0
for name; do
    header "$name"
    if [[ $pkg = torture ]]; then
        echo "passed over $name: a control of $test in test/torture"
        continue
    fi
    count=$((count + 1))
    if ! (cd "$copy" && patch -p1 -s -b -z .sound <"$mutants/$name.patch") >"$tmp/out" 2>&1; then
        echo "ERROR $name does not apply"
        cat "$tmp/out"
        errors=$((errors + 1))
    elif ! build mutant; then
        echo "ERROR $name does not compile"
        cat "$tmp/out"
        errors=$((errors + 1))
    else
        begin=${EPOCHREALTIME/[.,]/} status=0
        attempt mutant || status=$?
        took=$(((${EPOCHREALTIME/[.,]/} - begin) / 100000))
        if [[ $(verdict $status) = FAIL ]]; then
            printf 'dead %s by %s %d.%ds\n' "$name" "$test" $((took / 10)) $((took % 10))
        else
            printf 'SURVIVED %s %s %d.%ds\n' "$name" "$test" $((took / 10)) $((took % 10))
            grep -E '^ *--- |^(PASS|FAIL|panic)' "$tmp/out" | head -n 20 || true
            survived=$((survived + 1))
        fi
    fi
    # What the patch has changed is put back.
    while IFS= read -r -d '' saved; do
        mv "$saved" "${saved%.sound}"
    done < <(find "$copy" -name '*.sound' -print0)
    find "$copy" -name '*.rej' -delete
done
echo "$count mutants, $survived survived"
if [[ $errors -gt 0 ]]; then
    echo "$errors did not apply or compile"
fi
[[ $survived = 0 && $errors = 0 ]]
