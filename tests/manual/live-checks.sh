# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The checks that change nothing on the host. Part of verify-live-flows.sh.
# shellcheck disable=SC2154

check_everything_reversible() {
    check_files
    check_account
    check_grant
    check_refusals
    check_units
    check_schedulers
    check_selinux
    check_status
    check_dry_run
    check_trail_file
}

# Path, mode, owner, kind. What belongs to the package and is anything else than this is open to somebody or closed to all.
check_files() {
    local path mode owner kind seen
    while read -r path mode owner kind; do
        seen=$(stat -c '%a %U:%G %F' -- "$path" 2>&1)
        check "$path is a ${kind//-/ }, $mode, $owner" "$seen" equal "$seen" "$mode $owner ${kind//-/ }"
    done <<END
/usr/libexec/ai-tools 750 root:root directory
$helper 700 root:root regular-file
/usr/libexec/ai-tools/ai-tools-claim 700 root:root regular-file
/usr/libexec/ai-tools/ai-tools-run 700 root:root regular-file
/usr/libexec/ai-tools/ai-tools-ended 700 root:root regular-file
/usr/libexec/ai-tools/ai-tools-hold 700 root:root regular-file
$front_door 755 root:root regular-file
/usr/lib/ai-tools 755 root:root directory
/usr/lib/ai-tools/ai-tools-session 755 root:root regular-file
/etc/ai-tools 755 root:root directory
/etc/ai-tools/entrypoints.d 755 root:root directory
/etc/sudoers.d/ai-tools 440 root:root regular-file
/var/lib/ai-tools 755 root:root directory
/var/lib/ai-tools/claims 755 root:root directory
/var/lib/ai-tools/sessions 755 root:root directory
/var/lib/ai-tools/home 700 $account:$account directory
/var/log/ai-tools 700 root:root directory
/run/ai-tools 755 root:root directory
/run/ai-tools/stop 755 root:root directory
END
    check_package
}

# Programs and rules byte for byte; what the administrator may edit is left out, and times.
check_package() {
    local sentence='the files are those of the package' seen
    if ! rpm -q ai-tools >/dev/null 2>&1; then
        skip "$sentence" 'rpm knows of no package ai-tools here'
        return
    fi
    seen=$(as root / rpm -V --nomtime ai-tools 2>&1 | grep -v '^[^ ]*  *[cg] /')
    check "$sentence" "$seen" equal "$seen" ''
}

check_account() {
    local entry shadow seen
    entry=$(getent passwd "$account")
    check "the account is a local one with a number of its own" "$entry" has_own_number
    check "its home is root's: /var/lib/ai-tools" "$entry" equal "$(cut -d : -f 6 <<<"$entry")" /var/lib/ai-tools
    case $(cut -d : -f 7 <<<"$entry") in
    */nologin | */false) pass 'it has no login shell' ;;
    *) fail 'it has no login shell' "$entry" ;;
    esac
    shadow=$(getent shadow "$account" | cut -d : -f 2)
    case $shadow in
    '!'* | '*'*) pass 'its password is locked' ;;
    *) fail 'its password is locked' 'there is one, or none is needed' ;;
    esac
    seen=$(id -nG "$account")
    check 'it is in no group but its own' "$seen" equal "$seen" "$account"
}

has_own_number() {
    equal "$(awk -F : -v uid="$uid" '$3 == uid { print $1 }' /etc/passwd)" "$account" && [ "$uid" != 0 ]
}

check_grant() {
    local seen
    seen=$(as root / visudo -c 2>&1)
    check 'sudo can read all of its files (visudo -c)' "$seen" grep -q 'sudoers.d/ai-tools: parsed OK' <<<"$seen"
    seen=$(as root / sudo -l -U "$operator" 2>&1 | tr -s ' \n' ' ')
    check "sudo grants $operator the helper without a password and without arguments" "$seen" \
        grep -qF "NOPASSWD: $helper \"\"" <<<"$seen"
    seen=$(as "$operator" / sudo -n -l "$helper" 2>&1)
    check "sudo says so to $operator as well" "$seen" equal "$(tr -d ' "' <<<"$seen")" "$helper"
    seen=$(as root / sudo -l -U "$account" 2>&1)
    check 'the account has no sudo rule' "$seen" grep -q 'is not allowed to run sudo' <<<"$seen"
}

# With --dry-run, so that nothing happens where a refusal fails to come.
check_refusals() {
    local seen code before sentence="sudo refuses $operator the helper with an argument"
    before=$(trail_length)
    seen=$(as "$operator" / sudo -n "$helper" --dry-run 2>&1)
    code=$?
    if [ "$code" != 0 ] && [ "$(trail_length)" = "$before" ]; then
        pass "$sentence"
    elif as root / sudo -l -U "$operator" 2>/dev/null | grep -q 'NOPASSWD: ALL'; then
        skip "$sentence" "another rule of this host lets $operator run everything without a password"
    else
        fail "$sentence" "code $code, $seen"
    fi
    before=$(trail_length)
    seen=$(as nobody / "$front_door" --stop --dry-run 2>&1)
    code=$?
    check 'who is no operator is refused: ai-tools --stop answers nobody with 5' "code $code, $seen" \
        equal "$code $(trail_length)" "5 $before"
    seen=$(as nobody / "$helper" --dry-run 2>&1)
    code=$?
    check 'the helper itself is closed to them' "code $code, $seen" equal "$code" 126
}

trail_length() {
    cat -- "$trail" 2>/dev/null | wc -l
}

