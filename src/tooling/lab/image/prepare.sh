#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Turns a fresh Debian tree into a lab host. Runs inside the tree, once, while the image is made.
set -eu

add_people() {
    # The operator may use sudo in general, with a password, as on most hosts: only the lever comes without one.
    useradd --create-home --shell /bin/bash --groups sudo olga
    useradd --create-home --shell /bin/bash ursula
    printf 'olga:olga\nursula:ursula\n' | chpasswd
}

# Debian's rpm database knows nothing of what dpkg installed: this package says it.
build_and_install_virtual_package() {
    rpmbuild --quiet -bb --define '_topdir /tmp/rpm' /tmp/recipe/debian-host.spec
    rpm --install /tmp/rpm/RPMS/noarch/debian-host-*.noarch.rpm
    rm -rf /tmp/rpm
}

quieten_boot() {
    systemctl set-default multi-user.target
    systemctl mask console-getty.service getty.target apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
        e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-networkd-wait-online.service
}

# Each host is one of its own, and none of them has a network.
forget_identity() {
    : >/etc/machine-id
    rm -f /var/lib/dbus/machine-id /etc/apt/sources.list /etc/apt/apt.conf.d/99mmdebstrap
    rm -rf /etc/apt/sources.list.d/* /etc/yum.repos.d
    mkdir /etc/yum.repos.d
}

add_people
build_and_install_virtual_package
quieten_boot
forget_identity
