"""What Linux itself refuses to a worker, whatever Python code does: Landlock and seccomp.

The audit hook in worker.py sees what Python announces, and gives the better messages. This is
below it, and holds for what Python does not announce, too: files can be changed in the working
folder only, and read only there and where Python, its packages and the framework lie. Of the system
calls those are allowed that Python with NumPy needs to compute, to use threads, and to work with
files. Whatever else there is, or a later kernel may add, is refused: other processes, sockets,
signals to others, owners and attributes of files, memory that is no part of the process's own
(memfd, System V), priorities, limits, names of the host. Both need Linux (Landlock 5.13), neither
needs to be root. Elsewhere there is only the hook.

Landlock: https://docs.kernel.org/userspace-api/landlock.html; seccomp: seccomp(2).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # Landlock's system calls, the same on every processor
_READ = 1 << 2 | 1 << 3  # files, folders
_BITS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many kinds of access a version knows; later ones 16
_FILE = 1 << 1 | 1 << 2 | 1 << 14  # the kinds that make sense for a file
_NO_NEW_PRIVILEGES = 38
_CLONE_THREAD = 0x10000
_EPERM, _ENOSYS = 1, 38

# fmt: off
_PROCESSORS = {  # AUDIT_ARCH; calls that are looked at more closely; calls that are allowed
    "x86_64": (0xC000003E, {
        "seccomp": 317, "clone": 56, "clone3": 435, "tgkill": 234, "prlimit64": 302,
        "ioctl": 16, "fcntl": 72, "prctl": 157,
    }, {
        "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6,
        "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
        "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17,
        "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "pipe": 22, "select":
        23, "sched_yield": 24, "mremap": 25, "msync": 26, "mincore": 27, "madvise": 28,
        "dup": 32, "dup2": 33, "nanosleep": 35, "getpid": 39, "sendfile": 40, "exit":
        60, "uname": 63, "flock": 73, "fsync": 74, "fdatasync": 75, "truncate": 76,
        "ftruncate": 77, "getdents": 78, "getcwd": 79, "chdir": 80, "fchdir": 81,
        "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87,
        "symlink": 88, "readlink": 89, "umask": 95, "gettimeofday": 96, "getrlimit": 97,
        "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104,
        "geteuid": 107, "getegid": 108, "getppid": 110, "getpgrp": 111, "getgroups":
        115, "getpgid": 121, "getsid": 124, "rt_sigpending": 127, "rt_sigsuspend": 130,
        "sigaltstack": 131, "statfs": 137, "fstatfs": 138, "getpriority": 140, "gettid":
        186, "time": 201, "futex": 202, "sched_getaffinity": 204, "getdents64": 217,
        "set_tid_address": 218, "restart_syscall": 219, "fadvise64": 221,
        "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group":
        231, "epoll_wait": 232, "epoll_ctl": 233, "openat": 257, "mkdirat": 258,
        "newfstatat": 262, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat":
        266, "readlinkat": 267, "faccessat": 269, "pselect6": 270, "ppoll": 271,
        "set_robust_list": 273, "get_robust_list": 274, "epoll_pwait": 281, "fallocate":
        285, "eventfd2": 290, "epoll_create1": 291, "dup3": 292, "pipe2": 293, "preadv":
        295, "pwritev": 296, "getcpu": 309, "renameat2": 316, "getrandom": 318,
        "membarrier": 324, "copy_file_range": 326, "preadv2": 327, "pwritev2": 328,
        "statx": 332, "rseq": 334, "close_range": 436, "faccessat2": 439,
    }),
    "aarch64": (0xC00000B7, {
        "seccomp": 277, "clone": 220, "clone3": 435, "tgkill": 131, "prlimit64": 261,
        "ioctl": 29, "fcntl": 25, "prctl": 167,
    }, {
        "getcwd": 17, "eventfd2": 19, "epoll_create1": 20, "epoll_ctl": 21,
        "epoll_pwait": 22, "dup": 23, "dup3": 24, "flock": 32, "mkdirat": 34,
        "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "statfs": 43,
        "fstatfs": 44, "truncate": 45, "ftruncate": 46, "fallocate": 47, "faccessat":
        48, "chdir": 49, "fchdir": 50, "openat": 56, "close": 57, "pipe2": 59,
        "getdents64": 61, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev":
        66, "pread64": 67, "pwrite64": 68, "preadv": 69, "pwritev": 70, "sendfile": 71,
        "pselect6": 72, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "fstat": 80,
        "fsync": 82, "fdatasync": 83, "exit": 93, "exit_group": 94, "set_tid_address":
        96, "futex": 98, "set_robust_list": 99, "get_robust_list": 100, "nanosleep":
        101, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
        "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128,
        "sigaltstack": 132, "rt_sigsuspend": 133, "rt_sigaction": 134, "rt_sigprocmask":
        135, "rt_sigpending": 136, "rt_sigreturn": 139, "getpriority": 141, "times":
        153, "getpgid": 155, "getsid": 156, "getgroups": 158, "uname": 160, "getrusage":
        165, "umask": 166, "getcpu": 168, "gettimeofday": 169, "getpid": 172, "getppid":
        173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid":
        178, "sysinfo": 179, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222,
        "fadvise64": 223, "mprotect": 226, "msync": 227, "mincore": 232, "madvise": 233,
        "renameat2": 276, "getrandom": 278, "membarrier": 283, "copy_file_range": 285,
        "preadv2": 286, "pwritev2": 287, "statx": 291, "rseq": 293, "close_range": 436,
        "faccessat2": 439,
    }),
}
# Modes and dates stay as they are, and nobody is told: those who save or copy a file set them.
_PRETENDED = {
    "x86_64": (90, 91, 268, 452, 235, 261, 280, 132),  # chmod, fchmod, fchmodat, and the utime family
    "aarch64": (52, 53, 452, 88),
}
_ALLOWED = {  # by what stands first (prctl) or second: nobody is sent signals, no pipe grows
    "ioctl": (0x5401, 0x5413, 0x5421, 0x5450, 0x5451),  # terminals are asked for; close on exec
    "fcntl": (0, 1, 2, 3, 4, 5, 6, 7, 1030),  # copies, flags, locks
    "prctl": (15,),  # a thread's own name
}
# fmt: on


def close(folder: Path, readable: Iterable[Path]) -> tuple[str, ...]:
    """Shut this process in: it may change ``folder`` and read ``readable``. What was to be had.

    Returns:
        ``"landlock"`` and ``"seccomp"``, as far as the system has them. There is no way back.
    """
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return ()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return ()
    done = []
    if _landlock(libc, folder, readable):
        done.append("landlock")
    if _seccomp(libc):
        done.append("seccomp")
    return tuple(done)


def _landlock(libc: ctypes.CDLL, folder: Path, readable: Iterable[Path]) -> bool:
    version = libc.syscall(_CREATE, None, 0, 1)
    if version < 1:
        return False
    every = (1 << _BITS.get(version, 16)) - 1
    # kinds of access to files, to ports, to processes outside: what is named is refused
    wanted = struct.pack("QQQ", every, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = libc.syscall(_CREATE, ctypes.create_string_buffer(wanted), size, 0)
    if rules < 0:
        return False
    _allow(libc, rules, folder, every & ~1)  # all but to execute
    _allow(libc, rules, Path(os.devnull), every & (1 << 1 | 1 << 2))
    for path in readable:
        _allow(libc, rules, path, _READ)
    refused = libc.syscall(_RESTRICT, rules, 0)
    os.close(rules)
    return bool(refused == 0)


def _allow(libc: ctypes.CDLL, rules: int, path: Path, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # what is not there needs no rule
        return
    access = access if path.is_dir() else access & _FILE
    rule = ctypes.create_string_buffer(struct.pack("=Qi", access, place))
    libc.syscall(_ADD, rules, 1, rule, 0)
    os.close(place)


def _seccomp(libc: ctypes.CDLL) -> bool:
    known = _PROCESSORS.get(platform.machine())
    if known is None:
        return False
    arch, special, calls = known
    lines = _program(arch, special, calls.values(), _PRETENDED[platform.machine()])
    code = b"".join(struct.pack("HBBI", *line) for line in lines)
    buffer = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(lines), _address(buffer)))
    everybody = 1  # all threads of this process
    return bool(libc.syscall(special["seccomp"], 1, everybody, program) == 0)


def _address(buffer: ctypes.Array[ctypes.c_char]) -> int:
    return ctypes.addressof(buffer)


def _program(
    arch: int, special: dict[str, int], calls: Iterable[int], pretended: Iterable[int]
) -> list[tuple[int, int, int, int]]:
    """The filter in the words of BPF: (operation, steps if true, steps if false, constant)."""
    load, equal, any_bit, end = 0x20, 0x15, 0x45, 0x06
    number, architecture, first, second, third = 0, 4, 16, 24, 32  # places in struct seccomp_data
    allow, refuse = (end, 0, 0, 0x7FFF0000), (end, 0, 0, 0x00050000 | _EPERM)
    lines = [
        (load, 0, 0, architecture),
        (equal, 1, 0, arch),
        (end, 0, 0, 0x80000000),  # another instruction set than Python's: end the process
        (load, 0, 0, number),
        # its flags cannot be seen from here; libraries fall back to clone
        (equal, 0, 1, special["clone3"]),
        (end, 0, 0, 0x00050000 | _ENOSYS),
    ]
    for call in calls:
        lines += [(equal, 0, 1, call), allow]
    for call in pretended:
        lines += [(equal, 0, 1, call), (end, 0, 0, 0x00050000)]  # no error, and nothing done
    # a new thread, but no new process
    lines += [(equal, 0, 4, special["clone"]), (load, 0, 0, first)]
    lines += [(any_bit, 0, 1, _CLONE_THREAD), allow, refuse]
    # a signal to itself
    lines += [(equal, 0, 4, special["tgkill"]), (load, 0, 0, first)]
    lines += [(equal, 0, 1, os.getpid()), allow, refuse]
    # limits may be read, so there is no new one (both halves of the pointer are zero)
    lines += [(equal, 0, 6, special["prlimit64"]), (load, 0, 0, third), (equal, 0, 3, 0)]
    lines += [(load, 0, 0, third + 4), (equal, 0, 1, 0), allow, refuse]
    for name, values in _ALLOWED.items():
        one = [x for value in values for x in ((equal, 0, 1, value), allow)]
        place = first if name == "prctl" else second
        lines += [(equal, 0, len(one) + 2, special[name]), (load, 0, 0, place), *one, refuse]
    return [*lines, refuse]
