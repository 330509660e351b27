"""Starting workers and referees, and ending them.

Reading the framework takes a second or two, so on Linux one process reads it and forks a worker
whenever it is asked to; another reads the exercises as well and forks referees, so that no worker
has ever had them in its memory. Neither process runs code of a submission. Elsewhere, where forking
is not safe or not there, every worker and referee is a Python of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from course.contents import ROOT

_LINE = "import sys; sys.path.insert(0, {root!r}); from course.marking.{0} import {1}; {1}()"
_KEPT = ("PATH", "SYSTEMROOT", "LANG", "LC_ALL", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "PYTHONHOME")
_FORKS = sys.platform.startswith("linux")


@dataclass
class Worker:
    """A running worker or referee: ``stdin`` and ``stdout`` are its ends of the conversation."""

    pid: int
    stdin: BinaryIO
    stdout: BinaryIO
    bury: Callable[[], object]  # waits for its end, so that its number is free again
    handle: int = 0  # what Windows knows it by

    def kill(self) -> None:
        """End the process and whatever it may have started."""
        if os.name == "nt":
            self.bury()
            return
        for kill in (os.killpg, os.kill):  # before it has a group of its own, only the second
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """End the process, and let go of all that belongs to it."""
        self.kill()
        with contextlib.suppress(OSError):
            self.bury()
        for pipe in (self.stdin, self.stdout):
            # A ValueError says that a thread which talked to the process is closing the pipe, too.
            with contextlib.suppress(OSError, ValueError):
                pipe.close()


def worker(folder: Path) -> Worker:
    """A new worker, whose working folder this is."""
    return _new("worker", folder)


def referee(folder: Path) -> Worker:
    """A new process that judges, whose working folder this is."""
    return _new("referee", folder)


def _new(kind: str, folder: Path) -> Worker:
    return _server(kind).fork(folder) if _FORKS else _alone(kind, folder)


def _alone(kind: str, folder: Path) -> Worker:
    pipe = subprocess.PIPE
    process = _python(kind, "main", folder, stdin=pipe, stdout=pipe)
    assert process.stdin is not None and process.stdout is not None

    def bury() -> None:
        process.kill()
        process.wait()

    handle = int(getattr(process, "_handle", 0))
    return Worker(process.pid, process.stdin, process.stdout, bury, handle)  # type: ignore[arg-type]


def _python(module: str, name: str, folder: Path, **pipes: Any) -> subprocess.Popen[bytes]:
    """A Python that calls a function of this package, with what an answer may know of the world."""
    env = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
        # one thread of BLAS: several take address space that is none of the answer's business
        **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        "TOYTORCH_NATIVE": "0",  # nothing is compiled; worker.py says why
        "TOYTORCH_PACKAGE": "references",  # answers stand on the course's files, not the lecturer's
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        **_own(folder),
    }
    paths = [path for path in sys.path if path and Path(path).is_dir()]
    env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(ROOT), *paths]))
    group: dict[str, Any] = (
        {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined,unused-ignore]
        if os.name == "nt"
        else {"start_new_session": True}
    )
    line = _LINE.format(module, name, root=str(ROOT))
    return subprocess.Popen(
        [sys.executable, "-B", "-W", "ignore", "-c", line],
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=env,
        **pipes,
        **group,
    )


def _own(folder: Path) -> dict[str, str]:
    """The variables that differ between workers."""
    homes = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP")
    return dict.fromkeys(homes, str(folder)) | {"TOYTORCH_PROGRESS": str(folder / "progress.json")}


class _Server:
    """The process that forks, seen from the one that marks."""

    def __init__(self, kind: str) -> None:
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        name = f"serve_{kind}s"
        with theirs:
            self.process = _python("start", name, ROOT, stdin=theirs, stdout=subprocess.DEVNULL)
        self._lock = threading.Lock()

    def fork(self, folder: Path) -> Worker:
        job_out, job_in = os.pipe()
        report_out, report_in = os.pipe()
        stdin, stdout = os.fdopen(job_in, "wb"), os.fdopen(report_out, "rb")
        try:
            pid = self._ask({"folder": str(folder)}, [job_out, report_in])
        finally:
            os.close(job_out)
            os.close(report_in)
        return Worker(pid, stdin, stdout, lambda: self._ask({"ended": pid}))

    def _ask(self, message: dict[str, Any], files: Sequence[int] = ()) -> int:
        with self._lock:
            socket.send_fds(self._door, [json.dumps(message).encode()], files)
            said = self._door.recv(64)
        if not said:
            raise OSError("the process that starts the marking has ended")
        return int(said)


_lock = threading.Lock()
_servers: dict[str, _Server] = {}


def _server(kind: str) -> _Server:
    with _lock:
        if kind not in _servers or _servers[kind].process.poll() is not None:
            _servers[kind] = _Server(kind)
        return _servers[kind]


def serve_workers() -> None:
    """Fork workers. Nothing that is read here may know an answer: no exercise is."""
    from course.marking import worker

    _serve(worker.main)


def serve_referees() -> None:
    """Fork processes that judge."""
    from course import registry
    from course.marking import referee

    registry.all_exercises()
    _serve(referee.main)


def _serve(main: Callable[[], None]) -> None:
    """Fork a process for every message that names a folder, until nobody is there to send any."""
    with socket.socket(fileno=0) as channel:
        while True:
            data, files, _, _ = socket.recv_fds(channel, 2**16, 2)
            if not data:
                return
            job = json.loads(data)
            if "ended" in job:
                os.waitpid(job["ended"], 0)
                channel.send(b"0")
                continue
            pid = os.fork()
            if pid == 0:
                _become(main, Path(job["folder"]), files)
            for number in files:
                os.close(number)
            channel.send(str(pid).encode())


def _become(main: Callable[[], None], folder: Path, files: list[int]) -> None:
    try:
        os.setsid()
        os.chdir(folder)
        for number, file in enumerate(files):  # the first takes the place of the server's channel
            os.dup2(file, number)
            os.close(file)
        os.environ.update(_own(folder))
        main()
        sys.stdout.flush()
        os._exit(0)
    finally:
        os._exit(1)
