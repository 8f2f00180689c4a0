# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the kernel says about the sandbox account, read by grep and awk from /proc and cgroupfs; shares nothing with the
# helper. Part of verify-live-flows.sh, which sets `uid`, `hierarchy`, `slice` and `manager`.
# shellcheck disable=SC2154

# One line for each living process that is the account's by one of its numbers, wherever it is:
# PID START STATE DEPTH CGROUP NAME. Left out are the dead (state Z with one thread), and root's that only act for it.
account_processes() {
    local pid state depth name start cgroup
    (cd /proc && printf '%s\0' [0-9]*/status | xargs -0 grep -EHs '^(Name|State|Threads|Uid|NSpid):') |
        awk -v uid="$uid" '
            function tell() {
                if ((real == uid || effective == uid || saved == uid) && !(real == 0 && saved == 0) &&
                    !(state == "Z" && threads == 1)) print pid, state, depth, name
            }
            {
                split($1, part, "/")
                if (part[1] != pid) { if (pid != "") tell(); pid = part[1]; depth = 1; threads = 1; real = "" }
                field = part[2]; sub(/^status:/, "", field)
            }
            field == "Name:" { name = $0; sub(/^[^\t]*\t/, "", name); gsub(/[^!-~]/, "?", name) }
            field == "State:" { state = $2 }
            field == "Threads:" { threads = $2 }
            field == "Uid:" { real = $2; effective = $3; saved = $4 }
            field == "NSpid:" { depth = NF - 1 }
            END { if (pid != "") tell() }' |
        while read -r pid state depth name; do
            start=$(start_of "$pid") && cgroup=$(cgroup_of "$pid") || continue
            printf '%s %s %s %s %s %s\n' "$pid" "$start" "$state" "$depth" "$cgroup" "$name"
        done
}

# When a process began, in clock ticks since boot: with its number this is who it is. Fails where it is gone.
start_of() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    # The name in brackets may hold anything, brackets too.
    stat=${stat##*) }
    # shellcheck disable=SC2086 # numbers
    set -- $stat
    printf '%s\n' "${20}"
}

# Where it is in the hierarchy, blanks made visible.
cgroup_of() {
    local line
    line=$(grep -s '^0::' "/proc/$1/cgroup") || return 1
    printf '%s\n' "${line#0::}" | tr -c '\n!-~' '?'
}

# Every process below the account's slice, whoever's it is: PID CGROUP.
slice_members() {
    [ -d "$slice" ] || return 0
    find "$slice" -name cgroup.procs -exec grep -Hs . {} + 2>/dev/null |
        sed -n "s|^$hierarchy\(.*\)/cgroup\.procs:\([0-9]*\)$|\2 \1|p"
}

# 1, 0, or nothing where there is no such cgroup any more.
populated() {
    sed -n 's/^populated //p' "$1/cgroup.events" 2>/dev/null
}

# The account's own manager as it is when nothing is at work in it: reads lines of account_processes, leaves these out.
without_manager() {
    awk -v place="/user.slice/user-$uid.slice/$manager/" '
        $5 == place "init.scope" && ($6 == "systemd" || $6 == "(sd-pam)") { next }
        $5 == place "session.slice/dbus.service" && $6 == "dbus-daemon" { next }
        $5 == place "session.slice/dbus-broker.service" && $6 ~ /^dbus-broker/ { next }
        { print }'
}

# What has the same number in a pid namespace of its own outside the slice is a container's and not the account's.
is_of_container='$4 > 1 && index($5, "/user.slice/user-" uid ".slice/") != 1'

of_containers() {
    awk -v uid="$uid" "$is_of_container { print }"
}

without_containers() {
    awk -v uid="$uid" "!($is_of_container) { print }"
}

# Everything that must not be there after a stop: processes by their number, and whoever else is in the slice.
still_alive() {
    local processes pid cgroup
    processes=$(account_processes | without_containers)
    without_manager <<<"$processes" | grep .
    # Whose number is another one: what a session ran by a subordinate number, or somebody in the wrong place.
    slice_members | while read -r pid cgroup; do
        grep -q "^$pid " <<<"$processes" || { [ -e "/proc/$pid" ] && printf '%s ? ? 1 %s ?\n' "$pid" "$cgroup"; }
    done
}

# Sessions by the name of their unit, as far as they are populated.
session_units() {
    local events
    for events in "$slice"/ai-tools-*.service/cgroup.events; do
        grep -qsx 'populated 1' "$events" && basename -- "$(dirname -- "$events")"
    done
}

# Waits until a command says yes, at most $1 seconds.
within() {
    local last=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$last" ] || return 1
        sleep 0.1
    done
}

now_iso() {
    date -u +%Y-%m-%dT%H:%M:%S.%3NZ
}

# Microseconds since the epoch, without starting a program.
now_us() {
    printf '%s\n' "${EPOCHREALTIME/[.,]/}"
}
