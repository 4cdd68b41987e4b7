#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/packages.sh: make release makes twice the same bytes, whatever the directory and
# the umask. Its packages hold what make install installs, and nothing else but what a
# distribution wants to be told. The deb is installed in a
# minimal Debian 12 in a directory, labels a volume there by what its own help says;
# that Debian boots in a container, and systemd labels a volume by the unit; and the
# package is removed: nothing is left. The rpm is installed in an empty directory by
# rpm, and removed. fastlabel-hook, of each, holds the hook: without it none is there,
# and one of another stays.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "packages: FAILED: $*" >&2; exit 1; }
say() { echo "packages: $*"; }

[ "$(id -u)" = 0 ] || die "debootstrap needs root: sudo make test-packages"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/fastlabel-packages.XXXXXX")
root=$work/root
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

# same WHAT FILE1 FILE2: two lists are one.
same() { diff "$2" "$3" || die "$1"; }

# released HOUSE DIR: a release of the source in HOUSE.
version=$(git describe --always --dirty)
released() { make -C "$1" release MAINTAINER='A Tester <tester@example.org>' VERSION="$version" RELEASE="$2" >"$work/log" 2>&1 || { cat "$work/log"; die "make release"; }; }

if make release >/dev/null 2>"$work/log"; then die "a release that nobody answers for"; fi
grep -q 'who answers' "$work/log" || { cat "$work/log"; die "make release"; }
released . "$work/release"
mkdir "$work/copy"
cp -r .git "$work/copy/"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/copy"
ln -s "$PWD/.tools" "$work/copy/.tools"
(umask 077 && released "$work/copy" "$work/again")
same "the same source makes another release" "$work/release/SHA256SUMS" "$work/again/SHA256SUMS"
say "a release of $(wc -l <"$work/release/SHA256SUMS") files, twice the same bytes"

