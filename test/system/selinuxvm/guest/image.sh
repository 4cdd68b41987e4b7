#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# image.sh IMAGE SUITE...: on the host, makes the machine's disk and the kernels of these
# suites of Debian in the directory IMAGE, whole or not at all. Its caller holds the lock of
# the directory above, so what stands there unfinished is nobody's.
set -eu -o pipefail
umask 022
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
guest=$(dirname "$(realpath "$0")")
image=$(realpath -m "$1")
shift
[ ! -e "$image" ] || exit 0 # another has made it
rm -rf "$(dirname "$image")"/new-*
work=$(mktemp -d "$(dirname "$image")/new-XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root

# The keys of Debian's archive. What is not signed by one of them is refused by apt and by
# debootstrap.
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Debian 13, for the policy of 12 has no types for containers.
suite_of_root=trixie

# What the root has beyond what every Debian has.
packages=attr,btrfs-progs,busybox-static,crun,e2fsprogs,kmod,podman,policycoreutils,runc
packages+=,selinux-policy-default,selinux-utils,semodule-utils,strace,xfsprogs

# What the machine's devices and its tests need of a kernel.
modules="virtio_pci virtio_blk virtio_console crc32c_generic ext4 xfs btrfs loop overlay virtio_net nfsd nfsv4"

# The newest format of a policy that every kernel here reads. It is also in init.
policy=33

# Where apt on this machine has its packages from.
# shellcheck disable=SC2016 # apt expands these
mirror=$(apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
    awk -F '|' '$1 == "Debian" && $2 != "" && !n++ { print $2 }')
if [ -z "$mirror" ]; then
    echo "apt on this machine knows no mirror of Debian, or has no lists: run apt-get update" >&2
    exit 1
fi

# fetch SUITE: unpacks the suite's cloud kernel below $work/SUITE. apt has a state of its own:
# nothing that the host has installed, pinned or configured counts, but for how it reaches
# the network. A kernel is one package, or from 7 on one for itself and one for its modules.
fetch() {
    local state=$work/$1-apt
    local apt=(
        -q -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
        -o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status"
        -o Dir::Cache="$state/cache" -o Acquire::Languages=none
        -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Get::AllowUnauthenticated=false
        -o APT::Sandbox::User=root # the directory is root's
    )
    mkdir -p "$state"/{lists/partial,cache/archives/partial,debs} "$work/$1"
    echo "deb [arch=amd64 signed-by=$keyring] $mirror $1 main" >"$state/sources.list"
    touch "$state/status"
    cd "$state/debs"
    apt-get "${apt[@]}" update --error-on=any
    apt-cache "${apt[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances linux-image-cloud-amd64 | grep -E '^linux-(image|binary|modules)-[0-9]\S*$' | sort -u >../kernels
    xargs apt-get "${apt[@]}" download <../kernels
    for deb in *.deb; do
        dpkg-deb --extract "$deb" "$work/$1"
    done
}

# They are fetched while debootstrap works.
jobs=()
for suite; do
    fetch "$suite" &
    jobs+=($!)
done

# dpkg is quick: what fails is thrown away whole, and nobody reads there.
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/doc/*' 'path-exclude=/usr/share/locale/*' 'path-exclude=/usr/share/man/*' \
    >"$root/etc/dpkg/dpkg.cfg.d/selinuxvm"
# What it mounts is gone with it, however it ends.
unshare -m debootstrap --force-check-gpg --keyring=$keyring --arch=amd64 --variant=minbase --include=$packages \
    $suite_of_root "$root" "$mirror"

# The policy, with what the machine needs, for the oldest kernel. The package's own is in a
# newer format, and what loads the policy in the machine, as semodule does, would take that.
grep -q SELINUXTYPE=default "$root/etc/selinux/config"
install -m 644 "$guest/extra.cil" "$root/root"
sed -i "1i policy-version = $policy" "$root/etc/selinux/semanage.conf" # before the sections of the file
chroot "$root" semodule -n -s default -i /root/extra.cil
[ -e "$root/etc/selinux/default/policy/policy.$policy" ]
find "$root/etc/selinux/default/policy" -mindepth 1 ! -name policy.$policy -delete

mkdir -p "$root"/{payload,volumes/{ext4,xfs,tmpfs},usr/lib/selinuxvm} "$work/image"
install -m 755 "$guest/start" "$root/usr/lib/selinuxvm"
rm -r "$root/var/cache/apt/archives" "$root/var/lib/apt/lists"
# Without SELinux on the host a label is an attribute like others, and mkfs takes it along.
# The kernel goes by it from the first process on.
chroot "$root" setfiles -F /etc/selinux/default/contexts/files/file_contexts /
mkfs.ext4 -q -F -O ^has_journal -d "$root" "$work/image/root.img" 2G # with holes

for job in "${jobs[@]}"; do
    wait "$job"
done
shopt -s nullglob
for suite; do
    cd "$work/$suite"
    found=(lib/modules/* usr/lib/modules/*)
    if [ ${#found[@]} != 1 ]; then
        echo "$suite: one directory of modules expected, not ${found[*]}" >&2
        exit 1
    fi
    release=$(basename "${found[0]}")
    to=$work/image/$suite
    mkdir "$to"
    mv "${found[0]}/vmlinuz" "$to" 2>/dev/null || mv "boot/vmlinuz-$release" "$to/vmlinuz"
    install -m 755 "$guest/init" "$guest/initramfs.sh" "$root"
    mv "$work/$suite" "$root/kernel"
    # shellcheck disable=SC2086 # these are words
    chroot "$root" /initramfs.sh "$release" $modules
    mv "$root/initramfs" "$to"
    rm -r "$root/kernel"
    echo "$release" >"$to/release"
done
sync # the name must not outlive what it stands for
mv "$work/image" "$image"
