#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs inside a tree while it is made (tree.ts): fetches the suite's own policy, unpacks it without its scripts, which want
# a running system, and translates its modules once for all links.
set -e
cd /tmp
apt-get -q -o APT::Sandbox::User=root download selinux-policy-default
dpkg-deb -x selinux-policy-default_*.deb /
rm selinux-policy-default_*.deb
hll=$(ls /usr/libexec/selinux/hll/pp /usr/lib/selinux/hll/pp 2>/dev/null | head -n 1)
mkdir -p /var/lib/ai-tools-base-policy
for module in /usr/share/selinux/default/*.pp.bz2; do
  name=$(basename "$module" .pp.bz2)
  bzip2 -dc "$module" >module.pp
  "$hll" module.pp "/var/lib/ai-tools-base-policy/$name.cil"
done
rm module.pp
