#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/demo.sh FASTLABEL: labels a tree of 100,000 files on a scratch ext4
# volume, reads every label back with getfattr, and labels it again to show
# that nothing is written. Fails at the first thing that is not as it should
# be. SELinux need not be running: the label is then a plain attribute.
set -euo pipefail

fastlabel=$(realpath "$1")
label=system_u:object_r:container_file_t:s0
other=system_u:object_r:etc_t:s0

die() { echo "demo: FAILED: $*" >&2; exit 1; }
say() { printf '\n== %s\n' "$*"; }

[ "$(id -u)" = 0 ] || die "mounting a volume and setting labels needs root: sudo make demo"

work=$(mktemp -d "${TMPDIR:-/tmp}/fastlabel-demo.XXXXXX")
vol=volume
cd "$work"
clean() {
    status=$?
    trap '' INT TERM HUP
    cd /
    if mountpoint -q "$work/$vol"; then umount "$work/$vol" || umount -l "$work/$vol"; fi
    rm -rf --one-file-system "$work"
    exit "$status"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# expect WANT COMMAND...: shows the command, runs it, and checks its exit code.
# What it prints is kept in $out.
out=
expect() {
    local want=$1 got=0
    shift
    echo "\$ ${*/#"$fastlabel"/fastlabel}"
    out=$("$@" 2>&1) || got=$?
    [ -z "$out" ] || printf '%s\n' "$out"
    [ "$got" = "$want" ] || die "exit code $got, not $want"
    [ "$got" = 0 ] || echo "  exit $got, as expected"
}

# says COUNTS: the summary in $out has them.
says() { [[ $out == *": $1, "* ]] || die "the summary does not say \"$1\""; }

# thousands N: N as the summary writes it.
thousands() { LC_ALL=C sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta' <<<"$1"; }

# bearing LABEL: how many entries have it, says getfattr.
bearing() {
    getfattr -R -P -h --absolute-names -d -m '^security\.selinux$' "$vol" |
        grep -cxF "security.selinux=\"$1\"" || true
}

say "a scratch ext4 volume with 100,000 files in 1,000 directories, a link out of it, a FIFO"
mkdir "$vol"
truncate -s 2G image
mkfs.ext4 -q -F -i 8192 image
mount -o loop image "$vol" 2>why ||
    die "this machine does not let the demo mount a file through a loop device ($(sed -n '1s/.*: //p' why | tr -d .)); a container needs --privileged for that"
seq -f "$vol/d%04g" 1 1000 | xargs mkdir
printf '%s\n' "$vol"/d{0001..1000}/f{001..100} | xargs touch
echo outside >outside
setfattr -n security.selinux -v "$other" outside
ln -s ../outside "$vol/link"
mkfifo "$vol/fifo"
n=$(find "$vol" -printf x | wc -c)
[ "$n" -gt 101000 ] || die "only $n entries made"
all=$(thousands "$n")
echo "$all entries, says find"

say "before: not labelled"
expect 4 "$fastlabel" probe "$vol"

say "label it"
expect 0 "$fastlabel" "$vol"
says "$all entries, $all written, 0 failed"

say "read it back"
got=$(bearing "$label")
echo "$(thousands "$got") of $all entries have $label, says getfattr"
[ "$got" = "$n" ] || die "not all are labelled"
got=$(getfattr --absolute-names --only-values -n security.selinux outside | tr -d '\0')
echo "what the link points to still has $got"
[ "$got" = "$other" ] || die "a link was followed"
expect 0 "$fastlabel" probe "$vol"

say "again: everything is read, nothing is written"
expect 0 "$fastlabel" "$vol"
says "$all entries, 0 written, $all right, 0 failed"

say "one stray: verify finds it, another run heals it and writes nothing else"
setfattr -n security.selinux -v "$other" "$vol/d0500/f050"
expect 4 "$fastlabel" verify -v "$vol"
expect 0 "$fastlabel" "$vol"
says "$all entries, 1 written, $(thousands $((n - 1))) right, 0 failed"
expect 0 "$fastlabel" verify "$vol"

say "all as it should be"
