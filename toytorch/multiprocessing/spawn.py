"""Several processes that run one function, and what is known of how they ended.

Like `torch.multiprocessing.spawn`; the error of a process is raised where it was started.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from typing import Any

from toytorch.facts.hints import Args, Fn

Process = Any  # which every way to start processes has its own class of


class ProcessException(Exception):
    """A process did not end well."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """What a process ran raised; the message is its traceback."""


class ProcessExitedException(ProcessException):
    """A process was ended by a signal or left with a code."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        made, given = super().__reduce__()
        return made, (*given, self.exit_code, self.signal_name)


def _wrap(fn: Fn, rank: int, args: Args, error_file: str) -> None:
    """What a process runs: its error goes to a file."""
    try:
        fn(rank, *args)
    except KeyboardInterrupt:
        pass  # the parent ended it
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


def signal_of(code: int) -> str:
    """The name of the signal that ended a process."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"<Unknown signal {-code}>"


class ProcessContext:
    """Processes under way, and the files where they would leave an error."""

    def __init__(self, processes: list[Process], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one has ended; True if all have, and the error of one that did not end well,
        once the others are ended, too."""
        if not self.sentinels:
            return True
        for ready in multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout):
            index = self.sentinels.pop(ready)
            self.processes[index].join()
            if self.processes[index].exitcode:
                self._end_the_others(grace_period)
                self._raise(index)
        return not self.sentinels

    def _end_the_others(self, grace_period: float | None) -> None:
        """Lets the processes end by themselves if there is time, then ends them."""
        if grace_period is not None:
            self._join_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._join_all(30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _join_all(self, timeout: float) -> None:
        """Waits for all, together not longer than that."""
        end = time.monotonic() + timeout
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def _raise(self, index: int) -> None:
        """Says how a process ended."""
        failed, file = self.processes[index], self.error_files[index]
        if os.access(file, os.R_OK):  # which it has written then
            with open(file, "rb") as error:
                said = pickle.load(error)
            said = f"\n\n-- Process {index} terminated with the following error:\n{said}"
            raise ProcessRaisedException(said, index, failed.pid)
        code, name = failed.exitcode, None
        if code < 0:
            name = signal_of(code)
        how = f"exit code {code}" if name is None else f"signal {name}"
        raise ProcessExitedException(
            f"process {index} terminated with {how}", index, failed.pid, code, name
        )


class SpawnContext(ProcessContext):
    """The older name of ProcessContext."""

    def __init__(self, processes: list[Process], error_files: list[str]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Fn,
    args: Args = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(rank, *args) in `nprocs` processes; waits for them, or gives them back."""
    context: Any = multiprocessing.get_context(start_method)
    files, processes = list[str](), list[Process]()
    for rank in range(nprocs):
        made, file = tempfile.mkstemp(prefix="pytorch-errorfile-", suffix=".pickle")
        os.close(made)
        os.unlink(file)  # so that it is there only after an error
        process = context.Process(target=_wrap, args=(fn, rank, args, file), daemon=daemon)
        process.start()
        files.append(file)
        processes.append(process)
    found = ProcessContext(processes, files)
    if not join:
        return found
    while not found.join():
        pass
    return None


def spawn(
    fn: Fn,
    args: Args = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(rank, *args) in new processes; waits for them, or gives them back.

    Raises ProcessRaisedException with the traceback of the first that raises, and
    ProcessExitedException where one ends in another way.
    """
    if start_method != "spawn":
        warnings.warn(
            "This method only supports start_method=spawn (got: "
            f"{start_method}).\nTo use a different start_method use:\n\t\t"
            " torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
