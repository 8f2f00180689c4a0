# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Takes away everything that a drill has made, also one that was killed: its notes lie in a file of root's. Part of
# verify-live-flows.sh.
# shellcheck disable=SC2154

# Something that has to be taken away again: kind, and what it is.
note() {
    printf '%s\n' "$*" >>"$state/notes"
}

noted() {
    sed -n "s/^$1 //p" "$state/notes" 2>/dev/null | sort -u
}

# In every case, an interruption too; what fails here is a finding like the others.
end_drill() {
    [ -e "$state/notes" ] || return 0
    stop_sampling
    clean_up
}

clean_up() {
    [ -e "$state/notes" ] || return 0
    local path
    # First of all, so that none of its sessions can begin any more.
    for path in "$entry_points"/drill-*.conf; do
        if [ "$(head -n 1 "$path" 2>/dev/null)" = "$mark" ]; then rm -f -- "$path"; fi
    done
    within "$start_limit" end_units || fail "the drill's own units end" "$(own_units | tr '\n' ' ')"
    end_in_own_manager
    end_projects
    release_hold
    rm -f "$state/notes"
}

# Only the drill's own: whoever wanted another one wants it still.
release_hold() {
    local who
    who=$(noted held)
    if [ -n "$who" ] && grep -qs 'a drill of the stop' /var/lib/ai-tools/hold.json; then
        as "$who" / "$front_door" --release >/dev/null 2>&1 || fail 'the hold of the drill is lifted' "$front_door --release"
    fi
}

# By their names, since a session can be on its way that nobody has noted yet: the entry points of these names are the
# drill's. Says yes when none was there at the first look, and none half a second later.
end_units() {
    local unit found=''
    systemctl stop 'drill-run-*.service' 2>/dev/null
    for unit in $(own_units); do
        found=1
        systemctl kill --signal=KILL "$unit" 2>/dev/null
        systemctl stop "$unit" 2>/dev/null
    done
    [ -z "$found" ] && sleep 0.5 && [ -z "$(own_units)" ]
}

own_units() {
    local names="${tempers[*]}"
    systemctl list-units --all --plain --no-legend --full 'drill-*.service' 'ai-tools-drill-*.service' |
        awk '$2 != "not-found" && $3 != "inactive" && $3 != "failed" { print $1 }' |
        grep -Ex "drill-(run-.*|stray|operator-process|other-process)\.service|ai-tools-drill-(${names// /|})-[0-9]+\.service"
}

# Asking a manager that does not run would start it.
end_in_own_manager() {
    [ "$(systemctl is-active "$manager")" = active ] && grep -qs populated "$slice/$manager/app.slice/$own/cgroup.events" ||
        return 0
    systemctl --user --machine="$account@.host" kill --signal=KILL "$own" 2>/dev/null
    systemctl --user --machine="$account@.host" stop "$own" 2>/dev/null
    within "$start_limit" is_unpopulated "$slice/$manager/app.slice/$own" ||
        fail "the drill's own $own ends" 'it is alive'
}

is_unpopulated() {
    [ "$(populated "$1")" != 1 ]
}

# What the account wrote there is given back first; then the claim ends and the directory goes, all as its operator.
end_projects() {
    local who path
    while read -r who path; do
        [ -n "$path" ] && [ -d "$path" ] || continue
        as "$who" / "$front_door" --reclaim "$path" >/dev/null 2>&1
        # Refused until what follows a session's end is done.
        within "$start_limit" unclaimed "$who" "$path" ||
            fail "the drill's project is no longer claimed" "$(cat "$state/out.unclaim")"
        as "$who" / rm -rf -- "$path" || fail "the drill's project goes" "$path is still there"
    done <<<"$(noted project)"
}

unclaimed() {
    as "$1" / "$front_door" --unclaim "$2" >"$state/out.unclaim" 2>&1
}
