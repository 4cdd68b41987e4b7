#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/words.sh: finds words that we do not use (CONTRIBUTING.md, Words) in the documents, in
# what the program prints, the strings of Go files that are no tests, and in the source of
# bench, internal and test. In the documents it finds words that neither aspell's British
# dictionary nor test/words.txt has. Last it plants one of each, and has to find both.
set -euo pipefail
cd "$(dirname "$0")/.."

words="bears?|bore|whoever|whomever|meanwhile|pass(es|ed)? over|goes? on from|utiliz(e|es|ed)|in order to"

# unused FILE...: the lines of documents with such words.
unused() { grep -HnwiE "$words" "$@" || true; }

# misspelled FILE...: words of documents, but for code, addresses, links, and names with
# digits or capitals in them.
misspelled() {
    local file
    for file; do
        # shellcheck disable=SC2016 # code of Markdown, not of the shell
        sed -E '/^ *```/,/^ *```$/d; s/`[^`]*`//g; s/\]\([^)]*\)//g; s,https?://[^ )]*,,g; s/\w*[0-9]\w*//g'";s/'s\b//g" "$file" |
            aspell --lang=en_GB --mode=none --ignore=2 list | sort -u |
            { grep -vxFf test/words.txt || true; } | sed "/.[A-Z]/d; s|^|$file: |"
    done
}

found=$(
    readarray -d '' documents < <(git ls-files -z -- '*.md' ':!CONTRIBUTING.md' ':!bench/results')
    unused "${documents[@]}"
    git ls-files -z -- bench internal test ':!*.md' ':!*.txt' ':!test/words.sh' ':!bench/results' |
        { xargs -0 grep -InwE "$words" || true; }
    git ls-files -z -- 'cmd/*.go' 'relabel/*.go' ':!*_test.go' |
        { xargs -0 grep -nE "^[^/]*\"[^\"]*\\b($words)\\b[^\"]*\"" || true; }
    misspelled "${documents[@]}" CONTRIBUTING.md bench/results/NOTES.md
)
if [ -n "$found" ]; then
    echo "$found"
    echo "words: say it in other words (CONTRIBUTING.md, Words), mend the spelling, or add a name to test/words.txt" >&2
    exit 1
fi

planted=$(mktemp)
trap 'rm -f "$planted"' EXIT
printf 'Whoever reads this\nwill recieve it.\n' >"$planted"
if [ "$(unused "$planted")" != "$planted:1:Whoever reads this" ] || [ "$(misspelled "$planted")" != "$planted: recieve" ]; then
    echo "words: FAILED: what was planted is not found" >&2
    exit 1
fi
