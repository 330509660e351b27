"""The process in which one answer runs. It knows what is called with what, and not what is right.

The job comes in as one line of JSON, with the text of the checks from which all that is expected
was taken (course/marking/driver.py). For each case a line goes out, with what the answer came to as
plain data; the process of course/marking/referee.py judges it. So nothing in here decides anything:
whoever takes this process over can send other data, and would have to know which is right.

Lines go out through a copy of standard output; what the answer itself prints goes nowhere. The
answer's definitions are loaded behind two barriers. An audit hook, which Python has no way to take
off again, refuses to write, rename or delete outside the working folder, to start processes, to use
the network, and to look at the frames of the running program. Below it, on Linux,
course/marking/sandbox.py has the system refuse the same.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import enum
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import json
import linecache
import os
import sys
import threading
import time
import traceback
import typing
from collections import namedtuple
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from course import borrowed, deadline, running
from course.contents import ROOT
from course.marking import execute, plain, sandbox
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
    talk = _Talk()
    job = json.loads(talk.line())
    found = _prepare(job)
    hook = _audit_hook(Path.cwd(), [Path(p) for p in job["private"]])
    held = sandbox.close(Path.cwd(), _readable())
    talk.tell("ready", *held)
    sys.addaudithook(hook)
    # ended in here, a loop costs only the checks that come after it; the parent ends the process
    found.limit = job["limit"]
    _answer(found, job, talk)
    os._exit(0)


class _Talk:
    """Lines to the process that judges, and its replies, on files that the answer has no names for."""

    def __init__(self) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        os.close(nowhere)
        self._dumps, self._write, self._read = json.JSONEncoder().encode, os.write, os.read

    def line(self) -> str:
        """The job."""
        parts = []
        while not parts or not parts[-1].endswith(b"\n"):
            part = self._read(self._in, 2**16)
            if not part:
                os._exit(1)  # nobody is there any more
            parts.append(part)
        return b"".join(parts).decode()

    def tell(self, *parts: Any, value: str = "null") -> None:
        """Send a line."""
        data = f"{self._dumps(parts)}\t{value}\n".encode("ascii", "replace")
        while data:
            data = data[self._write(self._out, data) :]

    def on(self) -> bool:
        """Whether the case that was told of goes on."""
        said = self._read(self._in, 2)
        if not said:
            os._exit(0)
        return said == b"+\n"


def _readable() -> list[Path]:
    """Where Python, its packages and the framework lie. The course does not belong to it."""
    packages = [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    places = [sys.prefix, sys.base_prefix, *packages, "/usr", "/lib", "/lib64", "/dev/urandom"]
    return [ROOT / "toytorch", *map(Path, places)]


def _prepare(job: dict[str, Any]) -> Exercise:
    """Everything that has to be opened or measured before the barriers go up."""
    # A compiler would open libraries and ask for addresses, which the audit hook refuses, and an answer
    # could need it in any call, the first large one or the hundredth. The framework runs on NumPy
    # in here: start.py sets its switch, and this holds wherever it forgets to look at that.
    sys.modules["llvmlite"] = None  # type: ignore[assignment]
    texts = _Texts(job["drivers"], job["package"])
    sys.meta_path.insert(0, texts)
    module = importlib.import_module(job["module"])
    found = next(
        x for x in vars(module).values() if isinstance(x, Exercise) and x.name == job["exercise"]
    )
    ctypes.pythonapi.PyThreadState_SetAsyncExc  # noqa: B018 (looked up now, as the audit hook forbids it)
    deadline.run(lambda: None, 1.0)
    importlib.import_module("course.data")
    for check in found.checks:  # what the first case of each imports and generates
        with contextlib.suppress(Exception):
            for case in itertools.islice(check.cases(_Nothing), 1):
                running.run(next(case.steps()), _Nothing)
    _limit(job["megabytes"])
    _forget_the_course()
    return found


class _Nothing:
    """Stands in for an answer while things are made ready."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError  # as an untouched stub: what surrounds the call is still loaded


def _forget_the_course() -> None:
    """Leave of the course what answers may import, ``course.data``, and none of its ways."""
    data = sys.modules["course.data"]
    for name in [name for name in sys.modules if name.split(".")[0] == "course"]:
        del sys.modules[name]
    course: Any = ModuleType("course")
    course.__path__, course.data = [], data
    sys.modules.update({"course": course, "course.data": data})
    # the finder of the learner's own package knows the course
    sys.meta_path[:] = [f for f in sys.meta_path if type(f).__module__ != "course.package"]


