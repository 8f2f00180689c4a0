# SPDX-License-Identifier: Apache-2.0
# Tries acts, each in a process of its own, and tells of each what the kernel said. Whoever runs it is whose reach is tried:
# root, an operator, a plain process of the account, a session. Acts come as JSON on standard input, a name for each and
# a verb with its words; the answers go out as JSON: "done", "done: DETAIL", the name of an error, or how its process ended.

import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIMIT_S = 30
PROBE = ".lab-probe"


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def mounted(source, target, kind, flags, data=None):
    encode = lambda text: None if text is None else text.encode()
    checked(libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data)))


def in_own_namespaces():
    """A user namespace in which the caller is root, and a mount namespace of it."""
    uid, gid = os.getuid(), os.getgid()
    checked(libc.unshare(0x10000000 | 0x00020000))
    for name, text in [("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")]:
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


# Files. None of these changes what it reaches: what was made is taken away, what was moved is moved back.


def read(path):
    """The first bytes of a file, or how many names a directory shows."""
    try:
        with open(path, "rb", buffering=0) as file:
            return repr(file.read(24))
    except IsADirectoryError:
        return f"{len(os.listdir(path))} names"


def names(path):
    return " ".join(sorted(os.listdir(path)))


def look(path):
    os.lstat(path)


def opened(path):
    """Opened for writing, nothing written."""
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))


def append(path, text):
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, text.encode())


def put(path, text):
    """One write to a file that is there; SELF stands for this process."""
    descriptor = os.open(path, os.O_WRONLY)
    os.write(descriptor, text.replace("SELF", str(os.getpid())).encode())


def create(directory):
    path = f"{directory}/{PROBE}{os.getpid()}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755))
    os.unlink(path)


def plant(path, text):
    """A file with this content, which stays; directories above it are made."""
    try:
        os.makedirs(os.path.dirname(path))
    except FileExistsError:
        pass  # Also where the caller may not look at it, which the next line tells.
    with open(path, "x") as file:
        file.write(text)
    os.chmod(path, 0o755)


def mkdir(path):
    os.mkdir(path)
    os.rmdir(path)


def rename(path):
    os.rename(path, path + PROBE)
    os.rename(path + PROBE, path)


def symlink(path):
    """A link of this name to a program of the caller's choice, which stays."""
    os.symlink("/bin/true", path)


def link(path, directory):
    os.link(path, f"{directory}/{PROBE}{os.getpid()}")
    os.unlink(f"{directory}/{PROBE}{os.getpid()}")


def over(path):
    """A file of the caller's moved over this one, which is gone then."""
    made = f"{os.path.dirname(path)}/{PROBE}{os.getpid()}"
    os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755))
    os.rename(made, path)


def unlink(path):
    os.unlink(path)


def chmod(path):
    os.chmod(path, os.stat(path).st_mode & 0o7777)


def listen(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.unlink(path)


def overmount(path):
    """Another file mounted over it, in the host's own mount namespace as far as the caller has it."""
    mounted("/etc/hostname", path, None, 4096)
    checked(libc.umount2(path.encode(), 2))


def overmount_in_own_namespace(path):
    in_own_namespaces()
    mounted("/etc/hostname", path, None, 4096)


# Programs.


def execute(*argv):
    """The system call alone: what becomes of the program does not matter, and nothing is searched for."""
    os.execv(argv[0], argv)


def ran(*argv):
    result = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S)
    if result.returncode:
        text = " ".join((result.stderr or result.stdout).decode(errors="replace").split())[:300]
        raise RuntimeError(f"exit {result.returncode}: {text}")
    return result.stdout.decode(errors="replace").strip()[:400]


def become_root():
    os.setresuid(0, 0, 0)


def become(uid):
    os.setresuid(int(uid), int(uid), int(uid))


# Processes.


def trace(pid):
    checked(libc.ptrace(0x4206, int(pid), None, None))


def memory(pid):
    os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))


def sent(pid, number):
    os.kill(int(pid), int(number))


def descriptor(pid, number):
    pidfd = checked(libc.syscall(434, int(pid), 0))
    checked(libc.syscall(438, pidfd, int(number), 0))


def limits(pid):
    """Its limits read and set as they are."""
    import resource

    resource.prlimit(int(pid), resource.RLIMIT_NOFILE, resource.prlimit(int(pid), resource.RLIMIT_NOFILE))


def nice(pid):
    os.setpriority(os.PRIO_PROCESS, int(pid), os.getpriority(os.PRIO_PROCESS, int(pid)))


