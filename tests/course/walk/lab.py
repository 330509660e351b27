"""JupyterLab on a copy of a chapter's untouched notebook, started as the launcher starts it."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from course import launcher
from course.contents import ROOT, Chapter


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: its address up to the file's name, and the token."""

    port: int
    token: str
    folder: Path

    def address(self, stem: str) -> str:
        """Where a notebook opens."""
        page = f"http://127.0.0.1:{self.port}/lab/tree/notebooks/{stem}.ipynb"
        return f"{page}?token={self.token}&reset"


@contextmanager
def running(chapter: Chapter, folder: Path) -> Iterator[Lab]:
    """Serve a chapter's notebook and the start page from a folder that nobody else uses."""
    notebooks = folder / "notebooks"
    notebooks.mkdir(parents=True)
    for stem in (launcher.START, chapter.stem):
        shutil.copy(ROOT / "notebooks" / f"{stem}.ipynb", notebooks)
    token, port = secrets.token_urlsafe(16), launcher.next_free(9200)
    env = {
        **launcher._env(token),
        "TOYTORCH_PROGRESS": str(folder / ".progress.json"),
        "HOME": str(folder),  # neither settings nor trust of whoever runs this
        "JUPYTER_CONFIG_DIR": str(folder / "jupyter"),
        "JUPYTER_DATA_DIR": str(folder / "jupyter"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    trust = [sys.executable, "-m", "jupyter", "trust", *map(str, notebooks.glob("*.ipynb"))]
    subprocess.run(trust, env=env, check=True, capture_output=True)
    line = [
        word.replace(f"root_dir={ROOT}", f"root_dir={folder}")
        for word in launcher.command(Path(sys.executable), port)
    ]
    line.append("--LabApp.expose_app_in_browser=True")  # so that the page can be asked
    log = folder / "jupyter.log"
    with log.open("w", encoding="utf-8") as out:
        server = subprocess.Popen(line, cwd=folder, env=env, stdout=out, stderr=out)
    try:
        launcher._wait(server, port, log)
        yield Lab(port, token, folder)
    finally:
        if os.name == "posix":  # its kernels end with it
            server.terminate()
        launcher._end(server)
