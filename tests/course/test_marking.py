"""Marking: what an answer consists of, what is screened, and the sandbox around what runs."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest

from course import registry
from course.contents import ROOT, Chapter, find, written
from course.marking import command, extract, screen
from course.marking.grade import Judged, Marker, Task
from course.marking.pages import feedback
from course.marking.start import Worker
from course.marking.submissions import Submission
from course.marking.submissions import find as submissions
from course.marking.supervisor import Limits

FIRST = registry.of_chapter(1)[0]


def cells(*sources: str) -> list[Any]:
    return [SimpleNamespace(cell_type="code", source=source) for source in sources]


def texts(*sources: str, function: str = "f") -> list[str]:
    found = extract.answer(cells(*sources), "a.b", function)
    assert not found.problem
    return [ast.unparse(node) for piece in found.pieces for node in piece.nodes]


def mark(tmp_path: Path, *sources: str, seconds: float = 6.0, screened: bool = False) -> Judged:
    """Mark an answer to the first exercise, past the screen."""
    (tmp_path / "class").mkdir(exist_ok=True)
    marker = Marker(tmp_path / "class", Limits(seconds, 512), screened)
    notebook = SimpleNamespace(cells=cells(*sources))
    return marker.judge(Task(Submission("s", tmp_path / "s.ipynb", find(1), notebook), FIRST, 2.0))


# -- what an answer consists of -------------------------------------------------------------------


def test_only_what_the_answer_needs_is_taken() -> None:
    assert texts(
        "import math\nimport os\nprint('hello')",
        "LIMIT = 3\nLIMIT += 1\nother = LIMIT",
        "def helper(x):\n    return x + LIMIT",
        "def f(x):\n    other = math.pi\n    return helper(x) * other",
    ) == [
        "import math",
        "LIMIT = 3",
        "LIMIT += 1",
        "def helper(x):\n    return x + LIMIT",
        "def f(x):\n    other = math.pi\n    return helper(x) * other",
    ]


def test_the_last_definition_before_the_check_counts() -> None:
    assert texts("def f():\n    return 1", "def f():\n    return 2", 'check("a.b", f)') == [
        "def f():\n    return 2"
    ]
    late = ("def f():\n    return 1", 'check("a.b", f)', "def f():\n    return 2")
    assert texts(*late) == ["def f():\n    return 1"]


def test_statements_that_only_do_something_are_left_out() -> None:
    patched = "import course.judge\ncourse.judge.judge = None\ntorch.tensor = print"
    answer = "def f():\n    return 1"
    assert texts(patched, f"%matplotlib inline\n{answer}") == [answer]


def test_what_cannot_be_read_is_said() -> None:
    assert extract.answer(cells("x = 1"), "a.b", "f").problem == "no cell defines f"
    broken = extract.answer(cells("def f(:\n    pass"), "a.b", "f")
    assert "SyntaxError in line 1" in broken.problem


@pytest.mark.parametrize("chapter", written(), ids=lambda chapter: chapter.stem)
def test_no_answer_of_the_course_is_screened_out(chapter: Chapter) -> None:
    solved = nbformat.read(ROOT / "solutions" / f"{chapter.stem}.ipynb", as_version=4)
    for found in registry.of_chapter(chapter.number):
        answer = extract.answer(solved.cells, found.name, found.function)
        assert not answer.problem
        assert screen.objections(node for piece in answer.pieces for node in piece.nodes) == []
        for mutant in found.mutants:
            assert screen.objections(ast.parse(mutant.source).body) == [], mutant.label


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "from course import exercise",
        "import course.judge as j",
        "from numpy import ctypeslib",
        "eval('1')",
        "f.__globals__",
        "getattr(f, '__globals__')",
        "getattr(f, '__glo' + 'bals__')",
        "import inspect; inspect.getouterframes",
        "import inspect; getattr(inspect, 'sys')",
        "import inspect; inspect.importlib.import_module",
        "from numpy.lib import stride_tricks",
        "toytorch.serialization.os.remove('x')",
        "(i for i in ()).gi_frame.f_back",
    ],
)
def test_what_reaches_for_the_system_is_screened(source: str) -> None:
    assert screen.objections(ast.parse(source).body)


# -- where submissions lie ------------------------------------------------------------------------


def test_students_are_told_by_folders_or_by_file_names(tmp_path: Path) -> None:
    source = ROOT / "notebooks" / f"{find(1).stem}.ipynb"
    for name in ("ann_01_tensors.ipynb", "ben/01_tensors.ipynb", "cat/a1/mine.ipynb"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    hidden = tmp_path / "ben" / ".ipynb_checkpoints" / "01_tensors.ipynb"
    hidden.parent.mkdir()
    hidden.write_bytes(source.read_bytes())
    (tmp_path / "dan.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    found = list(submissions(tmp_path))
    assert [one.student for one in found] == ["ann", "ben", "cat", "dan"]
    assert [one.chapter for one in found] == [find(1)] * 3 + [None]
    assert "no cells" in found[3].problem
    assert len(list(submissions(tmp_path, find(2)))) == 1  # the broken one may be anything


# -- the audit hook --------------------------------------------------------------------------------

GOOD = FIRST.answer.source
SNEAK = (
    GOOD.replace("def ", "def honest_", 1)
    .replace(f"honest_{FIRST.function}", "honest")
    .replace(f"{FIRST.function}(", "honest(")
)


def around(attack: str) -> str:
    """An answer that is right and does something else on the side."""
    body = "\n".join("    " + line for line in attack.splitlines())
    return f"{SNEAK}\n\ndef {FIRST.function}(*args):\n{body}\n    return honest(*args)"


def test_the_disguise_itself_is_green(tmp_path: Path) -> None:
    judged = mark(tmp_path, around("print('hello')"), screened=True)
    assert (judged.mark.verdict, judged.mark.points) == ("green", 2.0), judged.mark.reason


def test_an_answer_may_call_a_function_that_nobody_called_before(tmp_path: Path) -> None:
    """Whose source is generated then, and put into it: see `toytorch.core.first_call`."""
    judged = mark(tmp_path, around("import toytorch\ntoytorch.ones(1).erfinv_()"))
    assert (judged.mark.verdict, judged.mark.points) == ("green", 2.0), judged.mark.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    [
        "import os\nos.remove({precious!r})",
        "import shutil\nshutil.rmtree({folder!r})",
        "import os\nos.rename({precious!r}, {precious!r} + '2')",
        "open({precious!r}, 'w')",
        "import os\nos.truncate({precious!r}, 0)",
        "import os\nos.chmod(os.open({precious!r}, os.O_RDONLY), 0)",
        "import os\nos.unlink('me.txt', dir_fd=os.open({folder!r}, os.O_RDONLY))",
        "import os\nos.chdir({folder!r})\nos.unlink('me.txt')",
        "import os\nos.symlink({folder!r}, 'link')\nos.unlink('link/me.txt')",
        "import subprocess\nsubprocess.run(['true'])",
        "import os\nos.system('true')",
        "import os\nos.kill(os.getppid(), 0)",
        "import socket\nsocket.create_connection(('127.0.0.1', 9))",
        "open({private!r}).read()",
        "import ctypes\nctypes.CDLL(None)",
    ],
)
def test_the_wall_refuses(tmp_path: Path, attack: str) -> None:
    precious, private = tmp_path / "keep" / "me.txt", tmp_path / "class" / "other.ipynb"
    for path in (precious, private):
        path.parent.mkdir()
        path.write_text("precious")
    names = {"precious": str(precious), "folder": str(precious.parent), "private": str(private)}
    judged = mark(tmp_path, around(attack.format(**names)))
    assert judged.mark.points < 2.0
    assert "came to PermissionError: " in judged.mark.reason  # the hook's, or the system's own
    assert precious.read_text() == private.read_text() == "precious"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "verdict"),
    [
        ("import os\nos._exit(0)", "ended"),
        ("import os\nfor n in range(20):\n    try: os.write(n, b'x green\\n')\n"
         "    except OSError: pass\nos._exit(0)", "ended"),
        ("from course.cases import Case\nCase.accepts = lambda *a: True", "red"),
        ("import course.judge as j\nj.Trial.go = lambda self: None", "red"),
        ("import course.cases as c\nc.same = lambda *a: True", "red"),
        ("for c in object.__subclasses__():\n"
         "    if c.__name__ == 'Case': c.accepts = lambda *a: True", "red"),
        ("import hashlib, json.encoder as j\nj.encode_basestring_ascii = lambda s: '\"ok\"'\n"
         "hashlib.sha256 = None", "ended"),
        ("import threading\nt = threading.current_thread()\n"
         "for x in vars(t).values():\n    if callable(x): x()", "red"),
    ],
)  # fmt: skip
def test_a_fake_earns_nothing(tmp_path: Path, attack: str, verdict: str) -> None:
    source = f"def {FIRST.function}(*args):\n" + "\n".join(
        "    " + line for line in (attack + "\nreturn 1").splitlines()
    )
    judged = mark(tmp_path, source)
    assert judged.mark.points == 0, judged.mark.reason
    assert judged.mark.verdict == verdict, judged.mark.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    [
        "import inspect\ninspect.stack()",
        "import inspect\ninspect.currentframe()",
        "try: 1 / 0\nexcept ZeroDivisionError as e: e.__traceback__.tb_frame",
        "(i for i in ()).gi_frame",
        "import sys\nsys._current_frames()",
        "import sys\nsys.settrace(print)",
        "import gc\ngc.get_objects()",
        "import types\ntypes.FunctionType(honest.__code__, {})",
        "honest.__code__ = (lambda *args: [1]).__code__",
        "import toytorch\ntoytorch.erfinv.__code__ = honest.__code__",
    ],
)
def test_frames_and_objects_of_the_judge_are_out_of_sight(tmp_path: Path, attack: str) -> None:
    judged = mark(tmp_path, around(attack))
    assert judged.mark.points < 2.0
    assert "came to PermissionError: an answer may not" in judged.mark.reason


@pytest.mark.slow
def test_a_loop_in_one_check_leaves_the_points_of_those_before(tmp_path: Path) -> None:
    looping = around("while args == ([],): pass")
    judged = mark(tmp_path, looping, seconds=4.0)
    assert judged.mark.verdict == "time", judged.mark.reason
    assert 0 < judged.mark.points < 2.0
    assert "no answer within 3 s" in judged.mark.reason


@pytest.mark.slow
def test_names_of_frames_are_there_for_who_needs_them(tmp_path: Path) -> None:
    attack = """from collections import namedtuple
