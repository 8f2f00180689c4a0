#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Keeps one private Docker engine for as long as standard input stays open, and leaves nothing behind when it closes,
# however the lab that held it ended. Three layers of the same script: "outer" tidies up, "fenced" enters the fence,
# "inner" is PID 1 of the engine's own pid and mount namespaces, so that its end is the end of every process of the lab.
#
# Environment: LAB_RUN (socket, records, log), LAB_DATA (data root), LAB_CGROUP (name of the cgroup2 tree of its hosts),
# LAB_FENCES (cgroup v1 directories to enter, space-separated, may be empty), LAB_SCRATCH (1: the data root goes, too).
# Exit code 75: another engine uses this data root.
set -u

outer() {
    trap : HUP INT TERM
    sh "$0" fenced
    code=$?
    for fence in $LAB_FENCES; do
        rmdir "$fence"
        rmdir "${fence%/*}" 2>/dev/null # unless another engine is in it
    done
    unshare -m --propagation private sh "$0" tidy
    if [ "$LAB_SCRATCH" = 1 ]; then
        rm -rf "$LAB_DATA" "$LAB_DATA.lock"
    fi
    rm -rf "$LAB_RUN"
    return $code
}

# The lock on the data root is held by every process of the engine, so that it is free when the last of them is gone.
fenced() {
    for fence in $LAB_FENCES; do
        echo $$ >"$fence/cgroup.procs" || exit 70
    done
    exec flock -n -E 75 "$LAB_DATA.lock" \
        unshare -m --propagation private --pid --fork --kill-child --mount-proc sh "$0" inner
}

mount_pure_cgroup2() {
    umount -R /sys/fs/cgroup 2>/dev/null # nothing may be mounted there; what counts is the mount below
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
}

inner() {
    mount_pure_cgroup2 || exit 71
    # dockerd would put its containers into a containerd that already runs on this machine, outside the fence.
    if [ -d /run/containerd ]; then
        mount -t tmpfs tmpfs /run/containerd
    fi
    echo '{}' >"$LAB_RUN/daemon.json"
    dockerd --config-file "$LAB_RUN/daemon.json" --host "unix://$LAB_RUN/docker.sock" \
        --data-root "$LAB_DATA" --exec-root "$LAB_RUN/exec" --pidfile "$LAB_RUN/dockerd.pid" \
        --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false --userland-proxy=false \
        --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/$LAB_CGROUP" --log-level warn \
        </dev/null >"$LAB_RUN/dockerd.log" 2>&1 &
    engine=$!
    cat >/dev/null
    end_engine
}

# What does not end in time ends with this process, because it is PID 1 of the namespace.
end_engine() {
    kill -0 "$engine" 2>/dev/null || return 0 # it has ended by itself; its log says why
    DOCKER_HOST="unix://$LAB_RUN/docker.sock"
    export DOCKER_HOST
    hosts=$(timeout -k 1 5 docker ps -aq)
    if [ -n "$hosts" ]; then
        # shellcheck disable=SC2086  # one word per host
        timeout -k 1 15 docker rm -f $hosts >/dev/null
    fi
    kill -TERM "$engine"
    (sleep 10; kill -KILL "$engine") &
    wait "$engine"
}

# Directories may lie deeper than PATH_MAX and have any name: find goes by descriptors and removes what it holds.
tidy() {
    mount_pure_cgroup2 || exit 71
    if [ -d "/sys/fs/cgroup/$LAB_CGROUP" ]; then
        find "/sys/fs/cgroup/$LAB_CGROUP" -depth -type d -delete
    fi
}

case ${1-} in
outer | fenced | inner | tidy) "$1" ;;
*)
    echo "keep-engine.sh is started by the lab (npm run lab), not by hand" >&2
    exit 2
    ;;
esac
