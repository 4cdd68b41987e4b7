#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench/ab.sh REV1 REV2 [FLAG...]: builds fastlabel of two commits, measures
# both and the floor in turns, and prints how many times REV1's time each takes.
# The flags are those of `bench run`: -n 300000, -fs xfs, -rounds 20. For how
# much two runs differ by themselves, name one commit twice. (root)
set -euo pipefail

[ $# -ge 2 ] || { sed -n 's/^# \?//; 3,7p' "$0" >&2; exit 2; }
rev1=$(git rev-parse --verify --short "$1^{commit}")
rev2=$(git rev-parse --verify --short "$2^{commit}")
shift 2

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/fastlabel-ab.XXXXXX")
clean() {
    status=$?
    trap '' INT TERM HUP
    if [ -d "$work/tree" ]; then git -C "$here" worktree remove --force "$work/tree"; fi
    rm -rf --one-file-system "$work"
    exit "$status"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# build REV NAME: fastlabel of that commit, as $work/NAME.
build() {
    git -C "$here" worktree add --quiet --detach "$work/tree" "$1"
    (cd "$work/tree" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$work/$2" ./cmd/fastlabel)
    git -C "$here" worktree remove --force "$work/tree"
}
build "$rev1" "a-$rev1"
build "$rev2" "b-$rev2"

cd "$here"
go build -o "$work/bench" .
"$work/bench" run -plan quick -fs ext4,xfs,tmpfs -state wrong,right -n 60000 -with "fastlabel@$work/a-$rev1,fastlabel@$work/b-$rev2,floor-dir,floor-inode" -o "$work/results" "$@"
"$work/bench" table -base "fastlabel@a-$rev1" "$work/results"
