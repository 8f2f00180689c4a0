# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Counts the processes of a drill's sessions while it goes on, and writes what was seen: JSON, and the same in a page that
# needs no network. Part of verify-live-flows.sh.
# shellcheck disable=SC2154

page=drill-page.html
# How much of a program's output goes into the evidence, in bytes.
longest_text=65536

start_sampling() {
    : >"$state/samples"
    rm -f "$state/tick"
    mkfifo "$state/tick"
    count_forever 9>&- &
    sampler=$!
}

# One line a look: microseconds, then the processes of each session. Starts no program, so that it counts on a busy host
# as well, and ends with the script.
count_forever() {
    local tick line place pids
    exec {tick}<>"$state/tick"
    while kill -0 $$ 2>/dev/null; do
        line=${EPOCHREALTIME/[.,]/}
        for place in "${places[@]}"; do
            { mapfile -t pids <"$hierarchy$place/cgroup.procs"; } 2>/dev/null || pids=()
            line+=" ${#pids[@]}"
        done
        printf '%s\n' "$line" >>"$state/samples"
        read -r -t 0.05 -u "$tick"
    done
}

stop_sampling() {
    [ -n "${sampler:-}" ] || return 0
    kill "$sampler" 2>/dev/null
    wait "$sampler" 2>/dev/null
    sampler=''
}

# Writes what was seen below a name with the time and the verdict; $1: verdict.
keep_evidence() {
    local name template
    name=$([ -n "$drilling" ] && echo drill || echo check)-$(date -u -d "$started" +%Y%m%dT%H%M%SZ)-$1
    if ! { mkdir -p -m 700 -- "$evidence" && evidence_json "$1" >"$evidence/$name.json"; }; then
        fail 'the evidence is kept' "$evidence/$name.json could not be written"
        return
    fi
    printf 'evidence: %s\n' "$evidence/$name.json"
    if [ -n "$drilling" ]; then
        template=$(find_page) && fill_page "$template" "$evidence/$name.json" >"$evidence/$name.html" &&
            printf 'evidence: %s\n' "$evidence/$name.html"
    fi
    [ -z "$keep" ] || forget_old
}

find_page() {
    local path
    for path in "$here/$page" "$here/../../share/$page"; do
        if [ -f "$path" ]; then printf '%s\n' "$path" && return; fi
    done
    printf 'verify-live-flows: there is no %s: the evidence is JSON alone.\n' "$page" >&2
    return 1
}

# The one line that is only @EVIDENCE@ becomes the JSON, in which nothing can end the element that it stands in.
fill_page() {
    local line
    while IFS= read -r line || [ -n "$line" ]; do
        if [ "$line" = @EVIDENCE@ ]; then sed 's/</\\u003c/g' -- "$2"; else printf '%s\n' "$line"; fi
    done <"$1"
}

forget_old() {
    local kind old
    kind=$([ -n "$drilling" ] && echo drill || echo check)
    # Names of ours alone, which sort by their time and hold neither blanks nor line breaks.
    (cd -- "$evidence" && printf '%s\n' "$kind"-????????T??????Z-*.json) | sort | head -n "-$keep" |
        while IFS= read -r old; do rm -f -- "$evidence/$old" "$evidence/${old%.json}.html"; done
}

evidence_json() {
    local zero=${asked[stop]:-$(now_us)}
    printf '{"format":"ai-tools-drill","version":1,"verdict":"%s","problems":[' "$1"
    problems | json_list
    printf '],\n"startedAt":"%s","endedAt":"%s","zeroAt":"%s",\n' "$started" "$(now_iso)" "$(iso_of "$zero")"
    printf '"by":%s,"command":"ai-tools --stop --yes",' \
        "$(json_text "${AI_TOOLS_DRILL_BY:-verify-live-flows.sh}")"
    printf '"operator":%s,"account":"%s","uid":%s,\n' "$(json_text "$operator")" "$account" "$uid"
    host_json
    printf '"sessions":[\n'
    sessions_json
    printf '],\n'
    samples_json "$zero"
    printf '"marks":[\n'
    marks "$zero" | sort -n | marks_json
    printf '],\n'
    stop_json stop stop
    stop_json second secondStop
    printf '"checks":[\n'
    checks_json
    printf '],\n"trail":[\n'
    if [ -n "${trail_before[stop]:-}" ]; then entries_of stop | json_list; fi
    printf ']}\n'
}

problems() {
    local i
    for ((i = 0; i < ${#results[@]}; i += 3)); do
        [ "${results[i]}" != FAIL ] || one_line "${results[i + 1]}: ${results[i + 2]}"
    done
    [ -n "$finished" ] || echo 'it did not come to its end'
}

host_json() {
    local selinux=off
    if [ -e /sys/fs/selinux/enforce ]; then
        selinux=permissive
        [ "$(cat /sys/fs/selinux/enforce)" != 1 ] || selinux=enforcing
    fi
    printf '"host":{"name":%s,"system":%s,"kernel":%s,"systemd":%s,"product":%s,"selinux":"%s"},\n' \
        "$(json_text "$(uname -n)")" "$(json_text "$(. /etc/os-release && echo "$PRETTY_NAME")")" \
        "$(json_text "$(uname -r)")" "$(json_text "$(systemctl --version | awk 'NR == 1 { print $2 }')")" \
        "$(json_text "$("$front_door" --version)")" "$selinux"
}

sessions_json() {
    local i place separator=''
    for i in "${!names[@]}"; do
        case ${names[i]} in
        *-process) place=bystander ;;
        own-manager | stray) place=${names[i]} ;;
        *) place=session ;;
        esac
        printf '%s{"name":"%s","temper":"%s","says":%s,"place":"%s","unit":"%s","cgroup":"%s","outcome":"%s"}' \
            "$separator" "${names[i]}" "${names[i]}" "$(json_text "${says[${names[i]}]}")" "$place" "${units[i]}" \
            "${places[i]}" "$([ -z "${trail_before[stop]:-}" ] || outcome_of "$i" | sed s/^stray-ended$/killed/)"
        separator=$',\n'
    done
}

