# SPDX-License-Identifier: Apache-2.0
# Kernel facts about reading: what /proc says of zombies, threads, namespaces and names, and how numbers are given out.

import errno
import os
import signal
import struct
import sys
import time

from bench import (
    BENCH,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    LIFE_S,
    UID,
    call,
    check,
    children,
    errno_of,
    fact,
    headless,
    libc,
    populated,
    read,
    start,
    state,
    status,
    until,
    write,
)


@fact
def a_zombie_leader_shows_z_and_its_threads():
    pid = headless()
    check(state(pid) == "Z", "it shows Z")
    check(status(pid, "Threads") == "2", "the dead leader and the living thread are counted")


@fact
def dead_is_z_with_one_thread():
    pid = start(lambda: os.setresuid(UID, UID, UID))
    until(lambda: status(pid, "Uid").startswith(str(UID)), "it has its uids")
    os.kill(pid, signal.SIGKILL)
    until(lambda: state(pid) == "Z", "it shows Z")
    check(status(pid, "Threads") == "1", "with one thread")
    check(status(pid, "Uid").split() == [str(UID)] * 4, "its uids are still there")
    os.kill(pid, 0)


@fact
def a_thread_number_leads_to_its_process():
    pid = headless()
    (thread,) = [int(name) for name in os.listdir(f"/proc/{pid}/task") if name != str(pid)]
    until(lambda: state(thread) == "S", "it is the living thread's")
    check(status(thread, "Tgid") == str(pid), "it names its process")
    check(str(thread) not in os.listdir("/proc"), "it is not listed")
    os.kill(thread, signal.SIGKILL)
    until(lambda: not populated(), "a signal to it ends the process")


@fact
def a_zombie_has_no_working_directory():
    pid = start()
    os.kill(pid, signal.SIGKILL)
    until(lambda: state(pid) == "Z", "it is a zombie")
    check(errno_of(lambda: os.readlink(f"/proc/{pid}/cwd")) == errno.ENOENT, "there is none")


@fact
def the_last_pid_is_the_fifth_word():
    # In a pid namespace of its own, where nobody else forks.
    def look():
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            check(int(read("/proc/loadavg").split()[4]) == pid, "it is the newest process")
            os.waitpid(pid, 0)
            check(int(read("/proc/loadavg").split()[4]) == pid, "it stays when that is gone")

    in_own_namespace(look)


@fact
def numbers_wrap_to_300():
    def look():
        highest = int(read("/proc/sys/kernel/pid_max")) - 1
        set_last(highest - 1)
        check(fork_one() == highest, "the highest number is given out")
        check(fork_one() == 300, "then 300")
        set_last(highest)
        check(fork_one() == 301, "a number that is taken is left out")

    in_own_namespace(look)


def set_last(pid):
    check(write("/proc/sys/kernel/ns_last_pid", str(pid)) == 0, "the last number can be set")


def fork_one():
    pid = os.fork()
    if pid == 0:
        signal.alarm(LIFE_S)
        while True:
            time.sleep(1)
    return pid


def in_own_namespace(look):
    """Runs `look` as process 1 of a new pid namespace with a /proc of its own."""
    middle = os.fork()
    if middle == 0:
        call(libc.unshare(CLONE_NEWPID | CLONE_NEWNS), "unshare")
        first = os.fork()
        if first == 0:
            call(libc.mount(None, b"/", None, (1 << 14) | (1 << 18), None), "make mounts private")
            call(libc.mount(b"proc", b"/proc", b"proc", 0, None), "mount proc")
            try:
                look()
                os._exit(0)
            except BaseException as error:
                print(error, file=sys.stderr, flush=True)
                os._exit(1)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))
    check(os.waitstatus_to_exitcode(os.waitpid(middle, 0)[1]) == 0, "it is so in a pid namespace of its own")


