# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The drill: sessions of several tempers, one stop by an operator, and a look at what is left. Every session has a limit on
# its processes and on its life. Part of verify-live-flows.sh.
# shellcheck disable=SC2154,SC2034

# Where a drill notes what it has to take away; a later one, or --clean-up, finds it there after a SIGKILL.
state=/run/ai-tools-drill
entry_points=/etc/ai-tools/entrypoints.d
mark='# Of a drill by verify-live-flows.sh, for its length only.'
own=drill-own-manager.service
# In seconds: the life of a session that nobody ends; the wait for one to run; for a session's end to be worked off.
session_life=240 start_limit=60 end_limit=40
# And the life of any command that a drill runs as somebody.
longest_life=300

# The tempers, run by bash as the account with life and name in $1 and $2. `deaf` cannot be ended but by SIGKILL.
deaf_temper() {
    trap '' HUP INT QUIT TERM USR1 USR2 TSTP TTIN TTOU
    while [ "$SECONDS" -lt "$1" ]; do sleep 1; done
}
polite_temper() {
    trap 'echo "${EPOCHREALTIME/./}" >"$2.sigterm"; exit 0' TERM
    while [ "$SECONDS" -lt "$1" ]; do
        sleep 1 &
        wait $!
    done
}
# Four new processes in a second, each without a parent and in a session of its own; at most some fifteen at a time.
forking_temper() {
    trap '' HUP INT QUIT TERM
    while [ "$SECONDS" -lt "$1" ]; do
        (setsid sleep 3 &)
        sleep 0.25
    done
}
# Cannot even receive a SIGTERM until somebody continues it.
stopped_temper() {
    trap 'echo "${EPOCHREALTIME/./}" >"$2.sigterm"; exit 0' TERM
    kill -STOP $BASHPID
    while [ "$SECONDS" -lt "$1" ]; do sleep 0.2; done
}

# Name of the session: what its kernel must say of it before it counts as started, and what it is, for people.
tempers=(polite deaf forking stopped)
declare -A ready=([polite]='SigCgt TERM' [deaf]='SigIgn TERM' [forking]='SigIgn TERM' [stopped]='State T'
    [own-manager]='SigIgn TERM' [stray]='SigIgn TERM')
declare -A says=(
    [polite]='ends at SIGTERM' [deaf]='ignores every signal that can be ignored'
    [forking]='starts orphans in sessions of their own without a pause, and ignores SIGTERM'
    [stopped]='is stopped, and ends at SIGTERM when it is continued'
    [own-manager]="deaf, in the account's own manager, which is told to start it again"
    [stray]="deaf, outside of the account's slice"
    [operator-process]="a process of the operator's" [other-process]="a process of somebody else's")

# The sessions that run, in the order of their start: name, unit, where in the hierarchy.
names=() units=() places=()
# By session, and by `stop` or `second`.
declare -A waiting=() exit_code=() asked=() answered=() last_stop=() trail_before=()
project='' sampler='' sigterm_at='' looked='' had_foreign=''

# What must be so before anything is started; else there is no drill now.
prepare_drill() {
    lock_drills || busy 'another one runs'
    clean_up
    local foreign
    foreign=$(still_alive)
    if [ -n "$foreign" ] && [ -z "$including" ]; then
        printf '%s\n' "$foreign" | head -20 | awk '{ print "  process " $1 " (" $6 ") in " $5 }' >&2
        busy "something of the account runs, and would be ended with everything; with --include-running-sessions it is"
    fi
    had_foreign=$foreign
    [ ! -e /var/lib/ai-tools/hold.json ] || busy 'new sessions are held (ai-tools --status says by whom)'
    ! cat /proc/[0-9]*/comm 2>/dev/null | grep -qx ai-tools-stop || busy 'a stop is at work'
    local temper
    for temper in "${tempers[@]}"; do
        [ ! -e "$entry_points/drill-$temper.conf" ] || cannot "there is an entry point drill-$temper on this host"
    done
    [ -n "$projects" ] || projects=$(getent passwd -- "$operator" | cut -d : -f 6)
    [ -d "$projects" ] || cannot "there is no directory $projects for the drill's project; --projects names another one"
}

