#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shows on a real host, with the package installed, that what is promised of it is so. Without --stop-all-drill nothing is
# changed; with it, sessions of several tempers are started and an operator stops everything. Each line is one finding:
# PASS, FAIL, or SKIP with its reason. What is alive is asked of the kernel, never of the helper.
# shellcheck disable=SC2317,SC2034,SC2154 # most is called, set or read in the other files, or by a trap

set -u
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 077

here=$(dirname -- "$(readlink -f -- "$0")")
# shellcheck source=tests/manual/live-kernel.sh
. "$here/live-kernel.sh" || exit 2
# shellcheck source=tests/manual/live-checks.sh
. "$here/live-checks.sh" || exit 2
# shellcheck source=tests/manual/live-drill.sh
. "$here/live-drill.sh" || exit 2
# shellcheck source=tests/manual/live-leftovers.sh
. "$here/live-leftovers.sh" || exit 2
# shellcheck source=tests/manual/live-evidence.sh
. "$here/live-evidence.sh" || exit 2

account=ai-tools
group=ai-ops
helper=/usr/libexec/ai-tools/ai-tools-stop
front_door=/usr/bin/ai-tools
configuration=/etc/ai-tools/drill.conf
trail=/var/log/ai-tools/stop.log
# Exit codes. What is no verdict has a code of its own, so that a timer's busy host is not taken for a broken one.
failed_code=1 usage_code=2 busy_code=3

usage() {
    cat <<END
verify-live-flows.sh --operator NAME [--stop-all-drill [--include-running-sessions]] [--evidence DIR [--keep N]]
                     [--projects DIR]
verify-live-flows.sh --clean-up

Checks the installed package on this host, as root. NAME is a member of $group, in whose name it is tried.

--stop-all-drill            the real thing: starts sessions of several tempers and has NAME stop EVERY session of this
                            host. Refused while sessions of others run ($busy_code),
--include-running-sessions  unless this is given: they end too.
--evidence DIR              writes what was seen to DIR, as JSON and, of a drill, as a page for a browser
--keep N                    of those in DIR the newest N stay (default: all)
--projects DIR              where NAME's temporary project is made (default: NAME's home)
--clean-up                  takes away what a drill left that was killed

Exit code: 0 nothing failed, $failed_code something did, $usage_code it could not be tried, $busy_code no drill now: sessions run, or a hold or
another drill is there; 128+n interrupted.
END
}

main() {
    operator='' drilling='' including='' evidence='' keep='' projects='' cleaning=''
    while [ $# -gt 0 ]; do
        case $1 in
        --operator | --evidence | --keep | --projects)
            [ $# -ge 2 ] || cannot "$1 needs a word behind it"
            printf -v "${1#--}" %s "$2"
            shift
            ;;
        --stop-all-drill) drilling=1 ;;
        --include-running-sessions) including=1 ;;
        --clean-up) cleaning=1 ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) cannot "$1 is no option of this program; --help shows them" ;;
        esac
        shift
    done
    check_form
    check_host
    install -d -m 700 "$state"
    started=$(now_iso)
    trap 'stopped_by 129' HUP
    trap 'stopped_by 130' INT
    trap 'stopped_by 143' TERM
    if [ -n "$cleaning" ]; then
        lock_drills || busy 'a drill runs: nothing was taken away'
        clean_up
        [ "$failures" = 0 ] || exit "$failed_code"
        exit 0
    fi
    trap at_the_end EXIT
    if [ -n "$drilling" ]; then prepare_drill; fi
    check_everything_reversible
    if [ -n "$drilling" ]; then drill; fi
    finished=1
    exit 0
}

