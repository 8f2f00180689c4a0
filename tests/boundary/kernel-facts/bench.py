# SPDX-License-Identifier: Apache-2.0
# The bench on which kernel facts are shown: a cgroup of its own, children that go into it, and everything cleared away
# before and after, by both means of killing.

import ctypes
import errno
import os
import platform
import signal
import threading
import time

BENCH = "/sys/fs/cgroup/lab-facts"
UID = 45123
EXIT_THREAD = 93 if platform.machine() == "aarch64" else 60
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
# Every payload ends by itself after this.
LIFE_S = 60

libc = ctypes.CDLL(None, use_errno=True)
facts = {}
children = []


def fact(show):
    """The function's name is the fact's, with hyphens."""
    facts[show.__name__.replace("_", "-")] = show
    return show


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


def until(is_so, what, limit_s=30.0):
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
