"""The launcher: ports, set-up without a network, paths of the three systems, stdlib only."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

from course import cli, environment, launcher
from course.contents import ROOT
from course.environment import SetupError

PIP_WITHOUT_NETWORK = """\
Obtaining file:///somewhere/toytorch
  WARNING: Retrying (Retry(total=1)) after connection broken by 'NewConnectionError(...: Failed to
  establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/numpy/
ERROR: Could not find a version that satisfies the requirement setuptools>=69 (from versions: none)
ERROR: No matching distribution found for setuptools>=69
"""
UV_WITHOUT_NETWORK = """\
  × Failed to download `numpy`
  ├─▶ error sending request for url
  ╰─▶ dns error: failed to lookup address information: nodename nor servname provided
"""


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that something listens on."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_port_in_use_that_was_asked_for_is_refused(taken: int) -> None:
    with pytest.raises(SetupError, match=f"Port {taken} is in use") as caught:
        launcher.choose_port(taken)
    assert "--port" in str(caught.value)


def test_a_port_in_use_that_was_not_asked_for_is_passed_over(
    taken: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launcher, "DEFAULT_PORT", taken)
    port = launcher.choose_port(None)
    assert port > taken
    assert launcher.is_free(port)
    assert f"Port {taken} is in use" in capsys.readouterr().out


@pytest.mark.parametrize("port", [0, -1, 70_000])
def test_an_impossible_port_is_refused(port: int) -> None:
    with pytest.raises(SetupError, match="1 to 65535"):
        launcher.choose_port(port)


def test_the_command_line_says_the_message_and_fails(
    taken: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "ensure", lambda extras: Path(sys.executable))
    assert cli.main(["--no-browser", "--port", str(taken)]) == 1
    said = capsys.readouterr().err
    assert "is in use" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("said", [PIP_WITHOUT_NETWORK, UV_WITHOUT_NETWORK])
def test_no_network_says_what_to_do(said: str) -> None:
    message = environment.explain(said, Path("setup.log"))
    assert "could not be reached" in message
    assert "HTTPS_PROXY" in message
    assert "again" in message
    assert "setup.log" in message


def test_other_failures_show_the_end_of_what_was_said() -> None:
    said = "\n".join(f"line {number}" for number in range(40)) + "\nerror: no compiler"
    message = environment.explain(said, Path("setup.log"))
    assert "no compiler" in message
    assert "line 3\n" not in message
    assert "disk is full" in environment.explain("OSError: No space left on device", Path("log"))


def test_set_up_with_no_network_ends_in_that_message(tmp_path: Path) -> None:
    """The real path: a project whose requirement no index can deliver, and no index at all."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text(
        '[project]\nname = "toytorch"\nversion = "1"\n'
        'dependencies = ["a-package-that-is-not-there"]\n'
        "[project.optional-dependencies]\ncourse = []\n",
        encoding="utf-8",
    )
    closed = "http://127.0.0.1:9/simple"  # nothing listens at the discard port
    code = (
        "import sys; from pathlib import Path; from course import environment\n"
        "try: environment.ensure(['course'], root=Path(sys.argv[1]))\n"
        "except environment.SetupError as error: print(error)"
    )
    env = {**os.environ, "PIP_INDEX_URL": closed, "UV_INDEX_URL": closed, "PYTHONPATH": str(ROOT)}
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CONFIG_FILE"):
        env.pop(name, None)
    env["PIP_CONFIG_FILE"] = os.devnull
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], env=env, capture_output=True, text=True
    )
    assert "could not be reached" in done.stdout, done.stdout + done.stderr
    assert not (root / ".venv" / "toytorch-stamp.json").exists()  # the next run goes on from here


def test_interpreter_paths_of_the_systems() -> None:
    venv = PurePath("project") / ".venv"
    assert environment.python_of(Path(venv), windows=True).parts[-2:] == ("Scripts", "python.exe")
    assert environment.python_of(Path(venv), windows=False).parts[-2:] == ("bin", "python")


def test_requirements_follow_extras_of_the_project_itself(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "toytorch"\ndependencies = ["numpy>=2"]\n'
        '[project.optional-dependencies]\ncourse = ["jupyterlab>=4"]\n'
        'test = ["toytorch[course]", "pytest>=8", "thing; sys_platform == \'win32\'"]\n',
        encoding="utf-8",
    )
    lines = environment.requirements(["test"], root=tmp_path)
    assert {"numpy>=2", "jupyterlab>=4", "pytest>=8"} <= set(lines)
    with pytest.raises(SetupError, match="no extra 'nothing'"):
        environment.requirements(["nothing"], root=tmp_path)


def test_an_environment_is_made_anew_when_the_project_changes(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    venv = tmp_path / ".venv"
    venv.mkdir()
    key = environment._key(tmp_path)
    (venv / "toytorch-stamp.json").write_text(f'{{"key": "{key}", "extras": ["course"]}}')
    assert environment._stamped(venv, tmp_path) == {"course"}
    (tmp_path / "pyproject.toml").write_text("[project]\n# changed\n", encoding="utf-8")
    assert environment._stamped(venv, tmp_path) == set()


def test_a_folder_of_the_users_is_not_deleted(tmp_path: Path) -> None:
    venv = tmp_path / ".venv"
    venv.mkdir()
    (venv / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(SetupError, match="move it away"):
        environment._make(venv, None)
    assert (venv / "thesis.txt").exists()


def test_the_token_is_not_on_the_command_line() -> None:
    line = launcher.command(Path("python"), 8888)
    assert not any("token" in word.lower() for word in line)
    assert "--ServerApp.ip=127.0.0.1" in line


def test_news_pop_up_is_off() -> None:
    settings = (launcher._SETTINGS / "overrides.json").read_text(encoding="utf-8")
    assert '"fetchNews": "false"' in settings


def test_starting_needs_the_standard_library_only() -> None:
    """With no site-packages at all the command line still loads and prints its help."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c",
         f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = ['course', '--help']\n"
         "import runpy; runpy.run_module('course', run_name='__main__')"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for command in ("test", "run", "check", "status", "build", "--no-browser", "--port"):
        assert command in done.stdout


def test_an_unknown_chapter_is_answered_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "77"]) == 1
    said = capsys.readouterr().err
    assert "there is no chapter '77'" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_new_kernel_says_that_the_first_cells_have_not_run() -> None:
    """The launcher's kernels explain a NameError of the course's own names, and of no others."""
    import nbclient
    import nbformat.v4 as v4

    spec = json.loads((launcher._SETTINGS / "kernels" / "python3" / "kernel.json").read_text())
    lines = [part for part in spec["argv"] if part.startswith("--IPKernelApp.exec_lines=")]
    assert len(lines) == 1
    assert str(launcher._SETTINGS) in launcher._env("")["JUPYTER_PATH"]
    book = v4.new_notebook(
        cells=[v4.new_code_cell(text) for text in ('check("autograd.order", f)', "nonsense + 1")]
    )
    client = nbclient.NotebookClient(
        book, kernel_name="python3", allow_errors=True, extra_arguments=lines
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    said = ["".join(str(o.get("text", "")) for o in cell.outputs) for cell in book.cells]
    assert "first cells have not run" in said[0]
    assert "Run All Above Selected Cell" in said[0]
    assert said[1] == ""
    assert all("NameError" in str(cell.outputs) for cell in book.cells)


def test_the_launcher_ends_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM takes the way of Ctrl-C, on which JupyterLab is ended, too."""
    with pytest.raises(KeyboardInterrupt):
        launcher._ask_to_end(15, None)
