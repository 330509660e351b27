"""The process in which one answer runs. Its parent, course/marking/supervisor.py, believes little.

The job comes in as one line of JSON. Reports go out through a copy of standard output that the
answer does not have by name, each signed with a key from the job; what the answer itself prints
goes nowhere. The answer's definitions are loaded behind two barriers. An audit hook, which Python has
no way to take off again, refuses to write, rename or delete outside the working folder, to start
processes, to use the network, and to look at the frames of the running program. Below it, on
Linux, course/marking/sandbox.py has the system refuse the same.

The modules that judge are forgotten before the answer is loaded: what it imports under their names
are copies, and patching those patches nothing. After the answer the same checks run over the
reference and over some mutants. They have to come out as they always do, so an answer that tampered
with the checks or the framework gives itself away.
"""

from __future__ import annotations

import ast
import ctypes
import enum
import functools
import hashlib
import importlib
import json
import linecache
import os
import sys
import time
import traceback
import typing
from collections import namedtuple
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from pathlib import Path
from types import CodeType
from typing import Any

from course import borrowed, deadline, judge
from course.contents import ROOT
from course.marking import execute, sandbox
from course.records import Exercise
from toytorch.core import first_call

# fmt: off
_FILES = {  # events of changing files, allowed in the working folder, and how many paths they name
    "os.chflags": 1, "os.chmod": 1, "os.chown": 1, "os.lchown": 1, "os.link": 2, "os.mkdir": 1,
    "os.remove": 1, "os.removexattr": 1, "os.rename": 2, "os.rmdir": 1, "os.setxattr": 1,
    "os.symlink": 2, "os.truncate": 1, "os.utime": 1, "shutil.chown": 1, "shutil.copyfile": 2,
    "shutil.copytree": 2, "shutil.move": 2, "shutil.rmtree": 1,
}
# whose paths may be relative to open folders, given by number at the end
_BY_FOLDER = {"os.chmod", "os.chown", "os.mkdir", "os.remove", "os.rmdir", "os.symlink", "os.utime"}
_TWO_FOLDERS = {"os.link", "os.rename"}
_REFUSED = {  # events of reaching out of the process, or into the judge
    "_winapi.CreateProcess", "code.__new__", "function.__new__", "gc.get_objects",
    "gc.get_referents", "gc.get_referrers", "os.exec", "os.fork", "os.forkpty", "os.kill",
    "os.killpg", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "pty.spawn",
    "resource.prlimit", "resource.setrlimit", "signal.pthread_kill", "subprocess.Popen",
    "sys._current_exceptions", "sys._current_frames", "sys.addaudithook",
    "sys.monitoring.register_callback", "sys.setprofile", "sys.settrace", "webbrowser.open",
}
# fmt: on
_REFUSED_KINDS = ("ctypes.", "fcntl.", "socket.", "syslog.", "winreg.")
_FRAMES = {"ag_frame", "cr_frame", "gi_frame", "tb_frame"}


def main() -> None:
    """Do one job and end."""
    job = json.loads(sys.stdin.readline())
    report = _reporter(job.pop("key"))
    found = _prepare(job)
    hook = _audit_hook(Path.cwd(), [Path(p) for p in job["private"]])
    held = sandbox.close(Path.cwd(), _readable())
    report("ready", [list(held)], "", 0.0)
    sys.addaudithook(hook)
    # ended in here, a loop costs only the checks that come after it; the parent ends the process
    found.limit = min(found.limit, 0.75 * job["seconds"])
    if job["pieces"]:
        report("answer", *_trial(found, lambda: _load(job["pieces"], found.function)))
    for name in job["controls"]:
        value = _variant(found, name).value
        report(name, *_trial(found, functools.partial(_itself, value)))
    os._exit(0)