# Held by descriptor 9, which no command of a drill inherits that may outlive the script by more than a moment.
lock_drills() {
    install -d -m 700 "$state" && exec 9>"$state/lock" && flock --wait 10 9
}

drill() {
    start_bystanders
    make_project || { fail 'the operator can claim a project for the drill' "$(cat "$state/out.claim")" && return; }
    pass "$operator claims a project for the drill: $project"
    start_sessions
    hold_new_sessions || return
    start_sampling
    sleep 1
    see_everything_alive
    stop_as_operator stop
    check_stop stop
    check_manager
    check_trail
    check_bystanders
    sleep 1
    check_kernel 'a second later'
    stop_as_operator second
    check 'a second stop, with nothing to end, says 0 too' "code ${exit_code[second]}, $(tail -3 "$state/out.second")" \
        equal "${exit_code[second]}" 0
    check_kernel 'after it'
    stop_sampling
    check_sessions_came_back
    check_handback
}

# Processes that are nobody's session, and must go on.
start_bystanders() {
    note drill "$started"
    bystander operator-process "$operator"
    bystander other-process nobody
}

bystander() {
    systemd-run --quiet --collect --slice=system.slice --unit="drill-$1.service" --uid="$2" \
        --property=RuntimeMaxSec="$longest_life" -- sleep "$longest_life" &&
        runs "$1" "drill-$1.service" "/system.slice/drill-$1.service"
}

make_project() {
    local temper
    project=$projects/ai-tools-drill.$(head -c 8 /proc/sys/kernel/random/uuid)
    [ ! -e "$project" ] && note project "$operator $project" || return
    # With the label that a login would give it: a service's would be that of a home itself.
    as "$operator" / mkdir -m 700 -Z -- "$project" >"$state/out.claim" 2>&1 || return
    for temper in "${tempers[@]}"; do
        printf '%s\n' "$mark" '[Entrypoint]' Exec=/bin/bash "Description=A drill: ${says[$temper]}" NetworkAccess=no \
            >"$entry_points/drill-$temper.conf" && chmod 644 "$entry_points/drill-$temper.conf" || return
    done
    as "$operator" / "$front_door" --claim "$project" >"$state/out.claim" 2>&1
}

start_sessions() {
    local temper
    manager_before=$(systemctl show "$manager" --property=MainPID --value)
    for temper in "${tempers[@]}"; do
        as_unit "drill-run-$temper.service" "$operator" "$project" "$front_door" --run "drill-$temper" -- -c "$(code_of "$temper")" drill \
            "$session_life" "$temper" >"$state/out.$temper" 2>&1 9>&- &
        waiting[$temper]=$!
        unit=''
        within "$start_limit" session_of "$temper"
        started_as "$temper" "$unit" "/user.slice/user-$uid.slice/$unit"
    done
    start_in_own_manager
    systemd-run --quiet --collect --slice=system.slice --unit=drill-stray.service --uid="$account" --gid="$account" \
        --property=TasksMax=20 --property=RuntimeMaxSec="$session_life" -- \
        /bin/bash -c "$(code_of deaf | sed 's/\$/$$/g')" drill "$session_life" stray
    started_as stray drill-stray.service /system.slice/drill-stray.service
}

start_in_own_manager() {
    if [ "$(systemctl is-active "$manager")" != active ]; then
        skip "session own-manager runs: ${says[own-manager]}" 'no manager of the account runs on this host'
        return
    fi
    systemd-run --quiet --user --machine="$account@.host" --collect --unit="$own" --property=Restart=always \
        --property=TasksMax=20 --property=RuntimeMaxSec="$session_life" -- \
        /bin/bash -c "$(code_of deaf | sed 's/\$/$$/g')" drill "$session_life" own-manager
    started_as own-manager "$own" "/user.slice/user-$uid.slice/$manager/app.slice/$own"
}

code_of() {
    declare -f "$1_temper"
    printf '%s_temper "$@"\n' "$1"
}

# Finds the unit of a session by the name of its entry point.
session_of() {
    unit=$(session_units | grep -x "ai-tools-drill-$1-[0-9]*\.service")
}