from enum import Enum
from typing import NamedTuple
namedtuple("Pair", "a b")(1, 2), Enum("Kind", "a b").a, NamedTuple("Both", [("a", int)])(1)"""
    judged = mark(tmp_path, around(attack), screened=True)
    assert judged.mark.verdict == "green", judged.mark.reason


@pytest.mark.slow
def test_files_in_the_working_folder_are_allowed(tmp_path: Path) -> None:
    attack = """import os, shutil, tempfile
with tempfile.NamedTemporaryFile("w") as t:
    t.write("x")
with tempfile.TemporaryDirectory() as d:
    os.makedirs(d + "/a/b")
    open(d + "/a/b/c", "w").close()
    os.rename(d + "/a/b/c", d + "/a/e")
    shutil.copyfile(d + "/a/e", d + "/f")"""
    judged = mark(tmp_path, around(attack))
    assert judged.mark.verdict == "green", judged.mark.reason


_CAGED = """
import os, sys, subprocess
from pathlib import Path
from course.marking import sandbox
from multiprocessing import util  # whose way to start programs announces nothing
folder, outside = map(Path, sys.argv[1:])
held = sandbox.close(folder, [Path(sys.prefix), Path(sys.base_prefix)])
print(*held)
attempts = {
    "landlock": [
        lambda: outside.write_text("gone"), outside.unlink, outside.read_text,
        lambda: outside.rename(folder / "mine"), lambda: os.truncate(outside, 0),
        lambda: open("/proc/self/mem", "rb"), lambda: (folder / "link").hardlink_to(outside),
    ],
    "seccomp": [
        os.fork, lambda: util.spawnv_passfds(b"/bin/sh", [b"sh"], []),
        lambda: os.kill(os.getppid(), 0), lambda: __import__("socket").socket(),
        lambda: os.execv("/bin/sh", ["sh"]),
    ],
}
for name in held:
    for attempt in attempts[name]:
        try:
            attempt()
        except OSError:
            continue
        sys.exit(f"{name} let something pass")
