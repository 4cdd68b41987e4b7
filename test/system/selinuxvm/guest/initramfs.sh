#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# initramfs.sh RELEASE MODULE...: in the root, while the image is made. Makes /initramfs of
# the kernel below /kernel: of init, of busybox, and of these modules with whatever they
# depend on, each after what it needs. A module that the kernel lacks is built into it,
# or the machine would not boot or its tests would say so.
set -eu
release=$1
shift
[ -e /kernel/lib ] || ln -s usr/lib /kernel/lib
depmod -b /kernel "$release"
mkdir -p /new/bin /new/modules
for module; do
    modprobe -q -d /kernel -S "$release" --show-depends "$module" || true
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
    name=$(basename "${file%.xz}")
    case $file in
    *.xz) busybox unxz -c "$file" ;;
    *.ko) cat "$file" ;;
    *) echo "$file is compressed in a way that is not known here" >&2 && exit 1 ;;
    esac >"/new/modules/$name"
    echo "$name" >>/new/modules/order
done
cp /usr/bin/busybox /new/bin
cp /init /new
cd /new
find . | busybox cpio -o -H newc 2>/dev/null | gzip >/initramfs
rm -r /new
