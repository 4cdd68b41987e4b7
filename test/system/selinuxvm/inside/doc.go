// SPDX-License-Identifier: Apache-2.0

// Package inside holds the tests that run in the machine of package selinuxvm:
// what only a kernel with a policy can show. They use the built command, and
// processes in a container's domain, which tell by their exit codes what they
// were refused. Nothing here runs where SELinux is not enforcing.
//
//	TestAccess       a container reads its volume when it is labelled, no other does
//	TestInterrupted  after kill -9 the seal keeps all others out
//	TestFailed       so it does where an entry cannot be labelled
//	TestCreated      what the label is of what is created in a labelled volume
//	TestWriters      confined writers, before and after, leave nothing unlabelled
//	TestUnknown      a label that the policy does not know changes nothing
//	TestRefused      mounts that the kernel labels itself, and read-only ones
//	TestNFS          two machines that share a volume of NFS label it in turns, and at once
//	TestOverlay      a container's overlay
//	TestIdmapped     a mount for a pod with a user namespace
//	TestConfined     the module of deploy/selinux gives a confined engine its rights
//	TestDenied       which permission is missing, and on what
//	TestPermissive   a permissive kernel stores what it does not know: we warn
//	TestRootless     an ordinary user, and root of a user namespace
//	TestAlias        an alias of a type, and what the kernel makes of it
//	TestCanonical    our parser of contexts beside the kernel's
//
// Containers, as runc, crun and podman start them. Their process is this program:
//
//	TestRuntimeHook  denied its volume without our hook, at home in it with the hook
//
// The whole machine, whose labels they change:
//
//	TestRestoreconTree    ours and restorecon would change the same, and change the same
//	TestRestoreconChroot  the kernel's devices get no label by the path of a chroot
//	TestRestoreconAlias   a type that a rule names by an alias
//
// Below these:
//
//	container        one to start, and what came of it
//	bundle           its config.json, or podman's hooks
//	guest            the process in it
package inside
