#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the disk, kernel and initial RAM disk of a lab machine, once, as root of this machine.
#
# Arguments: those of mmdebstrap, without its target. Environment: KEPT (folder that is to hold the three files),
# UNFINISHED (folder beside it), SUITE, SOURCES (lines of sources.list(5)), SELINUX (1: every file gets its label).
set -u

# mmdebstrap takes its own tree away when it is interrupted; the shell waits for it and then does the rest.
trap 'exit 143' INT TERM
trap 'rm -rf "$UNFINISHED"' EXIT

label() {
    root=$1
    # With a relative root setfiles would label nothing, in silence.
    case $root in /*) ;; *) return 1 ;; esac
    setfiles -m -F -r "$root" "$root/etc/selinux/default/contexts/files/file_contexts" "$root" || return
    stat --format=%C "$root/etc/shadow" | grep -q shadow_t
}

make() {
    root=$UNFINISHED/root
    mkdir -p "$UNFINISHED" || return
    # shellcheck disable=SC2153  # from the environment
    printf '%s\n' "$SOURCES" | mmdebstrap "$@" "$SUITE" "$root" - || return
    mv "$root"/boot/vmlinuz-* "$UNFINISHED/kernel" || return
    mv "$root"/boot/initrd.img-* "$UNFINISHED/initrd" || return
    rm -f "$root"/vmlinuz* "$root"/initrd.img*
    if [ "$SELINUX" = 1 ]; then label "$root" || return; fi
    # The tables are written now and not in the background of each boot.
    mkfs.ext4 -q -F -L lab -E lazy_itable_init=0,lazy_journal_init=0 -d "$root" "$UNFINISHED/disk" 4G || return
    rm -rf "$root"
    mv "$UNFINISHED" "$KEPT"
}

# The lock lets a second run wait for the first one's machine instead of making its own.
exec 9>"$KEPT.lock"
flock 9
test -d "$KEPT" || make "$@"
