#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# KUBECTL=FILE KUBECONFIG=FILE test/manifests.sh: an empty cluster's API server takes every
# file of deploy/kubernetes in a strict dry run; what OpenShift adds it knows by OpenShift's
# own definitions. A field that is wrong on purpose it refuses. The commands of README.md find
# level, node and place of a volume. make test-manifests runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${KUBECTL:?}" "${KUBECONFIG:?}"

die() { echo "manifests: FAILED: $*" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kubectl() { "$KUBECTL" "$@"; }
export KUBECTL
kubectl version

api=$(GOFLAGS=-mod=mod go mod download -json github.com/openshift/api@v0.0.0-20260116192047-6fb7fdae95fd | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
kubectl create -f "$api/security/v1/zz_generated.crd-manifests/0000_03_config-operator_01_securitycontextconstraints.crd.yaml" \
    -f "$api/machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigs.crd.yaml" >/dev/null
kubectl wait --for=condition=established crd --all --timeout=5m >/dev/null

# A dry run creates no namespace for what comes after it.
for space in fastlabel fastlabel-nri; do kubectl create --save-config namespace "$space" >/dev/null; done
dry() { kubectl apply --dry-run=server --validate=strict "$@"; }
for overlay in containerd crio openshift; do
    all=$work/$overlay.yaml
    kubectl kustomize "deploy/kubernetes/$overlay" >"$all"
    dry -k "deploy/kubernetes/$overlay" -l 'app.kubernetes.io/component in (setup, job-pvc, daemonset-local, init-container)' | tee "$work/taken"
    [ "$(wc -l <"$work/taken")" = "$(grep -c '^kind: ' "$all")" ] || die "$overlay: something is in no part"
    sed 's/readOnlyRootFilesystem: true/readOnlyRoot: true/' "$all" >"$work/broken.yaml"
    if dry -f "$work/broken.yaml" >"$work/refused" 2>&1; then die "$overlay: it takes a field that there is not"; fi
    grep -q 'unknown field.*readOnlyRoot"' "$work/refused" || { cat "$work/refused"; die "$overlay: another reason"; }
done
dry -k deploy/kubernetes/nri
for overlay in containerd crio; do
    printf '%s\n' 'web s0:c1,c2 kubernetes.io~csi/p1/mount' 'db s0:c3,c4 kubernetes.io~csi/p2/mount' | deploy/kubernetes/jobs.sh "$overlay" >"$work/jobs"
    dry -f "$work/jobs" | tee "$work/taken"
    [ "$(wc -l <"$work/taken")" = 2 ] || die "$overlay: two claims, not two Jobs"
    if grep -n 'fastlabel-data\|claimName: data\|s0:c10\|~csi/PV' "$work/jobs"; then die "$overlay: a Job has what the list replaces"; fi
done
dry -f deploy/kubernetes/openshift/machineconfig-hook.yaml

# What the commands of README.md ask for, in their order.
kubectl create serviceaccount default >/dev/null
kubectl create -f - >/dev/null <<'END'
{kind: List, apiVersion: v1, items: [
  {kind: Namespace, apiVersion: v1, metadata: {name: shop, annotations: {openshift.io/sa.scc.mcs: "s0:c26,c5"}}},
  {kind: PersistentVolume, apiVersion: v1, metadata: {name: p1}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce],
    csi: {driver: d.example, volumeHandle: h}}},
  {kind: PersistentVolume, apiVersion: v1, metadata: {name: p2}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce],
    local: {path: /mnt/disks/data}, storageClassName: s,
    nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n1]}]}]}}}},
  {kind: PersistentVolumeClaim, apiVersion: v1, metadata: {name: data}, spec: {volumeName: p1, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}},
  {kind: Pod, apiVersion: v1, metadata: {name: web}, spec: {nodeName: n1, securityContext: {seLinuxOptions: {level: "s0:c10,c20"}},
    containers: [{name: c, image: i}], volumes: [{name: e, emptyDir: {}}, {name: d, persistentVolumeClaim: {claimName: data}}]}}]}
END
{
    echo s0:c10,c20
    echo s0:c26,c5
    echo "web n1 $(kubectl get pod web -o jsonpath='{.metadata.uid}')"
    echo kubernetes.io~csi/p1/mount
    echo '/mnt/disks/data [n1]'
    echo 'default data s0:c10,c20'
} >"$work/want"
while read -r command; do
    command=${command/ POD / web } command=${command/ NAME / shop }
    eval "$command" </dev/null
    echo
done < <(grep '^kubectl get p[ov]\|^kubectl get namespace' deploy/kubernetes/README.md) | grep . >"$work/got"
diff "$work/want" "$work/got" || die "what README.md asks"
echo "manifests: passed"
