#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/words.sh: finds words that we do not use (CONTRIBUTING.md, Style) in the documents and
# in the source. In the documents it finds words that neither aspell's British dictionary nor
# test/words.txt has. Last it plants some of each, and has to find them.
set -euo pipefail
cd "$(dirname "$0")/.."
names=$PWD/test/words.txt

words="bears?|bore|whoever|whomever|meanwhile|pass(es|ed)? over|goes? on from|utiliz(e|es|ed)|in order to"

# unused: the lines with such words, in what git has here.
unused() {
    local files
    readarray -d '' files < <(git ls-files -z -- '*.md' bench cmd internal nri relabel test \
        ':!CONTRIBUTING.md' ':!*.txt' ':!*.jsonl' ':!test/words.sh')
    grep -HInwiE "$words" "${files[@]}" || true
}

# misspelled: words of documents, but for code, addresses, links, and names with digits or
# capitals in them.
misspelled() {
    local file
    while read -r -d '' file; do
        # shellcheck disable=SC2016 # code of Markdown, not of the shell
        sed -E '/^ *```/,/^ *```$/d; s/`[^`]*`//g; s/\]\([^)]*\)//g; s,https?://[^ )]*,,g; s/\w*[0-9]\w*//g'";s/'s\b//g" "$file" |
            aspell --lang=en_GB --mode=none --ignore=2 list | sort -u |
            { grep -vxFf "$names" || true; } | sed "/.[A-Z]/d; s|^|$file: |"
    done < <(git ls-files -z -- '*.md')
}

found=$(
    unused
    misspelled
)
if [ -n "$found" ]; then
    echo "$found"
    echo "words: say it in other words (CONTRIBUTING.md, Style), mend the spelling, or add a name to test/words.txt" >&2
    exit 1
fi

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
cd "$planted"
mkdir -p cmd/x internal/y
printf 'Whoever reads this\nwill recieve it.\n' >a.md
printf 'package x\n\n// Meanwhile it runs.\n' >cmd/x/x.go
printf 'package y\n\nconst s = "it goes on from there"\n' >internal/y/y.go
git init -q
git add .
if [ "$(unused)" != "a.md:1:Whoever reads this
cmd/x/x.go:3:// Meanwhile it runs.
internal/y/y.go:3:const s = \"it goes on from there\"" ] || [ "$(misspelled)" != "a.md: recieve" ]; then
    echo "words: FAILED: what was planted is not found" >&2
    exit 1
fi
