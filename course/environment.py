"""The course's Python environment: made once in ``.venv``, by uv where there is uv, else by pip.

Standard library only, since this is what runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from course.contents import ROOT
from course.files import write_atomically

_NO_NETWORK = re.compile(
    r"name resolution|name or service not known|nodename nor servname|getaddrinfo failed"
    r"|NewConnectionError|ConnectTimeout|Max retries exceeded|establish a new connection"
    r"|network is unreachable|no route to host|connection refused|connection timed out"
    r"|ProxyError|dns error|error sending request|client error \(connect\)|could not connect"
    r"|failed to fetch|RemoteDisconnected|ReadTimeoutError",
    re.I,
)


class SetupError(Exception):
    """Setting up failed; the message says what to do."""


def python_of(venv: Path, windows: bool | None = None) -> Path:
    """The interpreter inside a virtual environment, on this system or on the one named."""
    windows = os.name == "nt" if windows is None else windows
    return venv / "Scripts" / "python.exe" if windows else venv / "bin" / "python"


def ensure(extras: Iterable[str], *, root: Path = ROOT) -> Path:
    """An interpreter that has the project with these extras; sets one up if there is none.

    The interpreter that runs this is taken if it has everything already. Otherwise ``.venv`` is,
    made or completed first if need be.

    Raises:
        SetupError: the environment could not be made; the message says what to do.
    """
    wanted = set(extras)
    if satisfied(wanted, root=root):
        return Path(sys.executable)
    venv = root / ".venv"
    done = _stamped(venv, root)
    if wanted <= done and python_of(venv).exists():
        return python_of(venv)
    _set_up(venv, root, sorted(wanted | done))
    return python_of(venv)


def satisfied(extras: Iterable[str], *, root: Path = ROOT) -> bool:
    """Whether this interpreter has every distribution that the project and extras ask for."""
    for requirement in requirements(extras, root=root):
        name, _, marker = requirement.partition(";")
        if marker:
            continue  # only needed on some system or version: pip knows, we need not
        match = re.match(r"[A-Za-z0-9._-]+", name.strip())
        try:
            importlib.metadata.distribution(match.group() if match else name)
        except importlib.metadata.PackageNotFoundError:
            return False
    return True


def requirements(extras: Iterable[str], *, root: Path = ROOT) -> list[str]:
    """The project's requirement lines, with those of the extras, from pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tables = project.get("optional-dependencies", {})
    found: list[str] = list(project.get("dependencies", []))
    waiting, seen = list(extras), set()
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        if extra not in tables:
            raise SetupError(f"pyproject.toml has no extra {extra!r}")
        for line in tables[extra]:
            own = re.match(rf"{re.escape(project['name'])}\[([^\]]+)\]", line)
            if own:
                waiting += [name.strip() for name in own.group(1).split(",")]
            else:
                found.append(line)
    return found


# -- the stamp ------------------------------------------------------------------------------------


def _key(root: Path) -> str:
    """Changes when pyproject.toml or the interpreter does: then the environment is made anew."""
    content = (root / "pyproject.toml").read_bytes()
    version = f"{sys.version_info[0]}.{sys.version_info[1]} {root}"
    return hashlib.sha256(content + version.encode()).hexdigest()


def _stamped(venv: Path, root: Path) -> set[str]:
    """The extras that a finished set-up put into the environment."""
    try:
        stamp = json.loads((venv / "toytorch-stamp.json").read_text(encoding="utf-8"))
        return set(stamp["extras"]) if stamp["key"] == _key(root) else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


# -- setting up -----------------------------------------------------------------------------------


def _set_up(venv: Path, root: Path, extras: list[str]) -> None:
    started = time.monotonic()
    uv = shutil.which("uv")
    print(f"Setting up the course in {venv.name} (once; a few minutes on a slow line).", flush=True)
    if not _works(venv):
        _make(venv, uv)
    log = venv / "toytorch-setup.log"
    target = f"{root}[{','.join(extras)}]"
    _run(_installer(venv, uv, target), f"installing {', '.join(extras)}", log, root)
    write_atomically(venv / ".gitignore", b"*\n")  # an environment never belongs in a commit
    stamp = {"key": _key(root), "extras": extras}
    write_atomically(venv / "toytorch-stamp.json", json.dumps(stamp).encode())
    print(f"  done in {time.monotonic() - started:.0f} s.", flush=True)


def _works(venv: Path) -> bool:
    python = python_of(venv)
    if not python.exists():
        return False
    probe = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True
    )
    return probe.stdout.split() == [str(part) for part in sys.version_info[:2]]


