# SPDX-License-Identifier: Apache-2.0
# Kernel facts about killing: whom a write to cgroup.kill ends, whom kill(2) ends, and what keeps either from its work.

import ctypes
import errno
import os
import select
import signal
import struct
import time

from bench import (
    BENCH,
    LIFE_S,
    UID,
    call,
    check,
    children,
    deaf,
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
def a_write_ends_everything_below():
    for where in ("", "/a", "/a/b"):
        deaf(where)
    check(write(f"{BENCH}/cgroup.kill", "1") == 0, "the write succeeds")
    until(lambda: not populated(), "the cgroup is unpopulated")


@fact
def a_write_passes_a_zombie_leader_by():
    headless()
    for _ in range(5):
        check(write(f"{BENCH}/cgroup.kill", "1") == 0, "the write succeeds")
        time.sleep(0.1)
    check(populated(), "it lives on")


@fact
def a_signal_ends_a_zombie_leader():
    os.kill(headless(), signal.SIGKILL)
    until(lambda: not populated(), "it is gone")


@fact
def a_zombie_leader_forks():
    numbers, told = os.pipe()

    def fork():
        pid = os.fork()
        if pid == 0:
            signal.alarm(LIFE_S)
            while True:
                time.sleep(1)
        os.write(told, struct.pack("i", pid))

    leader = headless("", fork)
    (child,) = struct.unpack("i", os.read(numbers, 4))
    children.append(child)
    check(status(child, "PPid") == str(leader), "the dead leader is the parent")


@fact
def a_stopped_process_keeps_term():
    pid = start()
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T", "it is stopped")
    os.kill(pid, signal.SIGTERM)
    time.sleep(0.2)
    check(state(pid) == "T", "it is still stopped")
    os.kill(pid, signal.SIGCONT)
    until(lambda: not populated(), "it ends once it continues")


@fact
def kill_ends_a_stopped_process():
    pid = start()
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T", "it is stopped")
    os.kill(pid, signal.SIGKILL)
    until(lambda: not populated(), "it is gone")


def freeze():
    check(write(f"{BENCH}/cgroup.freeze", "1") == 0, "the freeze is taken")
    until(lambda: b"frozen 1" in read(f"{BENCH}/cgroup.events"), "it is frozen")


@fact
def a_frozen_process_dies_from_default_term():
    pid = start()
    freeze()
    os.kill(pid, signal.SIGTERM)
    until(lambda: not populated(), "it is gone")


@fact
def a_frozen_handler_waits_for_the_thaw():
    def work(say):
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        say()

    pid = start(work, ready_after=True)
    freeze()
    os.kill(pid, signal.SIGTERM)
    time.sleep(0.3)
    check(populated(), "frozen, it waits")
    write(f"{BENCH}/cgroup.freeze", "0")
    until(lambda: not populated(), "thawed, it handles the signal")


@fact
def a_frozen_cgroup_can_be_killed_and_stays_frozen():
    deaf("/a")
    freeze()
    write(f"{BENCH}/cgroup.kill", "1")
    until(lambda: not populated(), "it is gone")
    check(read(f"{BENCH}/cgroup.freeze") == b"1\n", "the freeze is still there")


@fact
def a_tracer_holds_its_tracee_at_the_exit():
    tracee = start()

    def seize(say):
        call(libc.ptrace(0x4206, tracee, None, ctypes.c_void_p(0x40)), "PTRACE_SEIZE")
        say()

    tracer = start(seize, "-tracer", ready_after=True)
    os.kill(tracee, signal.SIGKILL)
    until(lambda: state(tracee) == "t", "it is in a tracing stop")
    check(read(f"/proc/{tracee}/wchan") == b"ptrace_stop", "its wait channel says so")
    check(populated(), "it counts as populated")
    os.kill(tracer, signal.SIGKILL)
    until(lambda: not populated(), "it goes with its tracer")
    os.waitpid(tracer, 0)
    os.rmdir(f"{BENCH}-tracer")


@fact
def a_vfork_parent_is_in_d_and_killable():
    fifo = "/run/lab-facts.fifo"
    errno_of(lambda: os.unlink(fifo))
    os.mkfifo(fifo)
    opening = [(os.POSIX_SPAWN_OPEN, 5, fifo, os.O_RDONLY, 0)]
    pid = start(lambda: os.posix_spawn("/bin/true", ["true"], {}, file_actions=opening))
    until(lambda: state(pid) == "D", "it shows D")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.unlink(fifo)


@fact
def a_hung_fuse_daemon_holds_until_abort():
    connections = "/sys/fs/fuse/connections"
    if not os.path.exists("/dev/fuse"):
        os.mknod("/dev/fuse", 0o20666, os.makedev(10, 229))
    if not os.path.ismount(connections):
        call(libc.mount(b"fusectl", connections.encode(), b"fusectl", 0, None), "mount fusectl")
    place = "/run/lab-facts.fuse"
    os.makedirs(place, exist_ok=True)
    before = set(os.listdir(connections))
    daemon = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={daemon},rootmode=40000,user_id={UID},group_id={UID}".encode()
    call(libc.mount(b"lab", place.encode(), b"fuse", 0, options), "mount")
    (connection,) = set(os.listdir(connections)) - before
    answer_init(daemon)

    def ask():
        os.setresgid(UID, UID, UID)
        os.setresuid(UID, UID, UID)
        os.stat(f"{place}/anything")

    client = start(ask)
    check(select.select([daemon], [], [], 5)[0] == [daemon], "the daemon is asked")
    os.read(daemon, 1 << 20)  # taken, and never answered
    os.kill(client, signal.SIGKILL)
    until(lambda: state(client) == "D", "it shows D after SIGKILL")
    time.sleep(0.2)
    check(state(client) == "D" and populated(), "it stays")
    check(read(f"/proc/{client}/wchan") == b"request_wait_answer", "its wait channel says why")
    check(os.stat(f"{connections}/{connection}").st_uid == UID, "the connection is the mounter's")
    check(write(f"{connections}/{connection}/abort", "1") == 0, "abort takes the write")
    until(lambda: not populated(), "it is gone")
    call(libc.umount2(place.encode(), 2), "umount")


def answer_init(daemon):
    request = os.read(daemon, 1 << 20)
    (unique,) = struct.unpack_from("Q", request, 8)
    body = struct.pack("IIIIHHIIHHI28x", 7, 31, 4096, 0, 12, 9, 4096, 1, 0, 0, 0)
    os.write(daemon, struct.pack("IiQ", 16 + len(body), 0, unique) + body)


@fact
def a_number_without_a_process_answers_esrch():
    pid = start()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    check(errno_of(lambda: os.kill(pid, 0)) == errno.ESRCH, "kill answers ESRCH")
    check(errno_of(lambda: read(f"/proc/{pid}/status")) == errno.ENOENT, "open answers ENOENT")


def signal_of(held, number):
    return errno_of(lambda: signal.pidfd_send_signal(held, number))


def fork_with_number(pid):
    """A child that waits for its end, with this very number (clone3 with set_tid)."""
    number = ctypes.c_int(pid)
    words = struct.pack("QQQQQQQQQQ", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(number), 1)
    child = call(libc.syscall(435, ctypes.create_string_buffer(words, len(words)), len(words)), "clone3")
    if child == 0:
        libc.alarm(LIFE_S)
        while True:
            libc.pause()
    children.append(child)
    return child


@fact
def a_held_process_is_signalled_alone():
    pid = start()
    held = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: state(pid) == "Z", "it is dead and not reaped")
    check(signal_of(held, signal.SIGKILL) == 0, "a dead one takes it")
    os.waitpid(pid, 0)
    check(fork_with_number(pid) == pid, "another one has the number")
    check(signal_of(held, signal.SIGKILL) == errno.ESRCH, "the signal answers ESRCH")
    time.sleep(0.1)
    check(state(pid) not in ("", "Z", "X"), "whoever has the number lives")