arch=$(go env GOARCH)
debs=("$work"/release/fastlabel_*_"$arch".deb "$work"/release/fastlabel-hook_*_"$arch".deb)
rpms=("$work"/release/fastlabel-[0-9]*."$(uname -m)".rpm "$work"/release/fastlabel-hook-*."$(uname -m)".rpm)
[[ -f ${debs[0]} && -f ${rpms[0]} && -f ${debs[1]} && -f ${rpms[1]} && ${#debs[@]} = 2 && ${#rpms[@]} = 2 ]] || die "not two debs and two rpms"
tar -xzf "$work/release/fastlabel-$version-linux-$arch.tar.gz" -C "$work" usr/local/bin/fastlabel
sum=$(sha256sum <"$work/usr/local/bin/fastlabel")
grep -q "${sum%% *}" "$work/release/fastlabel-$version-linux-$arch.cdx.json" || die "the bill of materials is of another program"

make install install-hook PREFIX=/usr ZSHDIR=/usr/share/zsh/COMPLETIONS DESTDIR="$work/install" >"$work/log" 2>&1 || { cat "$work/log"; die "make install"; }
(cd "$work/install" && find . -type f -printf '/%P %m\n' | LC_ALL=C sort) >"$work/installed"
[ "$(wc -l <"$work/installed")" -ge 8 ] || die "make install installs little: $(cat "$work/installed")"

# listed DIRECTORY ZSH: what is unpacked there, without what only the package has.
listed() {
    (cd "$1" && find . -type f -printf '/%P %m\n') |
        sed "s|/usr/share/zsh/$2/|/usr/share/zsh/COMPLETIONS/|" |
        grep -vE '^/(usr/share/(doc|licenses)/fastlabel(-hook)?|var/lib/rpm)/' | LC_ALL=C sort
}

dpkg-deb -x "${debs[0]}" "$work/deb"
[ ! -e "$work/deb/usr/share/containers" ] || die "the package of the command activates the hook"
dpkg-deb -x "${debs[1]}" "$work/deb"
listed "$work/deb" vendor-completions >"$work/list"
same "the deb and make install differ" "$work/installed" "$work/list"
# Debian's rpm says that it should not be used.
mkdir "$work/rpm"
inRPM() { rpm --root "$work/rpm" --dbpath /var/lib/rpm "$@" 2>"$work/log" || { cat "$work/log"; die "rpm $1"; }; }
inRPM -i --nosignature "${rpms[0]}"
[ ! -e "$work/rpm/usr/share/containers" ] || die "the package of the command activates the hook"
inRPM -i --nosignature "${rpms[1]}"
listed "$work/rpm" site-functions >"$work/list"
same "the rpm and make install differ" "$work/installed" "$work/list"
[[ -s $work/rpm/usr/share/licenses/fastlabel/LICENSE && -s $work/deb/usr/share/doc/fastlabel/copyright ]] || die "no licence"
say "deb and rpm hold the $(wc -l <"$work/installed") files of make install"

# Go programs are static; the first upload to Debian would close a bug.
lintian --allow-root --fail-on error,warning --suppress-tags statically-linked-binary,initial-upload-closes-no-bugs "${debs[@]}" ||
    die "lintian"
say "lintian finds nothing wrong"

inRPM -e fastlabel-hook
inRPM -e fastlabel
left=$(find "$work/rpm" -path "$work/rpm/var" -prune -o -type f -print)
[ -z "$left" ] || die "rpm -e leaves $left"
say "rpm installs it and removes it"

# shellcheck disable=SC2016 # apt's own variables
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' | awk '$2 == "bookworm" && !seen++ { print $1 }')
[ -n "$mirror" ] || die "apt on this machine knows no mirror of bookworm"
say "a minimal Debian 12"
debootstrap --variant=minbase --include=systemd-sysv bookworm "$root" "$mirror" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; die "debootstrap"; }
cp "${debs[0]}" "$root/root/fastlabel.deb"
cp "${debs[1]}" "$root/root/fastlabel-hook.deb"

# inside COMMAND: runs it there, in mounts that end with it.
inside() {
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --propagation private bash -euc '
        mount --bind "$1" "$1"
        for d in dev proc sys; do mount --rbind "/$d" "$1/$d"; done
        mount -t tmpfs none "$1/srv"
        exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -euc "$2"
    ' inside "$root" "$1" </dev/null
}

# everything: the files there, but for what apt and dpkg write about themselves, and
# the directory of locks.
everything() {
    (cd "$root" && find . -xdev \( -path ./var/cache -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./run \) -prune -o -printf '%P %y %m\n' | LC_ALL=C sort)
}

everything >"$work/before"
inside 'apt-get install -q -y --no-install-recommends /root/fastlabel.deb /root/fastlabel-hook.deb' >"$work/log" 2>&1 || { cat "$work/log"; die "apt-get install"; }
# shellcheck disable=SC2016 # for the inner shell
inside '
    mkdir -p /srv/volume/a/b; touch /srv/volume/a/b/{1..100}
    fastlabel version
    fastlabel --help | grep -q "^Usage: fastlabel "
    fastlabel -l s0:c35,c75 /srv/volume
    fastlabel verify -l s0:c35,c75 /srv/volume
    fastlabel probe -l s0:c35,c75 /srv/volume
    zcat /usr/share/man/man1/fastlabel.1.gz | grep -q "^\.SH NAME"
    # The hook runs the program, and the completion is one.
    grep -o "/usr/bin/[a-z]*" /usr/share/containers/oci/hooks.d/fastlabel.json | xargs test -x
    grep -o "ExecStart=\"[^\"]*" "/usr/lib/systemd/system/fastlabel@.service" | cut -d\" -f2 | xargs test -x
    . /usr/share/bash-completion/completions/fastlabel; complete -p fastlabel
' || die "what is installed does not work"
# booted NAME FLAGS: the unit's first start, by a systemd that boots on a tmpfs over
# that root, of a volume of ours; what the unit and the journal then say is in NAME.
booted() {
    local name=$1 flags=$2
    mkdir -p "$work/boot/$name"
    cat >"$work/boot/$name/ask.service" <<-'END'
		[Unit]
		After=multi-user.target
		[Service]
		Type=oneshot
		ExecStart=/bin/sh -c 'systemctl show -P Result -P ExecMainStatus fastlabel@srv-volume.service >/boot/result'
		ExecStart=/bin/sh -c 'journalctl --no-pager -o cat -u fastlabel@srv-volume.service >/boot/journal'
		ExecStart=/bin/systemctl poweroff --force
	END
    cat >"$work/boot/$name/boot" <<-END
		#!/bin/sh
		set -eu
		mkdir -p /etc/fastlabel
		echo 'FLAGS=$flags' >/etc/fastlabel/srv-volume.conf
		systemctl --root=/ -q enable fastlabel@srv-volume.service
		ln -s /boot/ask.service /etc/systemd/system/
		systemctl --root=/ -q add-wants multi-user.target ask.service
		exec /sbin/init
	END
    chmod +x "$work/boot/$name/boot"
    # Its exit code is of no use: it may fail to remove what it did not make. Its own
    # filter knows no calls newer than itself: without it, only the unit's is there.
    SYSTEMD_SECCOMP=0 SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout 120 systemd-nspawn --quiet --directory="$root" --volatile=overlay \
        --bind="$work/boot/$name:/boot" --bind="$work/volume:/srv/volume" --register=no --keep-unit --console=pipe \
        /boot/boot </dev/null >"$work/log" 2>&1 || true
    [ -s "$work/boot/$name/result" ] || { tail -n 20 "$work/log"; die "systemd does not come up"; }
}

# has FILE LEVEL
has() { [ "$(getfattr --absolute-names -h --only-values -n security.selinux "$1" | tr -d '\0')" = "system_u:object_r:container_file_t:$2" ]; }

mkdir -p "$work/volume/a/b" && touch "$work"/volume/a/b/{1..1000} # more than are labelled without a clone
# The way outside of the unit: its filters must leave it.
way() { grep -o '"way":"[^"]*"' "$1"; }
"$root/usr/bin/fastlabel" --json -l s0:c1,c2 "$work/volume" >"$work/outside"
booted first '--json -l s0:c35,c75'
[ "$(cat "$work/boot/first/result")" = $'success\n0' ] || { cat "$work/boot/first/"{result,journal}; die "the unit fails"; }
{ has "$work/volume" s0:c35,c75 && has "$work/volume/a/b/100" s0:c35,c75; } || die "the unit labels nothing"
[ "$(way "$work/outside")" = "$(way "$work/boot/first/journal")" ] || { cat "$work/outside" "$work/boot/first/journal"; die "the unit goes another way"; }
# A volume that has the label costs one read, by the unit's own flags.
booted again '--skip root -l s0:c35,c75'
grep -q 'already labelled' "$work/boot/again/journal" || { cat "$work/boot/again/journal"; die "the unit walks what is labelled"; }
# What fails does not keep the machine from booting, and is seen.
booted wrong '--label nonsense'
[ "$(cat "$work/boot/wrong/result")" = $'exit-code\n2' ] || { cat "$work/boot/wrong/"{result,journal}; die "the unit hides that it failed"; }
has "$work/volume" s0:c35,c75 || die "a label that is none was given"
say "systemd labels a volume by the unit, under its filters, the same way"

hook=$root/usr/share/containers/oci/hooks.d/fastlabel.json
inside 'apt-get purge -q -y fastlabel-hook' >"$work/log" 2>&1 || { cat "$work/log"; die "apt-get purge fastlabel-hook"; }
[ ! -e "$hook" ] || die "the hook stays"
mkdir -p "${hook%/*}" && echo '{}' >"$hook"
inside 'apt-get purge -q -y fastlabel' >"$work/log" 2>&1 || { cat "$work/log"; die "apt-get purge"; }
[ -e "$hook" ] || die "removing the command removes a hook that it did not install"
rm "$hook"
(cd "$root" && rmdir -p --ignore-fail-on-non-empty usr/share/containers/oci/hooks.d)
everything >"$work/after"
same "apt-get purge leaves this" "$work/before" "$work/after"
say "the deb is installed, works, and is removed without a trace"