def _make(venv: Path, uv: str | None) -> None:
    """A new environment in place of whatever is there, if that is an environment at all."""
    if venv.exists():
        if not (venv / "pyvenv.cfg").exists() and any(venv.iterdir()):
            raise SetupError(f"{venv} exists and is not a Python environment: move it away first.")
        shutil.rmtree(venv)
    command = [uv, "venv", "--python", sys.executable, str(venv)] if uv else None
    if command is not None and subprocess.run(command, capture_output=True).returncode == 0:
        print("  [1/2] environment made with uv", flush=True)
        return
    made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
    if made.returncode:
        said = (made.stdout + made.stderr).strip()
        shutil.rmtree(venv, ignore_errors=True)
        raise SetupError(_no_venv(said))
    print("  [1/2] environment made", flush=True)


def _no_venv(said: str) -> str:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if "ensurepip" in said or "No module named venv" in said:
        return (
            "Python's venv module is incomplete here. On Debian or Ubuntu run\n"
            f"    sudo apt install python{version}-venv\n"
            "and start again; elsewhere install Python from python.org, or install uv."
        )
    return f"The environment could not be made:\n{said}"


def _installer(venv: Path, uv: str | None, target: str) -> list[str]:
    python = str(python_of(venv))
    probe = subprocess.run([python, "-m", "pip", "--version"], capture_output=True)
    if uv and probe.returncode:  # uv makes environments without pip
        return [uv, "pip", "install", "--python", python, "--editable", target]
    flags = ["--disable-pip-version-check", "--progress-bar", "off", "--retries", "2"]
    return [python, "-m", "pip", "install", *flags, "--editable", target]


def _run(command: Sequence[str], what: str, log: Path, root: Path) -> None:
    """Run an installer with its progress shown in one line; its whole output goes to the log."""
    process = subprocess.Popen(
        command,
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    meter = Meter(f"  [2/2] {what}")
    kept: list[str] = []
    try:
        while True:
            try:
                line = lines.get(timeout=0.2)
            except queue.Empty:
                meter.tick()
                continue
            if line is None:
                break
            kept.append(line)
            meter.tell(line)
    except BaseException:
        process.terminate()
        raise
    finally:
        meter.close()
        write_atomically(log, "".join(kept).encode())
    if process.wait():
        raise SetupError(explain("".join(kept), log))


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def explain(said: str, log: Path) -> str:
    """What an installer's failure means for the person in front of it."""
    if _NO_NETWORK.search(said):
        return (
            "The package index could not be reached, so nothing more was installed.\n"
            "  * Is this machine online? Behind a proxy, set HTTPS_PROXY first.\n"
            "  * Then run the same command again: it goes on where it stopped.\n"
            "  * With no network at all: have the wheels in a folder (made elsewhere by\n"
            "    `pip wheel .[course] setuptools -w FOLDER`), set PIP_NO_INDEX=1 and\n"
            "    PIP_FIND_LINKS=FOLDER, and run it again.\n"
            f"Everything pip said is in {log}."
        )
    if re.search(r"no space left|disk quota", said, re.I):
        return "The disk is full: the environment needs about 1 GB. Make room and run it again."
    tail = "\n".join("    " + line for line in said.strip().splitlines()[-12:])
    return f"Installing failed. The last that was said:\n{tail}\nAll of it is in {log}."


class Meter:
    """One line that shows something is going on; on a pipe, a line now and then."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.started = self.last = time.monotonic()
        self.count = 0
        self.note = ""
        self.live = sys.stdout.isatty()
        if not self.live:
            print(f"{title} …", flush=True)

    def tell(self, line: str) -> None:
        """Take in one line of the installer's output."""
        words = line.split()
        if words[:1] in (["Collecting"], ["Downloading"], ["Building"], ["Installing"]):
            self.count += words[0] == "Collecting"
            self.note = f"{words[0].lower()} {words[1]}" if len(words) > 1 else words[0].lower()
        self.tick()

    def tick(self) -> None:
        """Show the time that has passed."""
        now = time.monotonic()
        if now - self.last < (0.15 if self.live else 10):
            return
        self.last = now
        bar = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[int(now * 8) % 10]
        text = f"{self.title} · {self.count} packages · {now - self.started:.0f} s · {self.note}"
        if self.live:
            width = shutil.get_terminal_size().columns - 4
            print(f"\r\x1b[K{bar} {text[:width]}", end="", flush=True)
        else:
            print(text, flush=True)

    def close(self) -> None:
        """End the line."""
        if self.live:
            print("\r\x1b[K", end="")
            print(f"{self.title} · {self.count} packages", flush=True)
