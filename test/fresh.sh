#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/fresh.sh [PLACE...]: runs the commands that README.md prints for a fresh
# machine, as printed, in each place: debian-12 and debian-13, each in a
# directory, and chroot, a Debian 12 whose / is no mount point. A place is a
# minimal system with gcc, git, make and this machine's Go, and a clone of this
# repository's HEAD. Debian comes from the mirror that this machine uses, and
# modules from the proxy that it uses.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "fresh: FAILED: $*" >&2; exit 1; }
say() { echo "fresh: $*"; }

[ "$(id -u)" = 0 ] || die "debootstrap needs root: sudo make test-fresh"
[ $# -gt 0 ] || set -- debian-12 debian-13 chroot

work=$(mktemp -d "${TMPDIR:-/var/tmp}/fastlabel-fresh.XXXXXX")
clean() {
    status=$?
    trap '' INT TERM HUP
    rm -rf --one-file-system "$work"
    exit "$status"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# What README.md prints in its first sh block.
mapfile -t lines < <(awk '/^```sh$/ { on = 1; next } /^```$/ && on { exit } on' README.md)
[ "${#lines[@]}" -gt 0 ] || die "README.md prints no commands"

# shellcheck disable=SC2016 # apt's own variables
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' | awk '$2 == "bookworm" && !seen++ { print $1 }')
[ -n "$mirror" ] || die "apt on this machine knows no mirror of bookworm"

# The network as it is here: what Go and the environment say of proxies.
environment=(PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    HOME=/root LANG=C.UTF-8 TERM=dumb)
[ ! -r "${SSL_CERT_FILE:-}" ] || environment+=(SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt)
for v in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!v:-}" ] || environment+=("$v=${!v}")
done
for v in GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOINSECURE; do
    environment+=("$v=$(go env "$v")")
done

# make_place PLACE: makes it in $work.
make_place() {
    local root=$work/$1 suite=bookworm
    [ "$1" != debian-13 ] || suite=trixie
    say "$1: a minimal Debian with gcc, git and make"
    unshare --mount debootstrap --variant=minbase --include=ca-certificates,gcc,git,make "$suite" "$root" "$mirror" >"$work/log" 2>&1 ||
        { tail -n 20 "$work/log"; die "debootstrap"; }
    # Names, certificates, and what apt says of proxies.
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    apt-config dump | grep -iE '^Acquire::(http|https|Check-)' >"$root/etc/apt/apt.conf.d/99host" || true
    [ ! -r "${SSL_CERT_FILE:-}" ] || cp -L "$SSL_CERT_FILE" "$root/etc/ssl/certs/ca-certificates.crt"
    mkdir "$root/usr/local/go"
    git clone -q "file://$PWD" "$root/root/fastlabel"
    say "a clone of $(git -C "$root/root/fastlabel" log -1 --format='%h %s')"
}

# inside PLACE COMMAND: runs it there. What is mounted for it is mounted in a
# namespace that ends with it, so that there is nothing to unmount, and nothing
# of this machine beneath the directory that is removed in the end.
inside() {
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --propagation private bash -euc '
        root=$1 goroot=$2 command=$3
        shift 3
        [[ $root = */chroot ]] || mount --bind "$root" "$root" # as on a machine, / is a mount
        mount --bind "$goroot" "$root/usr/local/go"
        mount -o remount,bind,ro "$root/usr/local/go"
        for d in dev proc sys; do mount --rbind "/$d" "$root/$d"; done
        exec chroot "$root" env -i "$@" bash -c "cd /root/fastlabel && $command"
    ' inside "$work/$1" "$(go env GOROOT)" "$2" "${environment[@]}" </dev/null
}

for place; do
    make_place "$place"
    for line in "${lines[@]}"; do
        say "$place: \$ $line"
        begin=$SECONDS
        inside "$place" "$line" || die "$place: '$line' exits with $?"
        say "$place: done in $((SECONDS - begin)) s"
    done
    rm -rf --one-file-system "${work:?}/$place"
done
say "every command of README.md works on a fresh machine"