@fact
def a_zombie_leader_can_be_held():
    check(signal_of(os.pidfd_open(headless()), signal.SIGKILL) == 0, "the signal is sent")
    until(lambda: not populated(), "it is gone")


@fact
def a_thread_cannot_be_held():
    pid = headless()
    (thread,) = (int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid)
    check(errno_of(lambda: os.pidfd_open(thread)) in (errno.EINVAL, errno.ENOENT), "a thread cannot be held")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    check(errno_of(lambda: os.pidfd_open(pid)) == errno.ESRCH, "nobody can be held by a free number")


@fact
def a_chain_runs_into_newest_first():
    end = time.monotonic() + 20

    def hop():
        os.setresuid(UID, UID, UID)
        while time.monotonic() < end:
            if os.fork() > 0:
                os._exit(0)
            time.sleep(0.0003)

    founder = start(hop)
    os.waitpid(founder, 0)
    for _ in range(40):
        os.listdir("/proc")
        last = int(read("/proc/loadavg").split()[4])
        for pid in range(last, founder, -1):
            if errno_of(lambda: kill_if_mine(pid)) not in (0, errno.ENOENT, errno.ESRCH):
                raise SystemExit(f"not so: {pid} can be read")
        time.sleep(0.001)
        if not populated():
            check(time.monotonic() < end - 2, "it did not end by itself")
            return
    raise SystemExit("not so: the chain is caught within 40 passes")


def kill_if_mine(pid):
    if f"\nUid:\t{UID}\t".encode() in read(f"/proc/{pid}/status"):
        os.kill(pid, signal.SIGKILL)
