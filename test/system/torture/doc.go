// SPDX-License-Identifier: Apache-2.0

// Package torture attacks the command: races, kill -9, power loss, errors at
// every call, rivals, hung storage, trees beyond memory. Nothing in it
// knows the engine's inside; it builds the command and looks at what is left
// on real filesystems.
//
// Each check has a control: the same attack against a peer (go-selinux's Chcon,
// chcon) or against a build broken on purpose (an entry of test/mutants). A control
// that does not fall fails the check, for then the attack proves nothing.
//
//	make torture                     all, under two hours on two processors
//	go test ./... (here, as root)    the part that .ci/run runs: ten minutes
//	TORTURE=short|full|long          how much: short is the default
//	-run TestRace                    one check
//
// Each check logs its runs and violations, and those of its control.
package torture