check_form() {
    [ "$EUID" = 0 ] || cannot 'only root sees all of this; run it as root'
    case $keep in *[!0-9]* | 0*) cannot "--keep needs a number from 1 on, not '$keep'" ;; esac
    [ -z "$including" ] || [ -n "$drilling" ] || cannot '--include-running-sessions goes with --stop-all-drill'
    [ -z "$evidence" ] || case $evidence in /*) ;; *) cannot '--evidence needs an absolute path' ;; esac
    if [ -n "$cleaning" ]; then return; fi
    [ -n "$operator" ] || cannot "name an operator: --operator NAME, or OPERATOR= in $configuration for the drill's unit"
    id -u -- "$operator" >/dev/null 2>&1 || cannot "there is no user $operator"
    [ "$(id -u -- "$operator")" != 0 ] || cannot 'root is no operator: name a person who is one'
    id -nG -- "$operator" | tr ' ' '\n' | grep -qx "$group" ||
        cannot "$operator is not in the group $group, so nothing can be tried in that name; in it are: $(members_of "$group")"
}

check_host() {
    local program
    for program in awk find flock grep sed sudo systemd-run xargs; do
        command -v "$program" >/dev/null || cannot "there is no $program on this host"
    done
    uid=$(id -u "$account" 2>/dev/null) || cannot "there is no account $account: is the package installed?"
    [ -d /run/systemd/system ] || cannot 'process 1 is not systemd'
    hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
    [ -n "$hierarchy" ] || cannot 'no cgroup v2 is mounted'
    slice=$hierarchy/user.slice/user-$uid.slice
    manager=user@$uid.service
}

members_of() {
    getent group -- "$1" | cut -d : -f 4 | tr ',' ' '
}

# The findings, and how they are told. Each: verdict, sentence, what was seen.
results=()
passed=0 failures=0 skipped=0
# 1: came to its end; untried: no verdict at all.
finished=''

pass() {
    passed=$((passed + 1))
    tell PASS "$@"
}

fail() {
    failures=$((failures + 1))
    tell FAIL "$@"
}

# A check that cannot be made here is told and counted, with its reason, and is no success.
skip() {
    skipped=$((skipped + 1))
    tell SKIP "$@"
}

tell() {
    results+=("$1" "$2" "${3:-}")
    printf '%s  %s%s\n' "$1" "$2" "${3:+: $(one_line "$3")}"
}

# $1: sentence; $2: what was seen; the rest: a command that says by its exit code whether it is so.
check() {
    local sentence=$1 seen=$2
    shift 2
    if "$@"; then pass "$sentence"; else fail "$sentence" "$seen"; fi
}

equal() {
    [ "$1" = "$2" ]
}

# Text that others chose, so that it cannot look like a line of ours, and no longer than a screen.
one_line() {
    printf '%s' "$1" | tr '\n\t' '  ' | tr -c ' -~' '?' | cut -c 1-400
}

# Neither a verdict nor a success: it could not be tried.
cannot() {
    printf 'verify-live-flows: %s.\n' "$1" >&2
    finished=untried
    exit "$usage_code"
}

busy() {
    # In the journal it is a warning, since the unit does not fail of it.
    printf '%sverify-live-flows: no drill now: %s.\n' "${JOURNAL_STREAM:+<4>}" "$1" >&2
    finished=untried
    exit "$busy_code"
}

stopped_by() {
    # Once is enough, while it is cleaned up.
    trap '' HUP INT TERM
    exit "$1"
}

at_the_end() {
    local code=$?
    trap '' HUP INT TERM
    trap - EXIT
    [ -z "$drilling" ] || end_drill
    [ "$finished" != untried ] || exit "$code"
    local verdict=passed
    if [ "$failures" -gt 0 ]; then verdict=failed; fi
    if [ -z "$finished" ]; then verdict=interrupted; fi
    [ -z "$evidence" ] || keep_evidence "$verdict"
    rm -f "$state"/out.* "$state"/said.* "$state/samples" "$state/tick"
    if [ "$failures" -gt 0 ]; then verdict=failed; fi
    printf '%s passed, %s failed, %s skipped: %s\n' "$passed" "$failures" "$skipped" "$verdict"
    if [ "$code" = 0 ] && [ "$failures" -gt 0 ]; then code=$failed_code; fi
    exit "$code"
}

# Runs a command as somebody, in a directory, as a unit of PID 1's: without a login uid, so that sudo and the helpers take
# them for who they are, and outside of everything that this script itself runs in. By a shell, since where SELinux is on
# PID 1 leaves its own domain with one, and with the output in a file, since there the bus takes no descriptor of ours.
# systemd takes a doubled dollar sign for one.
as() {
    as_unit '' "$@"
}

# The same with a name for the unit in front.
as_unit() {
    local name=$1 user=$2 directory=$3 said code
    shift 3
    said=$(mktemp "$state/said.XXXXXX") || return
    systemd-run --quiet --wait --collect --slice=system.slice ${name:+--unit="$name"} --uid="$user" \
        --working-directory="$directory" --property=RuntimeMaxSec="$longest_life" --property=TimeoutStopSec=10 \
        --property=StandardOutput="append:$said" --property=StandardError="append:$said" -- \
        /bin/sh -c 'exec "$$@"' sh "${@//\$/\$\$}" 9>&-
    code=$?
    cat -- "$said"
    rm -f -- "$said"
    return "$code"
}

main "$@"
