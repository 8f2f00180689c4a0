# SPDX-License-Identifier: Apache-2.0
# Kernel facts about cgroups: threaded, removed, braked and read-only ones, and what their files answer.

import errno
import os
import signal
import time

from bench import (
    BENCH,
    CLONE_NEWNS,
    call,
    cgroup,
    check,
    deaf,
    errno_of,
    fact,
    libc,
    populated,
    read,
    start,
    state,
    until,
    write,
)


@fact
def a_threaded_cgroup_refuses():
    threads = cgroup("/threads")
    check(write(f"{threads}/cgroup.type", "threaded") == 0, "the cgroup becomes threaded")
    pid = deaf()
    check(write(f"{threads}/cgroup.threads", str(pid)) == 0, "a thread moves in")
    check(errno_of(lambda: read(f"{threads}/cgroup.procs")) == errno.EOPNOTSUPP, "its cgroup.procs refuses")
    check(write(f"{threads}/cgroup.kill", "1") == errno.EOPNOTSUPP, "its cgroup.kill refuses")
    check(populated("/threads"), "its cgroup.events works")
    check(str(pid).encode() in read(f"{BENCH}/cgroup.procs").split(), "it is listed at the ancestor")
    write(f"{BENCH}/cgroup.kill", "1")
    until(lambda: not populated(), "a kill at the ancestor ends it")


@fact
def a_removed_cgroup_answers_enodev():
    again = cgroup("/again")
    events = os.open(f"{again}/cgroup.events", os.O_RDONLY)
    os.rmdir(again)
    check(errno_of(lambda: os.pread(events, 100, 0)) == errno.ENODEV, "the old file answers ENODEV")
    check(errno_of(lambda: read(f"{again}/cgroup.events")) == errno.ENOENT, "the path answers ENOENT")
    deaf("/again")
    check(errno_of(lambda: os.pread(events, 100, 0)) == errno.ENODEV, "the old file still answers ENODEV")
    check(populated("/again"), "the path answers for the new one")
    os.close(events)


@fact
def a_brake_stops_new_cgroups():
    check(write(f"{BENCH}/cgroup.max.descendants", "0") == 0, "the limit is taken")
    check(errno_of(lambda: os.mkdir(f"{BENCH}/more")) == errno.EAGAIN, "mkdir answers EAGAIN")
    check(write(f"{BENCH}/cgroup.max.descendants", "max") == 0, "the limit is lifted")
    check(errno_of(lambda: os.mkdir(f"{BENCH}/more")) == 0, "mkdir works again")


@fact
def an_empty_write_does_nothing():
    deaf()
    write(f"{BENCH}/cgroup.kill", "")
    check(write(f"{BENCH}/cgroup.kill", "2") != 0, "another word is refused")
    time.sleep(0.2)
    check(populated(), "nobody has ended")


@fact
def an_absent_file_answers_enoent():
    check(write(f"{BENCH}/cgroup.nothing", "1") == errno.ENOENT, "open answers ENOENT")


@fact
def a_read_only_hierarchy_answers_erofs():
    deaf()
    call(libc.unshare(CLONE_NEWNS), "unshare")
    call(libc.mount(None, b"/", None, (1 << 14) | (1 << 18), None), "make mounts private")
    call(libc.mount(None, b"/sys/fs/cgroup", None, 32 | 4096 | 1, None), "remount read-only")
    check(populated(), "reading works")
    refused = errno_of(lambda: os.close(os.open(f"{BENCH}/cgroup.kill", os.O_WRONLY)))
    check(refused == errno.EROFS, "writing does not")
    call(libc.mount(None, b"/sys/fs/cgroup", None, 32 | 4096, None), "remount writable")


@fact
def zero_moves_the_writer():
    pid = start()
    check(read(f"/proc/{pid}/cgroup").endswith(b"0::/lab-facts\n"), "the writer of 0 is there")


@fact
def kernfs_counts_its_directories():
    cgroup("/a")
    cgroup("/b")
    check(os.stat(BENCH).st_nlink == 4, "two children make four links")
    check(os.stat(f"{BENCH}/cgroup.events").st_size == 0, "the file has size 0")
    check(os.stat("/proc/self/status").st_size == 0, "so has one of /proc")


@fact
def a_zombie_is_not_populated():
    pid = start(where="/a")
    os.kill(pid, signal.SIGKILL)
    until(lambda: state(pid) == "Z", "it is a zombie")
    until(lambda: not populated(), "the cgroup is unpopulated")
    until(lambda: errno_of(lambda: os.rmdir(f"{BENCH}/a")) == 0, "rmdir works")
    check(read(f"/proc/{pid}/cgroup").endswith(b"0::/lab-facts/a (deleted)\n"), "the zombie's path says so")
