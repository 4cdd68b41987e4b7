#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/words.sh: finds words that we do not use (CONTRIBUTING.md, Words) in the documents
# and in what the program prints: the strings of Go files that are no tests.
set -euo pipefail
cd "$(dirname "$0")/.."

words="bears?|bore|whoever|whomever|meanwhile|pass(es|ed)? over|goes? on from|utiliz(e|es|ed)|in order to"

found() {
    { git ls-files -z -- '*.md' ':!CONTRIBUTING.md' ':!bench/results' | xargs -0 grep -nwiE "$words"; } || true
    { git ls-files -z -- 'cmd/*.go' 'relabel/*.go' 'internal/*.go' ':!*_test.go' |
        xargs -0 grep -nE "^[^/]*\"[^\"]*\\b($words)\\b[^\"]*\""; } || true
}

if [ -n "$(found)" ]; then
    found
    echo "words: say it in other words: see CONTRIBUTING.md, Words" >&2
    exit 1
fi
