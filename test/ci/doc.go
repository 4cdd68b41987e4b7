// SPDX-License-Identifier: Apache-2.0

// Package ci has the tests of .ci/run.
package ci