# Counts only when the kernel says that it runs and has its temper.
started_as() {
    local seen
    if [ -n "$2" ] && within "$start_limit" has_temper "$1" "$3"; then
        runs "$@"
        pass "session $1 runs: ${says[$1]}"
        [ "$(cat /sys/fs/selinux/enforce 2>/dev/null)" != 1 ] || [ -z "${waiting[$1]:-}" ] || check_confined "$@"
        return
    fi
    seen=$(cat "$state/out.$1" 2>/dev/null)
    fail "session $1 runs: ${says[$1]}" "${seen:-it does not: $(systemctl is-active "$2" 2>&1)}"
}

check_confined() {
    local seen
    seen=$(tr -d '\0' <"/proc/$(head -1 "$hierarchy$3/cgroup.procs")/attr/current")
    check "session $1 is confined: it runs in ai_tools_t" "$seen" equal "$(cut -d : -f 3 <<<"$seen")" ai_tools_t
}

has_temper() {
    local pid what value state_of
    read -r what value <<<"${ready[$1]}"
    pid=$(head -n 1 "$hierarchy$2/cgroup.procs" 2>/dev/null) && [ -n "$pid" ] || return
    state_of=$(awk -v field="$what:" '$1 == field { print $2 }' "/proc/$pid/status" 2>/dev/null)
    case $value in
    TERM) [ -n "$state_of" ] && [ $((0x$state_of & 0x4000)) != 0 ] ;;
    *) [ "$state_of" = "$value" ] ;;
    esac
}

runs() {
    names+=("$1") units+=("$2") places+=("$3")
}

# From here on nobody's session can begin, so that none is ended by the way; what began before it is looked for once more.
hold_new_sessions() {
    local foreign place
    note held "$operator"
    as "$operator" / "$front_door" --hold 'a drill of the stop, for a minute' >"$state/out.hold" 2>&1 || {
        fail "$operator can hold new sessions for the drill" "$(cat "$state/out.hold")"
        return 1
    }
    foreign=$(still_alive | while read -r line; do
        for place in "${places[@]}"; do case $line in *" $place "* | *" $place/"*) continue 2 ;; esac done
        printf '%s\n' "$line"
    done)
    [ -z "$foreign" ] || [ -n "$including" ] || [ -n "$had_foreign" ] ||
        busy "a session has begun meanwhile: $(one_line "$foreign")"
}

see_everything_alive() {
    local i
    before_stop=$(account_processes)
    for i in "${!names[@]}"; do
        check "${names[i]} is alive before the stop" 'it is not' equal "$(populated "$hierarchy${places[i]}")" 1
    done
    bystanders_before=$(bystanders)
    containers_before=$(of_containers <<<"$before_stop")
}

bystanders() {
    local name pid
    for name in operator-process other-process; do
        pid=$(head -n 1 "$hierarchy/system.slice/drill-$name.service/cgroup.procs" 2>/dev/null)
        [ -z "$pid" ] || printf '%s %s %s\n' "$pid" "$(start_of "$pid")" "$name"
    done
}

# $1: `stop` or `second`; afterwards: code, output in a file, when it was asked for and when it was answered.
stop_as_operator() {
    trail_before[$1]=$(trail_length)
    asked[$1]=$(now_us)
    as "$operator" / "$front_door" --stop --yes >"$state/out.$1" 2>&1
    exit_code[$1]=$?
    answered[$1]=$(now_us)
    last_stop[$1]=$(head -c 4096 /run/ai-tools/last-stop.json 2>/dev/null)
}

check_stop() {
    local i
    check "the stop by $operator says 0" "code ${exit_code[$1]}, $(tail -5 "$state/out.$1")" equal "${exit_code[$1]}" 0
    check_kernel 'after the stop'
    looked=$(now_us)
    for i in "${!names[@]}"; do
        case ${names[i]} in *-process) continue ;; esac
        check "${names[i]} is gone" "$(head -c 200 "$hierarchy${places[i]}/cgroup.procs" 2>/dev/null)" \
            test "$(populated "$hierarchy${places[i]}")" != 1
    done
}

# The kernel's word, which has to agree with what the stop said.
check_kernel() {
    local alive containers
    alive=$(still_alive)
    check "no process of the account is alive $1, by /proc and by its cgroups" "$alive" equal "$alive" ''
    if [ "$(populated "$slice")" = 1 ]; then
        check "nothing but the account's own manager is in the slice $1" "$(populated_below)" equal "$(populated_below)" ''
    else
        pass "the slice is unpopulated $1"
    fi
}

