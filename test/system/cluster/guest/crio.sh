# SPDX-License-Identifier: Apache-2.0
#
# crio.sh: guest/node's runtime is CRI-O, with deploy/oci's drop-in and hook.
# shellcheck shell=bash disable=SC2154,SC2086 # run is of guest/node

storage=(--root /volumes/xfs/crio --runroot /run/containers/storage --storage-driver overlay)

configure() {
    mkdir -p $run/crio.conf.d $run/hooks
    cp /payload/99-fastlabel.conf $run/crio.conf.d
    sed 's|/usr/bin/fastlabel|/payload/bin/fastlabel|' /payload/fastlabel.json >$run/hooks/fastlabel.json
    echo '{"default":[{"type":"insecureAcceptAnything"}]}' >$run/policy.json
    cat >$run/crio.conf.d/10-node.conf <<EOT
[crio]
root = "${storage[1]}"
runroot = "${storage[3]}"
storage_driver = "overlay"
log_dir = "$run/podlogs"
version_file = "$run/crio-version"
clean_shutdown_file = "$run/crio-clean"
[crio.api]
listen = "$run/runtime.sock"
[crio.runtime]
selinux = true
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
pinns_path = "/payload/bin/pinns"
hooks_dir = ["$run/hooks"]
default_runtime = "runc"
[crio.runtime.runtimes.runc]
runtime_path = "$(command -v runc)"
runtime_root = "/run/runc"
monitor_cgroup = "pod"
[crio.runtime.runtimes.hook]
inherit_default_runtime = true
[crio.image]
pause_image = "localhost/pause:1"
signature_policy = "$run/policy.json"
[crio.network]
network_dir = "$run/cni"
plugin_dirs = ["$run/cni"]
EOT
}

# container_runtime PROGRAM: starts it in place of the one that runs. Containers go on.
container_runtime() {
    stop runtime
    begin runtime "$1" --config /dev/null --config-dir $run/crio.conf.d --disable-hostport-mapping --log-level debug
    await runtime 300 "$1" --config /dev/null status --socket $run/runtime.sock info
}

import() { podman "${storage[@]}" load; }
