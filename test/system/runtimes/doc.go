// SPDX-License-Identifier: Apache-2.0

// Package runtimes starts containers with runc, crun and podman, with fastlabel
// as their hook. Nothing is imitated: the runtimes are those of the machine, the
// command is built from the house, and the containers' process is this test
// program, which reads the labels of the volume before it does anything else.
// There is no network, and no image but ours.
//
//	TestLabels           every label is right when the process starts
//	TestNoMount          a hook that fails stops the start, and says why where
//	TestKilledByRuntime  the runtime's timeout
//	TestOwnDeadline      the hook's own, before it
//	TestImage            podman loads the image of make image, which labels a volume
//
// Each has a control that shows that it can fail; its comment names it. Most run
// for runc, crun, podman over runc and podman over crun, at createRuntime and at
// prestart. Bundles have the label in linux.mountLabel; podman sets that only
// where SELinux is on, so its containers ask for the label by annotation.
//
// Below the tests:
//
//	engine     the runtimes: which are there, whether they start anything
//	container  one container to start, and what came of it
//	bundle     its config.json, or podman's arguments and hooks
//	guest      the process in it
//	volume     the trees on ext4
//	fuse       a volume that is slow
//
// Run it as root:
//
//	make test-runtimes
//	CGO_ENABLED=0 go test ./... (here)
//
// A runtime that is not there, or starts nothing, skips what needs it, unless
// FASTLABEL_PROMISE names it: runc, crun, podman.
package runtimes