# A look that equals the ones on both sides of it is left out, and counted.
samples_json() {
    [ -s "$state/samples" ] || {
        printf '"looks":{"how":"there was none","count":0,"longestGapMs":0},"samples":[],\n'
        return
    }
    awk -v zero="$1" '
        function row() { printf "%s{\"atMs\":%.1f,\"alive\":[%s]}", separator, at, counts; separator = ",\n" }
        BEGIN { print "\"samples\":[" }
        {
            now = ($1 - zero) / 1000; next_counts = $0; sub(/^[^ ]* /, "", next_counts); gsub(/ /, ",", next_counts)
            if (NR > 1 && (NR == 2 || counts != before || counts != next_counts)) row()
            if (NR > 1 && now - at > gap) gap = now - at
            before = counts; at = now; counts = next_counts
        }
        END {
            if (NR) row()
            printf "],\n\"looks\":{\"how\":\"the script, by cgroup.procs of each unit\","
            printf "\"count\":%d,\"longestGapMs\":%.1f},\n", NR, gap
        }' "$state/samples"
}

# Name, by whom, and milliseconds after the request, in front.
marks() {
    [ -n "${asked[stop]:-}" ] || return
    mark_at "$1" "$1" request "the script's clock"
    mark_at "$1" "$sigterm_at" sigterm 'the session that got it'
    mark_at "$1" "$(killed_after)" kill 'the script: the last look with the deaf one alive'
    mark_at "$1" "$(gone_at)" gone 'the script, by cgroup.procs'
    mark_at "$1" "$(trail_time '"AI_TOOLS_RESULT":"stopped"')" verified 'the trail'
    mark_at "$1" "$(trail_time '"AI_TOOLS_RESULT":"manager-restored"')" manager 'the trail'
    mark_at "$1" "${looked:-}" looked 'the script, by /proc'
    mark_at "$1" "${asked[second]:-}" second "the script's clock"
}

mark_at() {
    [ -z "$2" ] || printf '%s %s %s\n' "$((($2 - $1) / 1000))" "$3" "$4"
}

marks_json() {
    local at name by separator=''
    while read -r at name by; do
        printf '%s{"name":"%s","atMs":%s,"by":%s}' "$separator" "$name" "$at" "$(json_text "$by")"
        separator=$',\n'
    done
}

trail_time() {
    local time
    time=$(entries_of stop | grep -F -m 1 -- "$1" | sed -n 's/^{"time":"\([^"]*\)".*/\1/p')
    [ -z "$time" ] || date -d "$time" +%s%6N
}

# The last look with the deaf session in it, which can only be killed.
killed_after() {
    local i column=''
    for i in "${!names[@]}"; do [ "${names[i]}" != deaf ] || column=$((i + 2)); done
    [ -z "$column" ] || awk -v c="$column" '$c { last = $1 } END { if (NR && !$c) print last }' "$state/samples"
}

# The first look after the request in which nothing is left that had to end; bystanders come first in each line.
gone_at() {
    awk -v zero="${asked[stop]}" '
        $1 >= zero { left = 0; for (i = 4; i <= NF; i++) left += $i; if (!left) { print $1; exit } }' "$state/samples"
}

stop_json() {
    local end=${answered[$1]:-} begin=${asked[$1]:-}
    [ -n "$end" ] || { [ "$1" = second ] || printf '"stop":null,\n'; return; }
    printf '"%s":{"exitCode":%s,"durationMs":%s,"lastStop":%s,"output":%s},\n' "$2" "${exit_code[$1]}" \
        "$(((end - begin) / 1000))" "${last_stop[$1]:-null}" "$(json_text "$(cat "$state/out.$1")")"
}

checks_json() {
    local i separator=''
    for ((i = 0; i < ${#results[@]}; i += 3)); do
        printf '%s{"verdict":"%s","says":%s,"seen":%s}' "$separator" "${results[i]}" "$(json_text "${results[i + 1]}")" \
            "$(json_text "${results[i + 2]}")"
        separator=$',\n'
    done
}

# Lines as a list of texts.
json_list() {
    local line separator=''
    while IFS= read -r line; do
        printf '%s%s' "$separator" "$(json_text "$line")"
        separator=$',\n'
    done
}

# Any text as one of JSON's, in printable ASCII.
json_text() {
    printf '"'
    printf '%s' "$1" | head -c "$longest_text" | tr -d '\r' | tr -c '\n\t -~' '?' |
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/\\t/g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
    printf '"'
}

iso_of() {
    date -u -d "@${1:0:-6}.${1: -6}" +%Y-%m-%dT%H:%M:%S.%3NZ
}
