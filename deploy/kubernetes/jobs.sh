#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# jobs.sh OVERLAY <LIST: prints the overlay's Job job-pvc once for each line of LIST, which is
# "CLAIM LEVEL", and with containerd "CLAIM LEVEL VOLUME" (README.md finds VOLUME).
set -euo pipefail
job=$("${KUBECTL:-kubectl}" kustomize "$(dirname "$0")/${1:?containerd, crio or openshift}" | awk -v RS='---\n' '/\nkind: Job\n/')
while read -r claim level volume; do
    echo ---
    sed "s|fastlabel-data|fastlabel-$claim|; s|claimName: data|claimName: $claim|; s|s0:c10,c20|$level|
        s|kubernetes.io~csi/PV/mount|${volume:-&}|" <<<"$job"
done