import threading
(folder / "a").write_text("a")
(folder / "a").rename(folder / "b")
(folder / "b").unlink()
thread = threading.Thread(target=print)
thread.start()
thread.join()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is Linux's")
def test_linux_refuses_what_python_does_not_announce(tmp_path: Path) -> None:
    outside, inside = tmp_path / "keep.txt", tmp_path / "work"
    outside.write_text("precious")
    inside.mkdir()
    line = [sys.executable, "-c", _CAGED, str(inside), str(outside)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr + done.stdout
    assert outside.read_text() == "precious"
    if not done.stdout.split():
        pytest.skip("this kernel has neither Landlock nor seccomp")


# -- odd notebooks --------------------------------------------------------------------------------


def test_a_worker_ends_while_another_thread_closes_its_pipes() -> None:
    """The pump that feeds a referee closes its pipe, too, with a line that nobody will read."""

    both, waited = threading.Barrier(2), iter((0.0, 0.1))

    class Pipe(io.BufferedWriter):
        def flush(self) -> None:
            both.wait(10)  # both threads are past the question whether the pipe is closed
            time.sleep(next(waited))  # and one of them has closed it when the other writes
            super().flush()

    theirs, ours = os.pipe()
    out, into = os.pipe()
    os.close(theirs)
    stdin, stdout = Pipe(io.FileIO(ours, "wb")), os.fdopen(out, "rb")
    stdin.write(b"a line")
    worker = Worker(2**22 + 1, stdin, stdout, lambda: None)  # no process has this number
    other = threading.Thread(target=worker.end)
    other.start()
    worker.end()
    other.join()
    os.close(into)
    assert stdin.closed and stdout.closed


def test_files_that_are_no_notebooks_are_rows_with_a_reason(tmp_path: Path) -> None:
    source = (ROOT / "notebooks" / f"{find(1).stem}.ipynb").read_text(encoding="utf-8")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "01_tensors.ipynb").write_text(source, encoding="utf-8")
    texts = {
        "bytes": b"\xff\xfe\x00", "deep": b"[" * 100_000, "empty": b"", "list": b"[1]",
        "old": b'{"nbformat": 3, "worksheets": [{"cells": []}], "metadata": {}}',
        "long": json.dumps({"nbformat": 4, "cells": [
            {"cell_type": "code", "source": "x = 1\n" * 200_000}]}).encode(),
        "number": b'{"nbformat": 4, "cells": [1], "metadata": {"toytorch": {"chapter": '
                  + b"9" * 5000 + b"}}}",
    }  # fmt: skip
    for name, content in texts.items():
        (tmp_path / f"{name}.ipynb").write_bytes(content)
    wanted = set(texts)
    if os.name != "nt":
        os.mkfifo(tmp_path / "pipe.ipynb")
        (tmp_path / "linked").symlink_to(tmp_path / "real")
        (tmp_path / "link_01_tensors.ipynb").symlink_to(tmp_path / "real" / "01_tensors.ipynb")
        wanted |= {"pipe", "linked", "link"}
    found = {one.student: one for one in submissions(tmp_path)}
    assert set(found) == {"real", *wanted}
    assert not found["real"].problem
    for name in wanted:
        assert found[name].problem, name


