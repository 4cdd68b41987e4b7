# SPDX-License-Identifier: Apache-2.0
#
# containerd.sh: guest/node's runtime is containerd.
# shellcheck shell=bash disable=SC2154,SC2086 # run is of guest/node

configure() {
    cat >$run/containerd.toml <<EOT
version = 3
root = "/volumes/xfs/containerd"
state = "/run/containerd"
[grpc]
  address = "$run/runtime.sock"
[ttrpc]
  address = "$run/containerd.sock.ttrpc"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  enable_selinux = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    use_internal_loopback = true
    bin_dirs = ["$run/cni"]
    conf_dir = "$run/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.hook]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "$run/hook.json"
    pod_annotations = ["io.fastlabel.*"]
EOT
    # What is a container's where nothing is said, with the hook.
    ctr oci spec | sed '1s|{|{"hooks":{"createRuntime":[{"path":"/payload/bin/fastlabel","args":["fastlabel","hook"]}]},|' >$run/hook.json
}

# container_runtime PROGRAM: starts it in place of the one that runs. Containers go on.
container_runtime() {
    stop runtime
    begin runtime "$1" -c $run/containerd.toml
    await runtime 300 ctr -a $run/runtime.sock version
}

import() { ctr -a $run/runtime.sock -n k8s.io images import -; }
