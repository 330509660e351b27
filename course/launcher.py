"""Start JupyterLab at the course's start page. Standard library only."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path

from course import desk
from course.contents import ROOT
from course.environment import SetupError, ensure

_HOST = "127.0.0.1"
_SETTINGS = ROOT / "course" / "assets" / "lab"
DEFAULT_PORT = 8888
START = "00_start"


def _ask_to_end(*_: object) -> None:
    raise KeyboardInterrupt


def start(port: int | None = None, *, browser: bool = True, page: str = START) -> int:
    """Set up if needed, start JupyterLab, show its address, and stay until it ends or Ctrl-C.

    Args:
        port: the port to use and no other; None takes 8888 or the next that is free.
        browser: whether to open the page.
        page: the notebook to open, by its name without ending.

    Raises:
        SetupError: set-up failed, the port is taken, or JupyterLab did not start.
    """
    # told to end, it ends as by Ctrl-C: JupyterLab and its kernels with it
    signal.signal(signal.SIGTERM, _ask_to_end)
    python = ensure(["course"])
    chosen = choose_port(port)
    token = secrets.token_urlsafe(24)
    address = f"http://{_HOST}:{chosen}/lab/tree/work/{page}.ipynb?token={token}"
    for line in desk.prepare():
        print(f"  {line}", flush=True)
    log = Path(tempfile.mkstemp(prefix="toytorch-jupyter-", suffix=".log")[1])
    trust = _trust(python)
    with log.open("w", encoding="utf-8") as out:
        server = subprocess.Popen(
            command(python, chosen), cwd=ROOT, env=_env(token), stdout=out, stderr=out
        )
    try:
        _wait(server, chosen, log)
        trust.wait()
        print(f"\n  The course is open at\n\n    {address}\n\n  Ctrl-C ends it.", flush=True)
        if browser and not webbrowser.open(address):
            print("  (No browser could be started from here: open the address yourself.)")
        return server.wait()
    except KeyboardInterrupt:
        print("\n  Closing; your notebooks are where you saved them.")
        return 0
    finally:
        _end(server)
        _end(trust)
        if server.returncode in (0, None) or server.returncode < 0:
            log.unlink(missing_ok=True)


def command(python: Path, port: int) -> list[str]:
    """The line that starts JupyterLab."""
    line = [
        str(python),
        "-m",
        "jupyterlab",
        "--no-browser",
        f"--ServerApp.ip={_HOST}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={ROOT}",
        "--LabApp.default_url=/lab/tree/work/00_start.ipynb",
        f"--LabApp.app_settings_dir={_SETTINGS}",  # overrides.json there turns the news pop-up off
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        line.append("--allow-root")
    return line


def choose_port(wanted: int | None) -> int:
    """The port to serve on.

    Raises:
        SetupError: the port that was asked for is taken, or no free one was found.
    """
    if wanted is not None:
        if not 0 < wanted < 65536:
            raise SetupError(f"--port {wanted}: a port is a number from 1 to 65535.")
        if not is_free(wanted):
            raise SetupError(
                f"Port {wanted} is in use, perhaps by another JupyterLab.\n"
                f"Close that one, or try --port {next_free(wanted + 1)}, or leave --port away."
            )
        return wanted
    port = next_free(DEFAULT_PORT)
    if port != DEFAULT_PORT:
        print(f"  Port {DEFAULT_PORT} is in use, so this is port {port}.")
    return port


def next_free(first: int) -> int:
    """The first free port from ``first`` on."""
    for port in range(first, min(first + 100, 65536)):
        if is_free(port):
            return port
    raise SetupError(f"No port from {first} on is free: close a server, or say --port NUMBER.")


def is_free(port: int) -> bool:
    """Whether nothing on this machine listens at the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if os.name != "nt":  # there the option means the opposite: share the port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def _env(token: str) -> dict[str, str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),  # kernels start in work/ and import from here
        "JUPYTER_PATH": os.pathsep.join(
            filter(None, [str(_SETTINGS), os.environ.get("JUPYTER_PATH")])
        ),
        "JUPYTER_TOKEN": token,  # not on the command line, where every user could read it
    }


def _trust(python: Path) -> subprocess.Popen[bytes]:
    """Sign the course's own notebooks, so that their pictures show at once."""
    names = sorted(
        path for folder in ("work", "solutions") for path in ROOT.glob(f"{folder}/*.ipynb")
    )
    line = [str(python), "-m", "jupyter", "trust", *map(str, names)]
    if not names:
        line = [str(python), "-c", ""]
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _wait(server: subprocess.Popen[bytes], port: int, log: Path, seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{port}/api", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-12:]
    said = "\n".join(f"    {line}" for line in tail)
    raise SetupError(f"JupyterLab did not start. The last it said:\n{said}\nAll of it: {log}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def run_inside(python: Path, arguments: list[str]) -> int:
    """Run ``python -m ...`` of the course's environment in the project's folder."""
    env = _env("")
    del env["JUPYTER_TOKEN"]
    try:
        return subprocess.run([str(python), "-m", *arguments], cwd=ROOT, env=env).returncode
    except KeyboardInterrupt:
        return 130
