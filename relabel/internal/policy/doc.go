// SPDX-License-Identifier: Apache-2.0

// Package policy says what the loaded policy makes of a label, and why it refused
// one. It asks the kernel through selinuxfs, and where it may not ask it knows
// nothing: no answer of it decides what is written.
package policy
