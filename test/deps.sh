#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test/deps.sh PACKAGE...: installs those Debian packages that are missing.
# Nothing is fetched, not even the package lists, when all are there.
set -euo pipefail

if ! command -v apt-get >/dev/null; then
    echo "deps: no apt-get here; see to it that these, or their like, are installed: $*" >&2
    exit 0
fi

exec 9<"$0"
flock 9 # two steps of .ci/run may be here at once

missing=()
for p in "$@"; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$p")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "deps: here already: $*"
    exit 0
fi

sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >"$log" 2>&1 9>&-
}

echo "deps: installing ${missing[*]}"
apt update || { cat "$log"; exit 1; }
apt install --no-install-recommends "${missing[@]}" || { cat "$log"; exit 1; }
