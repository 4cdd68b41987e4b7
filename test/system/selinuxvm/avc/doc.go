// SPDX-License-Identifier: Apache-2.0

// Package avc reads what the policy refused, from the kernel's audit messages,
// for tests in the machine of package selinuxvm:
//
//	log := avc.Watch(t)
//	// a process in a container's domain tries to read
//	log.Has(t, avc.Denial{Source: domain, Target: label, Class: "file", Permissions: []string{"read"}})
//
// The messages come by netlink. The kernel's log has them too, but no more than
// ten in five seconds, and there nobody can tell when all have come. Here none is
// lost without an error, and whatever was refused before a call is in its answer.
//
// What a dontaudit rule of the policy covers is refused in silence.
//
//	denial   one message, taken apart
//	socket   the kernel's messages, and a mark to know that all have come
//	watch    a test's denials, shown if it fails
package avc
