"""What Linux itself refuses to a worker, whatever Python code does: Landlock and seccomp.

The audit hook in worker.py sees what Python announces, and gives the better messages. This is
below it, and holds for what Python does not announce, too: files can be changed in the working
folder only, and read only there and where Python, its packages and the course lie; there are no
other processes, no sockets, no signals to others, and limits stay as they are. Both need Linux
(Landlock 5.13), neither needs to be root. Elsewhere there is only the hook.

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
_PROCESSORS = {  # AUDIT_ARCH, then system calls by number
    "x86_64": (0xC000003E, {
        "seccomp": 317, "clone": 56, "clone3": 435, "tgkill": 234, "prlimit64": 302,
        "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "socket": 41, "socketpair": 53,
        "connect": 42, "bind": 49, "kill": 62, "tkill": 200, "rt_sigqueueinfo": 129,
        "rt_tgsigqueueinfo": 297, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
        "io_uring_setup": 425, "bpf": 321, "mount": 165, "umount2": 166, "unshare": 272,
        "setns": 308, "pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424,
        "perf_event_open": 298, "userfaultfd": 323, "keyctl": 250, "add_key": 248,
        "request_key": 249, "chroot": 161, "setrlimit": 160, "init_module": 175,
        "finit_module": 313, "kexec_load": 246, "reboot": 169,
    }),
    "aarch64": (0xC00000B7, {
        "seccomp": 277, "clone": 220, "clone3": 435, "tgkill": 131, "prlimit64": 261,
        "execve": 221, "execveat": 281, "socket": 198, "socketpair": 199, "connect": 203,
        "bind": 200, "kill": 129, "tkill": 130, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240,
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "io_uring_setup": 425,
        "bpf": 280, "mount": 40, "umount2": 39, "unshare": 97, "setns": 268, "pidfd_open": 434,
        "pidfd_getfd": 438, "pidfd_send_signal": 424, "perf_event_open": 241, "userfaultfd": 282,
        "keyctl": 219, "add_key": 217, "request_key": 218, "chroot": 51, "setrlimit": 164,
        "init_module": 105, "finit_module": 273, "kexec_load": 104, "reboot": 142,
    }),
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
    arch, calls = known
    lines = _program(arch, dict(calls))
    code = b"".join(struct.pack("HBBI", *line) for line in lines)
    buffer = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(lines), _address(buffer)))
    everybody = 1  # all threads of this process
    return bool(libc.syscall(calls["seccomp"], 1, everybody, program) == 0)


def _address(buffer: ctypes.Array[ctypes.c_char]) -> int:
    return ctypes.addressof(buffer)


def _program(arch: int, calls: dict[str, int]) -> list[tuple[int, int, int, int]]:
    """The filter in the words of BPF: (operation, steps if true, steps if false, constant)."""
    load, equal, at_least, any_bit, end = 0x20, 0x15, 0x35, 0x45, 0x06
    number, architecture, first, third = 0, 4, 16, 32  # where they stand in struct seccomp_data
    refuse = (end, 0, 0, 0x00050000 | _EPERM)
    again = (load, 0, 0, number)
    thread, own, limits = calls.pop("clone"), calls.pop("tgkill"), calls.pop("prlimit64")
    newer = calls.pop("clone3")  # its flags cannot be seen from here; libraries fall back to clone
    lines = [
        (load, 0, 0, architecture),
        (equal, 1, 0, arch),
        (end, 0, 0, 0x80000000),  # another instruction set than Python's: end the process
        again,
        (at_least, 0, 1, 0x40000000),  # x32's numbers
        refuse,
        (equal, 0, 1, newer),
        (end, 0, 0, 0x00050000 | _ENOSYS),
    ]
    # a new thread, but no new process
    lines += [(equal, 0, 4, thread), (load, 0, 0, first), (any_bit, 1, 0, _CLONE_THREAD)]
    lines += [refuse, again]
    # a signal to itself
    lines += [(equal, 0, 4, own), (load, 0, 0, first), (equal, 1, 0, os.getpid()), refuse, again]
    # limits may be read, so there is no new one (both halves of the pointer are zero)
    lines += [(equal, 0, 6, limits), (load, 0, 0, third), (equal, 0, 2, 0)]
    lines += [(load, 0, 0, third + 4), (equal, 1, 0, 0), refuse, again]
    for name, call in calls.items():
        if name != "seccomp":
            lines += [(equal, 0, 1, call), refuse]
    return [*lines, (end, 0, 0, 0x7FFF0000)]