populated_below() {
    local events
    for events in "$slice"/*/cgroup.events; do
        [ "$events" = "$slice/$manager/cgroup.events" ] || ! grep -qsx 'populated 1' "$events" || printf '%s ' "$events"
    done
}

check_manager() {
    local sentence="the account's manager is back, as another process" after
    if [ "$manager_before" = 0 ] || [ ! -e "/var/lib/systemd/linger/$account" ]; then
        skip "$sentence" 'none lingered before the stop'
        return
    fi
    within 10 equal "$(systemctl is-active "$manager")" active
    after=$(systemctl show "$manager" --property=MainPID --value)
    check "$sentence" "$manager_before before, $after now" test "$after" != 0 -a "$after" != "$manager_before"
}

check_trail() {
    local entries run name i
    entries=$(entries_of stop)
    run=$(sed -n 's/.*"AI_TOOLS_RESULT":"requested","AI_TOOLS_RUN":"\([^"]*\)","AI_TOOLS_CALLER":"'"$operator"'".*/\1/p' \
        <<<"$entries" | head -n 1)
    check "the trail has the request, by $operator" 'no such entry' test -n "$run"
    check 'it has the verdict' 'no such entry' grep -q '"AI_TOOLS_RESULT":"stopped".*"AI_TOOLS_EXIT_CODE":0' <<<"$entries"
    for i in "${!names[@]}"; do
        name=${names[i]}
        case $name in
        *-process) continue ;;
        polite | stopped) check "it has $name, ended in the grace" "$(outcome_of "$i")" equal "$(outcome_of "$i")" terminated ;;
        stray) check "it has $name, ended outside of the slice" "$(outcome_of "$i")" equal "$(outcome_of "$i")" stray-ended ;;
        *) check "it has $name, killed" "$(outcome_of "$i")" equal "$(outcome_of "$i")" killed ;;
        esac
    done
    [ -n "$run" ] || return
    journalctl --sync 2>/dev/null
    entries=$(journalctl --quiet "AI_TOOLS_RUN=$run" --output=cat | grep -c .)
    check 'the journal has the same run, entry by entry' "$entries in the journal" \
        equal "$entries" "$(entries_of stop | grep -cF "\"$run\"")"
}

entries_of() {
    tail -n "+$((trail_before[$1] + 1))" -- "$trail" 2>/dev/null
}

# What the trail says became of a session; nothing where it says nothing.
outcome_of() {
    entries_of stop | grep -F "\"AI_TOOLS_CGROUP\":\"${places[$1]}\"" |
        sed -n 's/.*"AI_TOOLS_RESULT":"\([a-z-]*\)".*/\1/p' | tail -n 1
}

check_bystanders() {
    local gone
    gone=$(not_alive <<<"$bystanders_before")
    check "processes of $operator and of others go on" "${gone:-they were not there before}" \
        equal "$gone $(grep -c . <<<"$bystanders_before")" ' 2'
    [ -n "$containers_before" ] || return
    gone=$(not_alive <<<"$containers_before")
    check 'processes of containers with the same number go on' "$gone" equal "$gone" ''
}

check_sessions_came_back() {
    local temper last=$((SECONDS + end_limit))
    for temper in "${!waiting[@]}"; do
        check "ai-tools --run of $temper came back to $operator" "not within $end_limit s" \
            within "$((last - SECONDS))" is_over "${waiting[$temper]}"
    done
}

is_over() {
    ! kill -0 "$1" 2>/dev/null
}

# What the stopped sessions wrote is the operator's again, and the project is nobody's any more.
check_handback() {
    local seen
    seen=$(as "$operator" / "$front_door" --reclaim "$project" 2>&1)
    # By the operator, since what lies in the project is not ours to open.
    sigterm_at=$(as "$operator" "$project" timeout 2 cat polite.sigterm stopped.sigterm 2>/dev/null |
        grep -Ex '[0-9]{16}' | sort -n | head -n 1)
    check "$operator gets back what the sessions wrote" "$seen" equal "$(find "$project" -user "$account" | head -3)" ''
    seen=$(as "$operator" / "$front_door" --release 2>&1)
    check 'new sessions may start again' "$seen" test ! -e /var/lib/ai-tools/hold.json
}
