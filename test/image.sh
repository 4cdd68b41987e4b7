#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/image.sh: labels a minimal Debian 12 in a directory, with the policy of its package
# selinux-policy-default, as builders of images do, and compares each label with that of
# setfiles -r. Debian comes from the mirror that this machine uses.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "image: debootstrap needs root: sudo make test-image" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/var/tmp}/fastlabel-image.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT

# shellcheck disable=SC2016 # apt's own variables
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' | awk '$2 == "bookworm" && !seen++ { print $1 }')
debootstrap --variant=minbase bookworm "$work/root" "$mirror" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
test/policy.sh bin/policy
mkdir -p "$work/root/etc/selinux"
cp -a bin/policy/etc/selinux/default "$work/root/etc/selinux/"
printf 'SELINUXTYPE=default\n' >"$work/root/etc/selinux/config"
FASTLABEL_IMAGE=$work/root FASTLABEL_PROMISE=root,setfiles CGO_ENABLED=0 go test -count=1 -v -run '^TestSetfiles$' ./cmd/fastlabel
