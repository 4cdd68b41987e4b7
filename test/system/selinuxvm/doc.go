// SPDX-License-Identifier: Apache-2.0

// Package selinuxvm boots Linux with SELinux enforcing, in an emulated machine,
// and runs the house's tests there: what a kernel with a policy does cannot be
// seen on one without.
//
// The machine is made of Debian packages: the full policy of Debian 13 with its
// container types, and two kernels, one of Debian 12 (6.1, without setxattrat)
// and the newest of Debian 13's backports (with it). QEMU emulates the
// processor, so nothing is asked of the host but root, which debootstrap and
// labels need, and an amd64 processor, whose programs run while the image is
// made. What takes time in it says nothing about speed.
//
//	TestCore        package inside: what only a kernel with a policy can show
//	TestRuntimes    the same package: containers of runc, crun and podman
//	TestRestorecon  the same package: the whole machine, beside its restorecon
//	TestEngine      the tests of the engine and the command
//	TestBroken      engines that are broken on purpose (test/mutants), and noticed by TestCore's tests
//
// In the order in which they are used:
//
//	image      the cache: one directory for each content of guest/, made once
//	machine    what a machine is booted for, its disks, what came out of it
//	boot       QEMU, from its start to its end
//	guest/     image.sh, which makes the image of Debian's packages; what runs in the machine:
//	           init, start; what makes an initramfs, and an addition to the policy
//
// The image is kept in fastlabel/selinuxvm below the user's cache directory,
// or in selinuxvm below FASTLABEL_CACHE. It may be deleted at any time. It is
// made again when guest/ changes, not when Debian does.
//
// A host with SELinux on may refuse labels that its own policy does not know,
// and then no image can be made there.
//
//	make test-selinux                      all
//	make test-selinux SELINUX=TestCore     a part
package selinuxvm