check_units() {
    local seen
    seen=$(systemctl show "user-$uid.slice" --property=DropInPaths --value)
    check "the limits of the account's slice are in force" "drop-ins: $seen" \
        grep -q "/user-$uid.slice.d/50-ai-tools.conf" <<<"$seen"
    seen=$(systemctl show "user-$uid.slice" --property=TasksMax --value)
    check 'the slice has a limit of tasks' "$seen" grep -Eqx '[0-9]{1,6}' <<<"$seen"
    if [ -e "$slice/pids.max" ]; then
        check 'the kernel has the same limit' "$(cat "$slice/pids.max") and $seen" equal "$(cat "$slice/pids.max")" "$seen"
    fi
    seen=$(systemctl show "$manager" --property=Environment --value)
    check "the account's manager reads units of root alone" "$seen" \
        equal "$seen" SYSTEMD_UNIT_PATH=/etc/systemd/user:/usr/lib/systemd/user
    for seen in ended failed; do
        check "PID 1 knows ai-tools-$seen@.service" 'no such unit' \
            equal "$(systemctl show "ai-tools-$seen@x.service" --property=LoadState --value)" loaded
    done
}

# By what the programs themselves say to the account: which lists decide differs from host to host.
check_schedulers() {
    local seen program
    for program in crontab at; do
        if ! command -v "$program" >/dev/null; then
            skip "the account may not use $program" "there is no $program on this host"
            continue
        fi
        case $program in
        crontab) seen=$(as "$account" / crontab -l 2>&1) ;;
        at) seen=$(as "$account" / at -l 2>&1) ;;
        esac
        check "the account may not use $program" "$seen" grep -Eqi 'not allowed|not have permission' <<<"$seen"
    done
    seen=$(ls -d "/var/spool/cron/crontabs/$account" "/var/spool/cron/$account" 2>/dev/null)
    check 'it has no crontab' "$seen" equal "$seen" ''
}

check_selinux() {
    local sentence='a session is confined by SELinux' path seen
    if [ ! -e /sys/fs/selinux/enforce ]; then
        skip "$sentence" 'SELinux is off on this host: file permissions alone keep sessions'
        return
    fi
    case $(cat /sys/fs/selinux/enforce) in
    1) pass 'SELinux enforces' ;;
    *) skip 'SELinux enforces' 'it is permissive on this host: sessions are not confined' ;;
    esac
    seen=$(as root / semodule -l 2>&1 | grep '^ai_tools')
    check 'the policy module ai_tools is loaded' 'it is not; install ai-tools-selinux' test -n "$seen"
    if ! command -v matchpathcon >/dev/null; then
        skip 'the files are labelled as the policy says' 'there is no matchpathcon on this host'
        return
    fi
    for path in /usr/libexec/ai-tools "$helper" /usr/lib/ai-tools /usr/lib/ai-tools/* /etc/ai-tools \
        /var/lib/ai-tools /var/lib/ai-tools/home /var/log/ai-tools; do
        [ -e "$path" ] || continue
        seen=$(as root / matchpathcon -V "$path" 2>&1)
        check "$path is labelled as the policy says" "$seen" grep -q 'verified' <<<"$seen"
    done
}

check_status() {
    local seen code
    seen=$(as root / "$front_door" --status 2>&1)
    code=$?
    case $code in
    0 | 3) pass 'ai-tools --status finds nothing broken' ;;
    *) fail 'ai-tools --status finds nothing broken' "code $code, $(grep -E '^(BROKEN|UNKNOWN|unknown)' <<<"$seen")" ;;
    esac
    seen=$(as "$operator" / "$front_door" --status 2>&1)
    code=$?
    case $code in
    0 | 3) pass "it answers $operator too" ;;
    *) fail "it answers $operator too" "code $code, $seen" ;;
    esac
}

# The oldest process of each of the account's cgroups must still be there: what a session starts may end by itself.
check_dry_run() {
    local before seen code entries gone
    before=$(account_processes | sort -k 5,5 -k 2,2n | awk '$5 != last { print $1, $2, $5; last = $5 }')
    entries=$(trail_length)
    seen=$(as root / "$front_door" --stop --dry-run 2>&1)
    code=$?
    check 'a dry run ends with 0 and says that nothing was touched' "code $code, $seen" \
        test "$code" = 0 -a "$(grep -Fc 'Dry run: nothing was touched.' <<<"$seen")" = 1
    gone=$(not_alive <<<"$before")
    check "it ended nothing of what runs ($(grep -c . <<<"$before") cgroups)" "gone, perhaps by themselves: $gone" equal "$gone" ''
    seen=$(tail -n "+$((entries + 1))" -- "$trail" | grep -c '"AI_TOOLS_RESULT":"\(requested\|dry-run\)"')
    check 'the trail tells of it, and calls it a dry run' "$seen entries" equal "$seen" 2
}

# Of lines PID START ..., those whose process is gone, or is another one.
not_alive() {
    local pid start rest
    while read -r pid start rest; do
        [ -z "$pid" ] || [ "$(start_of "$pid")" = "$start" ] || printf '%s (%s) ' "$pid" "$rest"
    done
}

check_trail_file() {
    local seen
    seen=$(stat -c '%a %U:%G %F' -- "$trail" 2>&1)
    check "the trail is root's alone: $trail is 600" "$seen" equal "$seen" '600 root:root regular file'
    seen=$(tail -n 200 -- "$trail" | grep -vc '^{"time":".*}$')
    check 'each of its lines is one object of JSON' "$seen are not" equal "$seen" 0
    seen=$(journalctl --quiet --identifier=ai-tools-stop --lines=1 --output=cat 2>&1)
    check 'the journal has it as well' 'nothing in it' test -n "$seen"
}