@fact
def a_namespaced_process_has_two_numbers():
    def into(flags):
        def work(say):
            call(libc.unshare(flags), "unshare")
            if os.fork() == 0:
                signal.alarm(LIFE_S)
                while True:
                    time.sleep(1)
            say()

        outer = start(work, ready_after=True)
        (inner,) = read(f"/proc/{outer}/task/{outer}/children").split()
        children.append(int(inner))
        check(status(int(inner), "NSpid").split() == [inner.decode(), "1"], "two entries")
        return os.readlink(f"/proc/{int(inner)}/ns/user")

    check(into(CLONE_NEWPID) == os.readlink("/proc/self/ns/user"), "the host's user namespace")
    check(into(CLONE_NEWPID | CLONE_NEWUSER) != os.readlink("/proc/self/ns/user"), "or its own")


@fact
def status_shows_four_uids():
    pid = start(lambda: os.setresuid(0, UID, 0))
    until(lambda: status(pid, "Uid").split() == ["0", str(UID), "0", str(UID)], "root acting for somebody is seen")


def executor(pid):
    """AT_UID (11) of the auxiliary vector: pairs of native words."""
    words = memoryview(read(f"/proc/{pid}/auxv")).cast("L").tolist()
    return dict(zip(words[::2], words[1::2])).get(11)


@fact
def who_executed_a_program_is_kept():
    def execute():
        os.setresuid(UID, UID, UID)
        os.execv("/bin/sleep", ["sleep", str(LIFE_S)])

    executed = start(execute)
    until(lambda: status(executed, "Name") == "sleep", "the program runs")
    check(executor(executed) == UID, "the account, where the account did")
    changed = start(lambda: os.setresuid(UID, UID, UID))
    until(lambda: status(changed, "Uid").startswith(str(UID)), "it has its uids")
    check(executor(changed) == 0, "root, where root did, whatever the uids are now")
    leader = headless()
    check(errno_of(lambda: executor(leader)) == errno.ESRCH, "a leader that has exited has none")


@fact
def orphans_go_to_the_nearest_subreaper():
    numbers, told = os.pipe()

    def work():
        call(libc.prctl(36, 1, 0, 0, 0), "PR_SET_CHILD_SUBREAPER")
        if os.fork() == 0:
            if os.fork() == 0:
                signal.alarm(LIFE_S)
                os.write(told, struct.pack("i", os.getpid()))
                while True:
                    time.sleep(1)
            os._exit(0)

    reaper = start(work)
    (child,) = struct.unpack("i", os.read(numbers, 4))
    children.append(child)
    until(lambda: status(child, "PPid") == str(reaper), "the subreaper has it")
    os.kill(reaper, signal.SIGKILL)
    until(lambda: status(child, "PPid") in ("0", "1"), "then PID 1")


@fact
def a_name_may_hold_anything():
    pid = start(lambda: libc.prctl(15, b") R 1 (\nUid:\t0", 0, 0, 0))
    expected = f"{pid} () R 1 (\nUid:\t0) ".encode()
    until(lambda: read(f"/proc/{pid}/stat").startswith(expected), "raw in stat")
    check(read(f"/proc/{pid}/status").startswith(b"Name:\t) R 1 (\\nUid:\t0\n"), "escaped in status")


@fact
def a_cgroup_path_holds_raw_bytes():
    name = b"\x1b[2J\xff\xe4 .service"
    os.makedirs(BENCH.encode() + b"/" + name)
    pid = start()
    with open(BENCH.encode() + b"/" + name + b"/cgroup.procs", "wb", buffering=0) as file:
        file.write(str(pid).encode())
    check(read(f"/proc/{pid}/cgroup").endswith(b"0::/lab-facts/" + name + b"\n"), "byte by byte")
    os.chdir(BENCH)
    for _ in range(18):
        os.mkdir("x" * 250)
        os.chdir("x" * 250)
    check(write("cgroup.procs", str(pid)) == 0, "a process goes to the bottom")
    try:
        # Lines of v1 hierarchies may come first.
        (line,) = [one for one in read(f"/proc/{pid}/cgroup").split(b"\n") if one.startswith(b"0::")]
        check(line.startswith(b"0::/lab-facts/xxx") and len(line) < 4120, "cut off at the end")
    except OSError as error:
        check(error.errno == errno.ENAMETOOLONG, "or not at all")
