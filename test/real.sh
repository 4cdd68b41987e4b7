#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/real.sh FASTLABEL: labels trees that were not made for the purpose, a
# copy of this machine's /usr and one of its Go module cache, on ext4 and on
# XFS. The copies have the real names and kinds and no contents. Every label
# is read back with getfattr, a second run must write nothing, and a twin
# labelled by GNU chcon must be identical, entry by entry.
#
# The volumes are sparse files in TMPDIR (/var/tmp).
set -euo pipefail

fastlabel=$(realpath "$1")
label=system_u:object_r:container_file_t:s0:c123,c456
other=system_u:object_r:etc_t:s0
need=4 # GiB that the copies may take

die() { echo "real: FAILED: $*" >&2; exit 1; }
say() { printf '%s: %s\n' "$fs" "$*"; }

[ "$(id -u)" = 0 ] || die "mounting a volume and setting labels needs root: sudo make test-real"
dir=${TMPDIR:-/var/tmp}
free=$(df --output=avail -B1G "$dir" | tail -n 1 | tr -d ' ')
[ "$free" -ge "$need" ] || die "$dir has $free GiB free, not $need"

work=$(mktemp -d "$dir/fastlabel-real.XXXXXX")
vol=$work/volume
clean() {
    status=$?
    trap '' INT TERM HUP
    if mountpoint -q "$vol"; then umount "$vol" || umount -l "$vol"; fi
    rm -rf --one-file-system "$work"
    exit "$status"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# dump DIR: a sorted line for each entry that has a label: its name, escaped,
# and the label.
dump() {
    (cd "$1" && getfattr -R -P -h -d -m '^security\.selinux$' .) |
        awk 'BEGIN { RS = ""; FS = "\n" } { print $1 " " $2 }' | LC_ALL=C sort
}

# number KEY FILE: that number of the summary in FILE.
number() {
    grep '"message_type":"summary"' "$2" | grep -o "\"$1\":[0-9]*" | cut -d: -f2
}

# run WANT COMMAND...: its exit code must be that.
run() {
    local want=$1 got=0
    shift
    "$@" || got=$?
    [ "$got" = "$want" ] || die "$* exits with $got, not $want"
}

one() {
    fs=$1
    shift
    truncate -s 40G "$work/image"
    "$@" "$work/image"
    mkdir -p "$vol"
    mount -o loop "$work/image" "$vol"
    mkdir "$vol/a"
    cp -a -x --attributes-only /usr "$vol/a/usr"
    cp -a -x --attributes-only "$(go env GOMODCACHE)" "$vol/a/mod"
    cp -a --attributes-only "$vol/a" "$vol/b"
    local n
    n=$(find "$vol/a" -printf x | wc -c)
    say "$n entries, $(find "$vol/a" -type d -printf x | wc -c) directories, \
$(find "$vol/a" -type l -printf x | wc -c) links, \
$(find "$vol/a" -type f -links +1 -printf x | wc -c) names of files that have more than one"

    run 0 "$fastlabel" --json --label "$label" "$vol/a" >"$work/out"
    say "fastlabel: $(grep '"summary"' "$work/out")"
    [ "$(number seen "$work/out")" = "$n" ] || die "$fs: seen is not $n"
    [ "$(number failed "$work/out")" = 0 ] || die "$fs: something failed"

    dump "$vol/a" >"$work/a"
    [ "$(wc -l <"$work/a")" = "$n" ] || die "$fs: getfattr finds $(wc -l <"$work/a") labels, not $n"
    ! grep -vF " security.selinux=\"$label\"" "$work/a" || die "$fs: getfattr finds another label"
    say "getfattr finds $n labels, all $label"

    run 0 "$fastlabel" --json --label "$label" "$vol/a" >"$work/out"
    [ "$(number written "$work/out")" = 0 ] || die "$fs: the second run writes"
    [ "$(number right "$work/out")" = "$n" ] || die "$fs: the second run finds less than $n right"
    say "the second run reads $n and writes 0"

    chcon -R -h "$label" "$vol/b"
    dump "$vol/b" >"$work/b"
    cmp "$work/a" "$work/b" || die "$fs: chcon's twin differs"
    say "chcon's twin is identical"

    # A control: the comparison, and verify, see one label among all.
    setfattr -h -n security.selinux -v "$other" "$vol/b/usr/bin/env"
    dump "$vol/b" >"$work/b"
    ! cmp -s "$work/a" "$work/b" || die "$fs: the comparison is blind"
    run 4 "$fastlabel" verify -q --label "$label" "$vol/b"
    run 0 "$fastlabel" verify -q --label "$label" "$vol/a"
    say "one other label in the twin is noticed"

    umount "$vol"
    rm "$work/image"
}

one ext4 mkfs.ext4 -q -F -N 1500000
one xfs mkfs.xfs -q -f
echo "real: as chcon labels them, on ext4 and XFS"
