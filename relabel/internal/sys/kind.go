// SPDX-License-Identifier: Apache-2.0

package sys

// Kind is what an entry is, in the numbers of a directory record (DT_*).
type Kind uint8