def _reporter(key: str) -> Callable[[str, list[list[str]], str, float], None]:
    """A way to report that printing does not have.

    All it calls is bound here and written in C, so that patching modules does not reach it.
    """
    private = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    quoted, digest, write, seal = encode_basestring_ascii, hashlib.sha256, os.write, key.encode()
    count = 0

    def report(name: str, outcomes: list[list[str]], wrong: str, seconds: float) -> None:
        nonlocal count
        count += 1
        rows = ", ".join(["[" + ", ".join([quoted(x) for x in row]) + "]" for row in outcomes])
        text = f'{{"is": {quoted(name)}, "count": {count}, "outcomes": [{rows}], '
        text += f'"wrong": {quoted(wrong)}, "seconds": {float(seconds):.3f}}}'
        data = text.encode("ascii")
        data = digest(seal + data + seal).hexdigest().encode("ascii") + b" " + data + b"\n"
        while data:
            data = data[write(private, data) :]

    return report


def _readable() -> list[Path]:
    """Where Python, its packages and the course lie."""
    packages = [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    places = [sys.prefix, sys.base_prefix, *packages, "/usr", "/lib", "/lib64", "/dev/urandom"]
    return [ROOT / "toytorch", ROOT / "course", *map(Path, places)]


def _prepare(job: dict[str, Any]) -> Exercise:
    """Everything that has to be opened or measured before the barriers go up."""
    # A compiler would open libraries and ask for addresses, which the audit hook refuses, and an answer
    # could need it in any call, the first large one or the hundredth. The framework runs on NumPy
    # in here: start.py sets its switch, and this holds wherever it forgets to look at that.
    sys.modules["llvmlite"] = None  # type: ignore[assignment]
    module = importlib.import_module(f"course.exercises.ch{job['chapter']:02d}")
    found = next(
        x for x in vars(module).values() if isinstance(x, Exercise) and x.name == job["exercise"]
    )
    for name in job["controls"]:
        _variant(found, name).value  # noqa: B018 (its source is read now)
    ctypes.pythonapi.PyThreadState_SetAsyncExc  # noqa: B018 (looked up now, as the audit hook forbids it)
    deadline.run(lambda: None, 1.0)
    judge.run_checks(found, found.start.value)  # what the checks import and compile
    _limit(job["megabytes"])
    for name in [name for name in sys.modules if name.split(".")[0] == "course"]:
        del sys.modules[name]
    return found


def _variant(found: Exercise, name: str) -> Any:
    return found.answer if name == "reference" else found.mutants[int(name)]


def _itself(value: Any) -> Any:
    return value


def _trial(found: Exercise, make: Callable[[], Any]) -> tuple[list[list[str]], str, float]:
    """Run the checks over what ``make`` gives; outcomes as plain data, what went wrong, seconds."""
    begun = time.monotonic()
    made: list[Any] = []
    wrong: list[str] = []

    def load() -> None:
        try:
            made.append(make())
        except deadline.OutOfTime:
            raise
        except BaseException as error:  # sys.exit while loading, too
            wrong.append(judge.said(error))

    if not deadline.run(load, found.limit):
        wrong.append(f"loading it took longer than {found.limit:g} s")
    outcomes = [] if wrong else judge.run_checks(found, made[0])
    rows = [[o.check, o.kind, o.given, o.wanted, o.got, o.where] for o in outcomes]
    return rows, "".join(wrong), time.monotonic() - begun


def _load(pieces: list[list[Any]], function: str) -> Any:
    """Execute the answer's statements as the module ``__main__``, where a notebook has them."""
    space = vars(sys.modules["__main__"])
    space.clear()
    space.update({"__name__": "__main__", "__builtins__": __builtins__})
    exec("def display(*shown, **how): pass", space)  # Jupyter's; its globals are the answer's own
    parts = []
    for label, source, positions in pieces:
        linecache.cache[label] = (len(source), None, source.splitlines(True), label)
        body = ast.parse(source).body
        parts += [(label, body[position]) for position in positions]
    execute.run(parts, space)
    return space[function]


# -- the audit hook --------------------------------------------------------------------------------


def _limit(megabytes: int) -> None:
    """No more memory than this on top of what the framework takes, where the system can say so."""
    try:
        import resource
    except ImportError:  # Windows: the parent watches
        return
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (OSError, ValueError):  # macOS: the parent watches
        pass
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 2**20, 64 * 2**20))


