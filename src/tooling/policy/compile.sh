#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs inside a tree (tree.ts), in a folder with ai_tools.te, .if and .fc: compiles the module by the recipe that Debian,
# Fedora and EL share, then links it with the whole policy of the suite, neverallow checked, into linked.policy.
set -e
# Comments of the source are meant for people: nothing that make prints of them is a fault.
make -f /usr/share/selinux/devel/Makefile ai_tools.pp
[ "$1" = link ] || exit 0
hll=$(ls /usr/libexec/selinux/hll/pp /usr/lib/selinux/hll/pp 2>/dev/null | head -n 1)
"$hll" ai_tools.pp ai_tools.cil
# secilc checks neverallow unless it is told not to; semodule only where semanage.conf says expand-check=1.
secilc -m -o linked.policy -f linked.contexts /var/lib/ai-tools-base-policy/*.cil ai_tools.cil
