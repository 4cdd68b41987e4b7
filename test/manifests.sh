#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ETCD=FILE KUBE_APISERVER=FILE KUBECTL=FILE test/manifests.sh: a kube-apiserver takes
# every file of deploy/kubernetes in a strict dry run; what OpenShift adds it knows by
# OpenShift's own definitions. A field that is wrong on purpose it refuses. The commands of
# README.md find level, node and place of a volume. No node and no root is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${ETCD:?}" "${KUBE_APISERVER:?}" "${KUBECTL:?}"

die() { echo "manifests: FAILED: $*" >&2; exit 1; }

work=$(mktemp -d) pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$work"' EXIT
port=$((20000 + RANDOM % 10000))
"$ETCD" --data-dir "$work/etcd" --unsafe-no-fsync --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port" \
    --listen-peer-urls "http://127.0.0.1:$((port + 1))" --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-cluster "default=http://127.0.0.1:$((port + 1))" >"$work/etcd.log" 2>&1 &
pids+=($!)
openssl genrsa -out "$work/key" 2048 2>/dev/null
echo 'secret,admin,1,system:masters' >"$work/tokens"
"$KUBE_APISERVER" --etcd-servers "http://127.0.0.1:$port" --secure-port "$((port + 2))" --bind-address 127.0.0.1 --cert-dir "$work/certificates" \
    --endpoint-reconciler-type none --service-account-issuer https://issuer --service-account-key-file "$work/key" --service-account-signing-key-file "$work/key" \
    --token-auth-file "$work/tokens" --authorization-mode RBAC --allow-privileged --service-cluster-ip-range 10.96.0.0/16 >"$work/apiserver.log" 2>&1 &
pids+=($!)
kubectl() { "$KUBECTL" --kubeconfig /dev/null --server "https://127.0.0.1:$((port + 2))" --insecure-skip-tls-verify --token secret "$@"; }
for _ in {1..300}; do
    [ "$(kubectl get --raw /readyz 2>/dev/null)" != ok ] || break
    kill -0 "${pids[1]}" || { tail -n 5 "$work/apiserver.log"; die "kube-apiserver"; }
    sleep 1
done
kubectl version

api=$(cd test/deploy && go list -m -f '{{.Dir}}' github.com/openshift/api)
kubectl create -f "$api/security/v1/zz_generated.crd-manifests/0000_03_config-operator_01_securitycontextconstraints.crd.yaml" \
    -f "$api/machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigs.crd.yaml" >/dev/null
kubectl wait --for=condition=established crd --all --timeout=5m >/dev/null

# A dry run creates no namespace for what comes after it.
for space in fastlabel fastlabel-nri; do kubectl create --save-config namespace "$space" >/dev/null; done
dry() { kubectl apply --dry-run=server --validate=strict "$@"; }
for overlay in containerd crio openshift; do
    all=$work/$overlay.yaml
    "$KUBECTL" kustomize "deploy/kubernetes/$overlay" >"$all"
    dry -k "deploy/kubernetes/$overlay" -l 'app.kubernetes.io/component in (setup, job-pvc, job-shards, daemonset-local, init-container)' | tee "$work/taken"
    [ "$(wc -l <"$work/taken")" = "$(grep -c '^kind: ' "$all")" ] || die "$overlay: something is in no part"
    sed 's/readOnlyRootFilesystem: true/readOnlyRoot: true/' "$all" >"$work/broken.yaml"
    if dry -f "$work/broken.yaml" >"$work/refused" 2>&1; then die "$overlay: it takes a field that there is not"; fi
    grep -q 'unknown field.*readOnlyRoot"' "$work/refused" || { cat "$work/refused"; die "$overlay: another reason"; }
done
dry -k deploy/kubernetes/nri
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
} >"$work/want"
while read -r command; do
    command=${command/ POD / web } command=${command/ NAME / shop }
    eval "$command" </dev/null
    echo
done < <(grep '^kubectl get p[ov]\|^kubectl get namespace' deploy/kubernetes/README.md) | grep . >"$work/got"
diff "$work/want" "$work/got" || die "what README.md asks"
echo "manifests: passed"