def _audit_hook(folder: Path, private: list[Path]) -> Callable[[str, tuple[Any, ...]], None]:
    """The audit hook. Names it needs are bound here, so that patching modules does not reach it."""
    inside = os.path.realpath(folder)
    shut = [os.path.realpath(path) for path in private]
    realpath, join, isdir, separator = os.path.realpath, os.path.join, os.path.isdir, os.sep
    fspath, fsdecode, devnull, readlink = os.fspath, os.fsdecode, os.devnull, os.readlink
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    files, by_folder, refused = dict(_FILES), frozenset(_BY_FOLDER), frozenset(_REFUSED)
    kinds, frames, getframe = _REFUSED_KINDS, frozenset(_FRAMES), sys._getframe
    # who may ask for frames: the panels for a line to show, Python for a name of a module, and
    # the checks for who called what an exercise asks the learner to write
    lookers = {namedtuple.__code__, judge.frames.__code__, traceback.extract_stack.__code__}
    lookers.add(borrowed.called_by_answer.__code__)
    framework = str(ROOT / "toytorch") + separator
    # the framework writes functions of ops when they are first called (`toytorch.core.first_call`)
    unwritten, writes = first_call.STUB_CODE, first_call.Generated.ready.__code__
    for home in (typing, enum.EnumMeta):
        lookers |= {f.__code__ for f in vars(home).values() if type(_code(f)) is CodeType}

    def within(path: Any, place: str, base: str = "") -> bool:
        full = realpath(join(base, fsdecode(fspath(path))))
        return full == place or full.startswith(place + separator)

    def check_change(event: str, args: tuple[Any, ...]) -> None:
        paths, folders = args[: files[event]], [a for a in args[files[event] :] if type(a) is int]
        base = ""
        if event in by_folder and folders[-1:] != [-1]:  # the path is relative to an open folder
            base = readlink(f"/proc/self/fd/{folders[-1]}")
        elif event in _TWO_FOLDERS and folders[-2:] != [-1, -1]:
            raise PermissionError(f"an answer may not change files ({event})")
        for path in paths:
            if type(path) is int and event == "os.truncate":
                continue  # an open file; only those inside are open for writing
            if type(path) is int or not within(path, inside, base):
                raise PermissionError(f"an answer may not change files ({event})")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "builtins.id":  # by far the most frequent
            return
        if event == "object.__getattr__" or event == "sys._getframe":
            if event[0] == "o" and args[1] not in frames:
                return
            if event[0] == "s" and args[0].f_code is hook.__code__:
                return
            looker = getframe(0).f_back
            if looker is None or looker.f_code in lookers:
                return
            if not looker.f_code.co_filename.startswith(framework):
                raise PermissionError("an answer may not look at frames")
        elif event == "open":
            path, mode, flags = args
            if isinstance(path, int) or path == devnull or within(path, inside):
                return
            if (mode and set(mode) & set("wax+")) or flags & writing:
                raise PermissionError(f"an answer may not write to {path}")
            # from an open folder outside, files could be reached by names that say nothing
            if (mode is None and isdir(path)) or any(within(path, place) for place in shut):
                raise PermissionError(f"an answer may not read {path}")
        elif event in files:
            check_change(event, args)
        elif event in refused or event.startswith(kinds):
            raise PermissionError(f"an answer may not use {event}")
        elif event == "object.__setattr__" and args[1] == "__code__":
            looker = getframe(0).f_back
            if args[0].__code__ is unwritten and looker is not None and looker.f_code is writes:
                return
            raise PermissionError("an answer may not exchange the code of functions")

    return hook


def _code(value: Any) -> Any:
    return getattr(value, "__code__", None)
