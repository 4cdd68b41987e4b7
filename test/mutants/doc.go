// SPDX-License-Identifier: Apache-2.0

// Package mutants lists the ways in which the project's source is broken on
// purpose: each ordering, guard and count that must hold has an entry, and each
// entry names the test that fails without it.
//
//	commit.go    the seal, the commit, the revocation; syncs; the lock
//	confine.go   nothing outside the tree is labelled
//	count.go     each entry is labelled once and counted once
//	pool.go      internal/steal: parking, stealing, ending, more and fewer workers
//	caller.go    Group, the budget, the hook, the command
//	rules.go     labels by rules and file contexts
//	machine.go   what only a machine with SELinux can show
//
//	go test ./test/mutants       the entries apply and compile, and their tests exist
//	make mutants                 each mutant is built, and its test fails (root)
//	make mutants MUTANT=regexp   those
//
// A mutant is built with go's -overlay: the tree is not copied nor changed.
// test/system/torture takes its controls from here, test/system/selinuxvm its broken engines.
package mutants
