#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a lab host (see ../image/prepare.sh, which ran before) one that boots by itself. Runs inside the tree, once.
# Arguments: the host's name; 1 where SELinux is to enforce.
set -eu
name=$1
selinux=$2
recipe=/tmp/machine

be_called() {
    echo "$name" >/etc/hostname
    printf '127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost\n' "$name" >/etc/hosts
}

let_the_lab_in() {
    install -m 755 $recipe/enter /usr/local/sbin/lab-enter
    install -m 755 $recipe/lab-boot.sh /usr/local/sbin/lab-boot
    install -m 644 $recipe/lab-boot.service /etc/systemd/system/lab-boot.service
    install -m 644 $recipe/sshd.conf /etc/ssh/sshd_config.d/lab.conf
    systemctl enable lab-boot.service ssh.service
    # Each call is a shell of root's: a small one that reads no files.
    usermod --shell /bin/sh root
}

quieten_boot() {
    echo '/dev/vda / ext4 defaults 0 0' >/etc/fstab
    systemctl mask systemd-hwdb-update.service ldconfig.service systemd-firstboot.service \
        serial-getty@.service getty@.service getty-static.service systemd-timesyncd.service \
        systemd-networkd.service networking.service systemd-pstore.service systemd-rfkill.service \
        ssh.socket rpm-ostreed.service keyboard-setup.service console-setup.service
}

enforce() {
    rpmbuild --quiet -bb --define '_topdir /tmp/rpm' $recipe/selinux-host.spec
    rpm --install /tmp/rpm/RPMS/noarch/debian-selinux-host-*.noarch.rpm
    rm -rf /tmp/rpm
    sed -i 's/^SELINUX=.*/SELINUX=enforcing/' /etc/selinux/config
    # Each start of a machine is its first: nothing is to be labelled again.
    systemctl mask selinux-autorelabel.service selinux-autorelabel-mark.service
    systemctl enable auditd.service
    # No rules are to be loaded: what the policy denies is recorded without any.
    mkdir -p /etc/systemd/system/auditd.service.d
    printf '[Service]\nExecStartPost=\n' >/etc/systemd/system/auditd.service.d/lab.conf
}

be_called
let_the_lab_in
quieten_boot
if [ "$selinux" = 1 ]; then enforce; fi