class _Texts(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports the checks, and the files of ``mytorch`` that an answer may stand on, from texts."""

    def __init__(self, drivers: dict[str, str], package: dict[str, list[str]]) -> None:
        self.texts = dict(drivers)
        self.names = {name: file for file, (name, _) in package.items()}
        self.texts |= {f"mytorch.{file}": text for file, (_, text) in package.items()}
        homes = {name.rpartition(".")[0] for name in drivers} | {"course.exercises", "mytorch"}
        self.homes = homes

    def find_spec(
        self, fullname: str, path: Sequence[Any] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """What is in the job is found here; what else begins like it is nowhere."""
        if fullname in self.homes:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if fullname in self.texts:
            return importlib.util.spec_from_loader(fullname, self)
        if fullname.split(".")[0] == "mytorch" or fullname.startswith("course.exercises"):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None

    def get_source(self, fullname: str) -> str:
        return self.texts.get(fullname, "")

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name == "mytorch":
            module.__getattr__ = self._of_package  # type: ignore[method-assign]
        place = f"{ROOT / 'course'}{os.sep}{name}" if name.startswith("course") else f"<{name}>"
        exec(compile(self.get_source(name), place, "exec"), vars(module))

    def _of_package(self, name: str) -> Any:
        if name not in self.names:
            raise AttributeError(f"mytorch has no {name}")
        return getattr(importlib.import_module(f"mytorch.{self.names[name]}"), name)


# -- the answer -----------------------------------------------------------------------------------


def _answer(found: Exercise, job: dict[str, Any], talk: _Talk) -> None:
    """Load the answer, and tell what each case comes to."""
    begun = time.monotonic()
    made: list[Any] = []
    wrong: list[str] = []

    def load() -> None:
        try:
            made.append(_load(job["pieces"], job["function"]))
        except deadline.OutOfTime:
            raise
        except BaseException as error:  # sys.exit while loading, too
            wrong.append(running.said(error))

    if not deadline.run(load, found.limit):
        wrong.append(f"loading it took longer than {found.limit:g} s")
    if wrong or not made:
        talk.tell("wrong", "".join(wrong) or "loading it ended its thread")
        return
    name = borrowed.handed_in(made[0], found.without)
    if name:
        talk.tell("borrowed", name)
        return
    talk.tell("begin")
    plain.same_dice()
    done = threading.Event()
    in_time = deadline.run(lambda: _cases(found, made[0], talk, done), found.limit)
    last = "done" if done.is_set() else "cut" if in_time else "late"
    talk.tell(last, round(time.monotonic() - begun, 3))
    talk.on()


def _cases(found: Exercise, answer: Any, talk: _Talk, done: threading.Event) -> None:
    checks = [check.cases for check in found.checks]
    with borrowed.watched(answer, found.without, checks) as calls:
        for number, check in enumerate(found.checks):
            try:
                for place, case in enumerate(check.cases(answer)):
                    _steps(case, (number, place), answer, talk, calls)
            except (deadline.OutOfTime, GeneratorExit):
                raise
            except BaseException as error:
                _tell_error(talk, "between", [number], error, running.line_in(answer, error))
            else:
                talk.tell("end", number)
    done.set()


def _steps(case: Any, place: tuple[int, int], answer: Any, talk: _Talk, calls: list[str]) -> None:
    """Run a case, and tell of each of its steps while there is a point in it."""
    number, steps = 0, case.steps()
    while True:
        where = [*place, number]
        try:
            step = next(steps, None)
        except Exception as error:
            _tell_error(talk, "case", where, error, running.line_in(answer, error))
            talk.on()
            return
        if step is None:
            return
        came = running.run(step, answer)
        if calls:
            talk.tell("borrowed", calls[0])
        if came.error is not None:
            _tell_error(talk, "case", where, came.error, came.where, came.printed)
        else:
            value = plain.text(came.got)
            talk.tell("case", *where, "value", came.printed, "", value=value)
        if not talk.on():
            return
        number += 1


def _tell_error(
    talk: _Talk, kind: str, place: list[int], error: BaseException, where: str, said: bool = False
) -> None:
    talk.tell(kind, *place, "error", said, where, value=json.dumps(plain.error(error)))


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
    lookers = {namedtuple.__code__, running.frames.__code__, traceback.extract_stack.__code__}
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
