#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/policy.sh DIR: makes the file contexts of Debian's policy beneath DIR, from its
# package, which is not installed: what is installed decides what this machine does.
set -euo pipefail

files=$1/etc/selinux/default/contexts/files
[ ! -e "$files/file_contexts" ] || exit 0
mkdir -p "$1"
cd "$1"
apt-get -q download selinux-policy-default
dpkg-deb -x selinux-policy-default_*.deb .
mkdir -p var/lib/selinux/default
cp /etc/selinux/semanage.conf etc/selinux/
modules=()
while read -r m; do
    modules+=(-i "usr/share/selinux/default/$m.pp.bz2")
done < <(tr -s ' ' '\n' <usr/share/selinux/default/.modules | grep .)
semodule -p "$PWD" -s default -n -X 100 "${modules[@]}"