def processes_of(uid):
    """The pids of this number that can be seen, threads of nobody left out."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == int(uid):
                found.append(name)
        except FileNotFoundError:
            continue
    if not found:
        raise OSError(errno.ESRCH, "none")
    return " ".join(found)


def entered(pid, kind):
    namespace = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
    checked(libc.setns(namespace, 0))


# Sockets, terminals.


def connect(path):
    """To a socket, by its path or, after an @, its abstract name; of whichever type it is."""
    address = "\0" + path[1:] if path.startswith("@") else path
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(address)
            return
        except OSError as error:
            if error.errno != errno.EPROTOTYPE:
                raise
    raise OSError(errno.EPROTOTYPE, path)


def agent(path):
    """Asks an agent of ssh for its keys (the protocol's request 11; its answer is 12)."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.sendall(struct.pack(">IB", 1, 11))
    answer = client.recv(5)
    return f"answer {answer[4]}"


def journal(text, *fields):
    """An entry by the journal's own protocol, with fields of the caller's choice."""
    lines = [f"MESSAGE={text}", *fields]
    client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    client.sendto("\n".join(lines + [""]).encode(), "/run/systemd/journal/socket")


def syslog(text):
    """A line as the classical protocol has it, with the name and number of somebody else in it."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    client.sendto(f"<13>ai-tools-stop[1]: {text}".encode(), "/dev/log")


def stdout_of_service(text, unit):
    """A stream to the journal that says of itself whose output it is."""
    client = socket.socket(socket.AF_UNIX)
    client.connect("/run/systemd/journal/stdout")
    client.sendall(f"ai-tools-stop\n{unit}\n6\n0\n0\n0\n0\n{text}\n".encode())
    time.sleep(0.3)


def as_pid_1(text):
    """A datagram whose credentials say that PID 1 and root sent it."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    credentials = struct.pack("3i", 1, 0, 0)
    message = f"MESSAGE={text}\nSYSLOG_IDENTIFIER=ai-tools-stop\n".encode()
    client.sendmsg(
        [message],
        [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials)],
        0,
        "/run/systemd/journal/socket",
    )


def type_into(path):
    terminal = os.open(path, os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(terminal, termios.TIOCSTI, b"#")


# Cgroups.


def cgroup():
    """The line of the one hierarchy, whatever else this machine has."""
    with open("/proc/self/cgroup") as file:
        return [line for line in file.read().split("\n") if line.startswith("0::")][0]


def moved(directory):
    """This process into another cgroup."""
    put(f"{directory}/cgroup.procs", "SELF")
    return cgroup()


def below(directory):
    """This process into a new cgroup below that one."""
    path = f"{directory}/lab-below-{os.getpid()}"
    os.mkdir(path)
    return moved(path)


def cloned_into(directory):
    """A child that begins its life in another cgroup (clone3 with CLONE_INTO_CGROUP)."""
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    arguments = struct.pack("11Q", 0x200000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, place)
    child = libc.syscall(435, arguments, len(arguments))
    if child == 0:
        os._exit(0)
    os.waitpid(checked(child), 0)


def below_in_own_namespaces():
    """A new cgroup below the caller's, by a mount of its own of the hierarchy, as root of a user namespace."""
    in_own_namespaces()
    checked(libc.unshare(0x02000000))
    mounted("none", "/mnt", "cgroup2", 0)
    os.mkdir(f"/mnt/lab-own-{os.getpid()}")
    os.rmdir(f"/mnt/lab-own-{os.getpid()}")


def more_files():
    """One open file more than its own hard limit admits."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard + 1))


verbs = {
    function.__name__: function
    for function in [
        *(read, names, look, opened, append, put, create, plant, mkdir, rename, symlink, link, over, unlink, chmod),
        *(listen, overmount, overmount_in_own_namespace, execute, ran, become_root, become),
        *(trace, memory, sent, descriptor, limits, nice, processes_of, entered),
        *(connect, agent, journal, syslog, stdout_of_service, as_pid_1, type_into, cgroup, moved, below),
        *(cloned_into, below_in_own_namespaces, more_files),
    ]
}


def answer_of(verb, words):
    if verb not in verbs:
        return f"no such verb: {verb}"
    try:
        detail = verbs[verb](*words)
        return "done" if detail is None else f"done: {detail}"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    except Exception as error:
        return str(error)


def attempted(verb, words):
    """A program that takes the place of the act's process closes the pipe without a word: then it was executed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.set_inheritable(writer, False)
        os.close(reader)
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.write(writer, answer_of(verb, words).encode())
        os._exit(0)
    os.close(writer)
    text, deadline = b"", time.monotonic() + LIMIT_S
    while select.select([reader], [], [], max(0, deadline - time.monotonic()))[0]:
        part = os.read(reader, 4096)
        if not part:
            break
        text += part
    else:
        os.kill(child, signal.SIGKILL)
        text = b"hung"
    os.close(reader)
    status = os.waitpid(child, 0)[1]
    if text:
        return text.decode(errors="replace")
    if os.WIFSIGNALED(status):
        return f"killed by {os.WTERMSIG(status)}"
    return "done: executed"


def attempt_all(acts):
    return {name: attempted(verb, words) for name, (verb, *words) in acts.items()}


def serve(directory):
    """Answers what is asked in files of this directory until it is told to end: for acts at a moment."""
    number = 1
    while True:
        ask, answer = f"{directory}/ask-{number}", f"{directory}/answer-{number}"
        if not os.path.exists(ask):
            time.sleep(0.02)
            continue
        with open(ask) as file:
            acts = json.load(file)
        if acts is None:
            return
        with open(answer + ".part", "w") as file:
            json.dump(attempt_all(acts), file)
        os.rename(answer + ".part", answer)
        number += 1


if len(sys.argv) > 2 and sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    json.dump(attempt_all(json.load(sys.stdin)), sys.stdout)
