// SPDX-License-Identifier: Apache-2.0

// Package mounts keeps a run inside its tree: which places are never relabelled, what is mounted in
// the tree, what in a mount is skipped, and how a walk is confined to it.
//
//	Exclusions ▶ OpenProc ▶ Refusals ▶ OpenRoot ▶ Admit ▶ Learn ▶ Enclose ▶ Find, for each submount
//
// What is looked up by a path is looked up before the root is opened, and all else from a descriptor
// of the root. From the walk's beginning a Proc is only read, by any goroutine, and so is a Mount
// from Enclose to Leave.
package mounts