@pytest.mark.parametrize(
    "odd",
    ["(" * 9999, "x = " + "-" * 99999 + "1", "x" + ".a" * 99999, "x = " + "1+" * 99999 + "1",
     "x = 1\0", "x = '\ud800'", "x = 9**9**9", "lambda:" * 50000 + "1"],
    ids=lambda odd: odd[:6].encode("unicode_escape").decode(),
)  # fmt: skip
def test_cells_that_no_compiler_takes_cost_only_themselves(odd: str) -> None:
    good = "def f():\n    return 1"
    found = extract.answer(cells(odd, good), "a.b", "f")
    assert (found.problem, found.source) == ("", good)
    own = extract.answer(cells(f"{good}\nx = {'-' * 99999}1"), "a.b", "f")
    assert own.problem.startswith("SyntaxError")


# -- the table ------------------------------------------------------------------------------------


def test_formulas_are_made_harmless(tmp_path: Path) -> None:
    judged = mark(tmp_path, "def other(): pass")
    names = ["=cmd()", " +1", "@sum", "-2", "\t=1", 'O"Neil, J', "Zoë 李"]
    every = [Judged(replace(judged.mark, student=name)) for name in names]
    text = command.marks(every)
    header = "student,notebook,exercise,points,of,extra,verdict,reason,late,by hand,comment,seconds"
    assert text.startswith(header)
    rows = list(csv.DictReader(io.StringIO(text)))
    wanted = ["'=cmd()", "' +1", "'@sum", "'-2", "'\t=1", 'O"Neil, J', "Zoë 李"]
    assert [row["student"] for row in rows] == wanted


def test_names_steer_no_terminal_and_share_no_page(tmp_path: Path) -> None:
    marker = Marker(tmp_path, Limits())
    names = ["a b", "a_b", "A_b", "<b>", "\x1b[31m", "\u202egnp", "\udcff", "\U0001d538" * 63]
    problem = "cannot be read"
    every = [
        marker.judge(Task(Submission(name, tmp_path / "x.ipynb", problem=problem)))
        for name in names
    ]
    assert [one.mark.student for one in every[4:7]] == ["�[31m", "�gnp", "�"]
    pages = feedback(every)
    assert len({name.lower() for name in pages}) == len(names)
    assert max(len(name.encode()) for name in pages) < 100
    assert not any("<b>" in page for page in pages.values())


def test_what_goes_wrong_with_one_answer_is_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a disk is full")

    monkeypatch.setattr("course.marking.supervisor.work", fail)
    judged = mark(tmp_path, GOOD)
    assert (judged.mark.verdict, judged.mark.points) == ("error", 0.0)
    assert "a disk is full" in judged.mark.reason
