// SPDX-License-Identifier: Apache-2.0

// Package dirs keeps the directories of a walk open that will be needed again, within a
// limit, and finds again those that were closed.
package dirs
