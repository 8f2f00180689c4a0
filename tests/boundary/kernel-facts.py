# SPDX-License-Identifier: Apache-2.0
# The kernel facts that the simulation rests on, each shown on the kernel that this runs on, under the name that it has in
# src/stop/simulation/facts.ts. As root on a lab host: `kernel-facts.py NAME`, or `--list` for the names.

import ctypes
import errno
import os
import platform
import select
import signal
import struct
import sys
import threading
import time

BENCH = "/sys/fs/cgroup/lab-facts"
UID = 45123
EXIT_THREAD = 93 if platform.machine() == "aarch64" else 60
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
LIFE_S = 60

libc = ctypes.CDLL(None, use_errno=True)
facts = {}
children = []


def fact(show):
    facts[show.__name__.replace("_", "-")] = show
    return show


# --- the bench ---------------------------------------------------------------------------------------------------------


def check(is_so, what):
    if not is_so:
        raise SystemExit(f"not so: {what}")


def call(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def read(path):
    with open(path, "rb", buffering=0) as file:
        return file.read(65536)


def write(path, text):
    """0, or the errno of opening or writing."""
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except OSError as error:
        return error.errno
    try:
        os.write(descriptor, text.encode())
        return 0
    except OSError as error:
        return error.errno
    finally:
        os.close(descriptor)


def errno_of(act):
    try:
        act()
        return 0
    except OSError as error:
        return error.errno


def until(is_so, what, limit_s=5.0):
    end = time.monotonic() + limit_s
    while not is_so():
        check(time.monotonic() < end, f"{what} (not within {limit_s} s)")
        time.sleep(0.002)


def cgroup(name=""):
    path = BENCH + name
    os.makedirs(path, exist_ok=True)
    return path


def populated(name=""):
    return b"populated 1" in read(f"{BENCH}{name}/cgroup.events")


def status(pid, field):
    for line in read(f"/proc/{pid}/status").decode("latin-1").split("\n"):
        if line.startswith(field + ":"):
            return line[len(field) + 1 :].strip()
    return ""


def state(pid):
    return status(pid, "State")[:1]


def start(work=None, where="", ready_after=False):
    """A child in a cgroup of the bench that says when it is there, does its work, and then waits for its end."""
    cgroup(where)
    end, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(LIFE_S)
            check(write(f"{BENCH}{where}/cgroup.procs", "0") == 0, "a child enters its cgroup")
            say = lambda: os.write(ready, b"x")
            if not ready_after:
                say()
            if work is not None:
                work(*([say] if ready_after else []))
            while True:
                time.sleep(1)
        finally:
            os._exit(70)
    os.close(ready)
    children.append(pid)
    check(os.read(end, 1) == b"x", "a child gets ready")
    os.close(end)
    return pid


def become_headless(say, then=None):
    """Ends the main thread alone; `then` is done by the one that stays. `say` comes once the leader is a zombie."""

    def stay():
        until(lambda: state(os.getpid()) == "Z", "the leader is a zombie")
        if then is not None:
            then()
        say()
        while True:
            time.sleep(1)

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=stay).start()
    libc.syscall(EXIT_THREAD, 0)


def headless(where="", then=None):
    return start(lambda say: become_headless(say, then), where, ready_after=True)


def deaf(where=""):
    def work(say):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say()

    return start(work, where, ready_after=True)


def is_gone(pid):
    return errno_of(lambda: read(f"/proc/{pid}/status")) in (errno.ENOENT, errno.ESRCH)


def clear():
    """Thaws and ends everything below the bench, by both means, and removes it."""
    if not os.path.isdir(BENCH):
        return
    write(f"{BENCH}/cgroup.freeze", "0")
    for _ in range(200):
        write(f"{BENCH}/cgroup.kill", "1")
        for pid in children:
            errno_of(lambda: os.kill(pid, signal.SIGKILL))
            errno_of(lambda: os.waitpid(pid, os.WNOHANG))
        if not populated():
            break
        time.sleep(0.01)
    remove_tree()


def remove_tree():
    # Step by step: a path may be longer than PATH_MAX.
    os.chdir(BENCH)
    depth = 0
    while True:
        below = [entry.name for entry in os.scandir(b".") if entry.is_dir(follow_symlinks=False)]
        if below:
            os.chdir(below[0])
            depth += 1
            continue
        here = os.readlink(b"/proc/self/cwd") if depth < 12 else None
        name = os.path.basename(here) if here is not None else None
        inode = os.stat(b".").st_ino
        os.chdir(b"..")
        for entry in os.scandir(b"."):
            if name == entry.name or (name is None and entry.inode() == inode):
                until(lambda: errno_of(lambda: os.rmdir(entry.name)) in (0, errno.ENOENT), "an empty cgroup can be removed")
                break
        if depth == 0:
            return
        depth -= 1


# --- killing -----------------------------------------------------------------------------------------------------------


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


# --- cgroups -----------------------------------------------------------------------------------------------------------


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


# --- reading -----------------------------------------------------------------------------------------------------------


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


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(facts))
        return
    show = facts.get(sys.argv[1] if len(sys.argv) == 2 else "")
    if show is None:
        raise SystemExit(f"usage: {sys.argv[0]} --list | NAME")
    clear()
    cgroup()
    try:
        show()
    finally:
        clear()
    print("so it is")


main()
