"""Attacks on the marker: none gives itself points, changes anything outside, or costs much.

The first ones are those that once worked. Answers are marked past the sieve that looks at their
text, as if it did not exist: what is tested here has to hold without it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import toytorch as torch
from course import registry
from course.cases import same
from course.contents import ROOT, find
from course.marking import driver, extract, known, plain, screen, start, submissions, supervisor
from course.marking.grade import Judged, Marker, Task
from course.marking.submissions import Submission
from course.marking.supervisor import Limits
from course.records import Exercise

FIRST = registry.exercise("tensors.shape")
EXERCISES = list(registry.all_exercises().values())


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def mark(tmp_path: Path, found: Exercise, source: str, seconds: float = 4.0) -> Judged:
    """Mark an answer past the sieve."""
    marker = Marker(tmp_path, Limits(seconds, 512), screened=False)
    cells = [SimpleNamespace(cell_type="code", source=source)]
    handed = Submission(
        "s", tmp_path / "s.ipynb", find(found.chapter), SimpleNamespace(cells=cells)
    )
    return marker.judge(Task(handed, found, 2.0))


# -- points for nothing ---------------------------------------------------------------------------

_EVERY_CLASS = """
def every_class():
    waiting, seen = [object], set()
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += type.__subclasses__(one)
    return {one.__name__: one for one in seen}
"""
_FDS = """
import os
def say(*lines):
    for n in range(3, 64):
        try:
            os.write(n, b"".join(lines))
        except OSError:
            pass
"""

# each is the body of the answer, below some definitions; none of them knows what a shape is
NOTHING = {
    # those that worked once
    "patches the case classes while it runs": (_EVERY_CLASS, """
        for name, one in every_class().items():
            if name in ("Case", "Every"):
                one.accepts = one.accepts_error = lambda self, got: True
                one.gives = lambda self, expected, tolerance=0: setattr(self, "run", lambda: expected) or self
        return ()"""),
    "imports the reference and replays it": ("", """
        from course.exercises.ch01.shape import shape
        return shape.answer.value(*args)"""),
    "replaces bool": ("import builtins", """
        builtins.bool = lambda *a: True
        return ()"""),
    "finds modules in modules": ("import inspect", """
        sys = getattr(inspect, "sys")
        found = [m for n, m in sys.modules.items() if "exercises" in n]
        return found[0].shape.answer.value(*args)"""),
    "names its code like a file of the judge": ("import course.data", """
        code = compile("class Yes(tuple):\\n  __eq__ = lambda *a: True\\nmade = Yes()", %r, "exec")
        space = {}
        exec(code, space)
        return space["made"]""".replace("%r", repr(str(ROOT / "course" / "judge.py")))),
    # and others
    "writes the judge's lines itself": (_FDS, """
        say(*(b'["case", %d, %d, 0, "value", false, ""]\\ttrue\\n' % (c, n) for c in range(9) for n in range(9)))
        say(b'["done", 0.1]\\tnull\\n')
        os._exit(0)"""),
    "writes a report of its own": (_FDS, """
        say(b'{"outcomes": [["a number, a list, a table", "ok", "", "", "", ""]], "wrong": "", "over": ""}\\n')
        os._exit(0)"""),
    "says that all checks are over": (_FDS, """
        say(*(b'["end", %d]\\tnull\\n' % n for n in range(9)), b'["done", 0.1]\\tnull\\n')
        return ()"""),
    "floods the judge": (_FDS, """
        for _ in range(40):
            say(b"x" * 2**20)
        say(b'\\n["case", 0, 0, 0, "value", false, ""]\\t["tuple"]\\n')
        return ()"""),
    "says something nested too deep, and too large": (_FDS, """
        say(b'["case", 0, 0, 0, "value", false, ""]\\t' + b'["list", ' * 100000 + b'\\n')
        say(b'["case", 0, 1, 0, "value", false, ""]\\t["int", "' + b'f' * 900000 + b'"]\\n')
        say(b'["case", 0, 2, 0, "value", false, ""]\\t["tensor", "float32", [4611686018427387904, 4, 0], true, ""]\\n')
        return ()"""),
    "equals everything": ("""
class Yes(tuple):
    __eq__ = lambda *a: True
    __ne__ = lambda *a: False
    __len__ = lambda self: 2
    __iter__ = lambda self: iter((2, 3))
    __hash__ = tuple.__hash__
""", "\n        return Yes()"),
    "says that its class is another": ("""
class Tuple:
    __class__ = tuple
    dtype = property(lambda self: self)
    shape = tolist = __eq__ = lambda *a: True
""", "\n        return Tuple()"),
    "patches what makes data of values": (_EVERY_CLASS, """
        class Any:
            def __getattr__(self, name): return self
            def __call__(self, *a): return self
            def __eq__(self, other): return True
        every_class()["_Writer"].write = lambda self, thing, depth: Any()
        return ()"""),
    "patches what tells of cases": (_EVERY_CLASS, """
        talk = every_class()["_Talk"]
        tell = talk.tell
        talk.tell = lambda self, kind, *a, value="": tell(self, "end" if kind == "case" else kind, *a[:1])
        talk.on = lambda self: True
        return ()"""),
    "leaves the checks without cases": (_EVERY_CLASS, """
        for name, one in every_class().items():
            if name in ("Case", "Every"):
                one.steps = lambda self: iter(())
        return ()"""),
    "reads the course": ("import toytorch, pathlib", """
        place = pathlib.Path(toytorch.__file__).parent.parent / "course" / "exercises" / "ch01"
        space = {}
        exec((place / "shape.py").read_text(), space)
        return space["shape"].answer.value(*args)"""),
    "reads the solutions": ("import toytorch, pathlib", """
        place = pathlib.Path(toytorch.__file__).parent.parent / "solutions" / "01_tensors.ipynb"
        return tuple(place.read_bytes())"""),
    "looks through all objects": ("import gc", """
        for one in gc.get_objects():
            if type(one).__name__ == "Variant":
                return one.value(*args)
        return ()"""),
    "looks into the frames of its callers": ("import sys", """
        frame = sys._getframe(1)
        while frame:
            if "expected" in frame.f_locals:
                return frame.f_locals["expected"]
            frame = frame.f_back
        return ()"""),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTHING)
def test_no_answer_gives_itself_points(tmp_path: Path, cache: None, name: str) -> None:
    before, body = NOTHING[name]
    source = f"{before}\n\ndef {FIRST.function}(*args):{body}\n"
    judged = mark(tmp_path, FIRST, source.replace("\n        ", "\n    "))
    assert judged.mark.verdict in ("red", "ended", "time"), judged.mark.reason
    # the answer for a single number is `()`, so a share may be right; a check needs more
    assert judged.mark.points == 0, judged.mark.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("autograd.tensor", "from mytorch.tensor import Tensor"),
        ("autograd.tensor", "from mytorch import Tensor as T\nclass Tensor(T): pass"),
        ("modules.layer", "from mytorch.linear import Linear"),
    ],
)
def test_what_the_package_has_of_this_exercise_is_not_there(
    tmp_path: Path, cache: None, name: str, source: str
) -> None:
    found = registry.exercise(name)
    judged = mark(tmp_path, found, source)
    assert (judged.mark.verdict, judged.mark.points) == ("red", 0.0)
    assert "mytorch" in judged.mark.reason


# -- what the process of an answer knows ----------------------------------------------------------


@pytest.mark.parametrize("found", EXERCISES, ids=lambda found: found.name)
def test_no_reference_goes_where_answers_run(found: Exercise) -> None:
    text = "\n".join(driver.driver(found).values())
    compile(text, "<driver>", "exec")
    for word in (".answer", ".gives(", ".as_by(", ".holds(", ".raises(", ".means(", ".mutant"):
        assert word not in text
    whole = [line.strip() for line in found.answer.source.splitlines()[1:]]
    telling = {line for line in whole if len(line) > 30 and not line.startswith(("def ", "#", '"'))}
    checks = Path(sys.modules[found.answer.module].__file__ or "").read_text(encoding="utf-8")
    shared = {line for line in telling if checks.count(line) > 1}
    assert not [line for line in telling - shared if line in text]
    assert not {m.label for m in found.mutants if len(m.label) > 20 and m.label in text}
    own = driver.own_package(found)
    assert found.answer.source.strip() not in "".join(text for _, text in own.values())


def test_every_exercise_is_judged_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """There is one path. What a case comes to travels as data, or as a text that equals nothing."""
    apart = [found for found in EXERCISES if driver.driver(found)[found.answer.module]]
    full = sum(len(driver._source(found.answer.module)) for found in EXERCISES)
    left = sum(len(driver.driver(found)[found.answer.module]) for found in EXERCISES)
    with capsys.disabled():
        print(f"\n{len(apart)} of {len(EXERCISES)} exercises are judged in a process of their own,")
        print(
            f"0 where the answer runs; of {full:,} characters of exercises, answers meet {left:,}"
        )
    assert apart == EXERCISES
    assert left < full / 3


@pytest.mark.parametrize(
    "hostile",
    [
        "", "{}", "[]", "[1]", '["no"]', "[" * 100_000, '["tuple"', '["list", {}]', "1e999x",
        '["tensor", "float32", [2], false, ""]', '["tensor", "load", [0], false, ""]',
        '["tensor", "float32", [-1], false, ""]', '["tensor", "float32", [1e9], false, ""]',
        '["tensor", "float32", [4611686018427387904, 4, 1], false, ""]',
        '["array", "O", [1], "AAAAAAAAAAA="]', '["array", "<f4", [true], "AAAAAA=="]',
        '["scalar", "V8", "AAAAAAAAAAA="]', '["error", [], "", true]',
        '["error", [["builtins", "eval"]], "", true]', '["error", [["os", "system"]], "", true]',
        '["dict", 1]', '["dict", [["list"], 1]]', '["set", ["list"]]', '["int", "zz"]',
        json.dumps(["dict", *([n * (2**61 - 1), 0] for n in range(20_000))]),
        json.dumps(["list", *[0] * 500_000]),
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_what_is_no_value_is_refused_soon(hostile: str) -> None:
    begun = time.process_time()
    with pytest.raises(plain.BadData):
        plain.value(hostile)
    assert time.process_time() - begun < 2


def test_values_travel() -> None:
    for value in (
        None, True, -3, 2**90, 0.1, float("inf"), 1j, "a\ud800\n", b"\0", (1, [2.0, {"a": (3,)}]),
        {1, 2}, torch.float16, torch.Size([2, 3]), torch.arange(6).reshape(2, 3).t(),
        torch.tensor([1.5, float("nan")], dtype=torch.bfloat16), torch.zeros(0, 3), ...,
        torch.tensor(2.0, requires_grad=True).detach().numpy(),
    ):  # fmt: skip
        back = plain.value(plain.text(value))
        assert type(back) is type(value)
        assert same(back, value) or value is ... or bool((back == value).all())
    error = plain.value(plain.text(ZeroDivisionError("twice")))
    assert isinstance(error, ZeroDivisionError) and str(error) == "twice"
    for other in (object(), len, torch.nn.Linear(1, 1), (n for n in "a")):
        assert isinstance(plain.value(plain.text(other)), plain.Opaque)


# -- reaching out ---------------------------------------------------------------------------------

_CALLS = """
import ctypes, os, sys
from pathlib import Path
from course.marking import sandbox
folder, outside = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
held = sandbox.close(Path(folder), [Path(sys.prefix), Path(sys.base_prefix)])
if "seccomp" not in held:
    sys.exit(print("none"))
path, here, buffer = outside.encode(), -100, ctypes.create_string_buffer(64)
x86 = {"setpriority": (141, 0, os.getppid(), 5), "sched_setaffinity": (203, os.getppid(), 8, buffer),
       "shmget": (29, 0, 4096, 0o1600), "memfd_create": (319, b"x", 0), "chown": (92, path, 0, 0),
       "setxattr": (188, path, b"user.a", b"1", 1, 0), "sethostname": (170, b"x", 1),
       "msgget": (68, 0, 0o1600), "mq_open": (240, b"/x", 0o101, 0o600, 0), "socket": (41, 1, 1, 0),
       "kill": (62, os.getppid(), 0), "fork": (57,), "prlimit64": (302, 0, 7, buffer, 0),
       "fcntl F_SETOWN": (72, 1, 8, os.getppid()), "F_SETPIPE_SZ": (72, 1, 1031, 1 << 20),
       "ioctl TIOCSTI": (16, 0, 0x5412, b"x"), "io_uring_setup": (425, 1, buffer), "setsid": (112,),
       "ptrace": (101, 16, os.getppid(), 0, 0), "bpf": (321, 0, buffer, 0), "mount": (165, path, path, 0, 0, 0),
       "unshare": (272, 0x10000000), "memfd_secret": (447, 0), "pidfd_open": (434, os.getppid(), 0),
       "process_vm_readv": (310, os.getppid(), buffer, 1, buffer, 1, 0), "personality": (135, 8),
       "a call that is not there yet": (999,), "x32": (0x40000001, 1, b"x", 1)}
arm = {"setpriority": (140, 0, os.getppid(), 5), "shmget": (194, 0, 4096, 0o1600),
       "memfd_create": (279, b"x", 0), "fchownat": (54, here, path, 0, 0, 0),
       "setxattr": (5, path, b"user.a", b"1", 1, 0), "sethostname": (161, b"x", 1)}
for name, call in (x86 if os.uname().machine == "x86_64" else arm).items():
    ctypes.set_errno(0)
    if libc.syscall(*call) != -1 or ctypes.get_errno() != 1:
        print(name, "passed")
for call in ((90, path, 0o777), (268, here, path, 0o777), (452, here, path, 0o777, 0),
             (280, here, path, None, 0)) if os.uname().machine == "x86_64" else (
             (53, here, path, 0o777), (88, here, path, None, 0)):
    libc.syscall(*call)  # says yes, and does nothing
print("done")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is Linux's")
def test_system_calls_that_nobody_needs_are_refused(tmp_path: Path) -> None:
    outside, inside = tmp_path / "keep.txt", tmp_path / "work"
    outside.write_text("precious")
    outside.chmod(0o600)
    os.utime(outside, (10, 10))
    inside.mkdir()
    line = [sys.executable, "-c", _CALLS, str(inside), str(outside)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    if done.stdout == "none\n":
        pytest.skip("this system has no seccomp for this processor")
    assert done.stdout == "done\n", done.stdout + done.stderr
    assert (outside.stat().st_mode & 0o777, outside.stat().st_mtime) == (0o600, 10)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is Linux's")
def test_memory_outside_of_the_process_is_not_to_be_had(tmp_path: Path, cache: None) -> None:
    right = FIRST.answer.source.replace(f"{FIRST.function}(", "right(")
    source = f"""import os, mmap
{right}

def {FIRST.function}(*args):
    for make in (lambda: os.memfd_create("m"), lambda: os.setpriority(0, os.getppid(), 5),
                 lambda: os.sched_setaffinity(os.getppid(), [0])):
        try:
            make()
        except OSError:
            continue
        return None
    return right(*args)
"""
    judged = mark(tmp_path, FIRST, source)
    assert (judged.mark.verdict, judged.mark.points) == ("green", 2.0), judged.mark.reason


# -- notebooks that cost the marker itself --------------------------------------------------------

_TAIL = f"\ndef {FIRST.function}(x):\n    return h(x, a0)\n"
_SUM = "+".join(['"ab"'] * 900)
COSTLY = {
    "names": "\n".join(f"a{n} = a{n + 1}" for n in range(16_000)),
    "names that just fit": "\n".join(f"a{n}=a{n + 1}" for n in range(2_900)),
    "sums of texts": "\n".join(f"x{n} = {_SUM}" for n in range(250)),
    "sums that just fit": f"def h(x, y): return {_SUM}\n" + f"a0 = {_SUM}\n" * 25,
    "brackets": "a0 = " + "[" * 100_000,
    "conditions": "a0 = " + "a if b else " * 9000 + "c",
    "attributes": "a0 = x" + ".a" * 40_000,
    "decorators": "a0 = 0\n" + "@a0\n" * 2500 + "def h(*x): pass",
}


@pytest.mark.parametrize("name", COSTLY)
def test_no_code_costs_the_marker_much(tmp_path: Path, name: str) -> None:
    cell = {"cell_type": "code", "source": COSTLY[name] + _TAIL}
    (tmp_path / "s_01_tensors.ipynb").write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    begun = time.process_time()
    (handed,) = submissions.find(tmp_path)
    for found in registry.of_chapter(1) if not handed.problem else ():
        answer = extract.answer(handed.notebook.cells, found.name, FIRST.function)
        if not answer.problem:
            screen.objections(node for piece in answer.pieces for node in piece.nodes)
    assert time.process_time() - begun < 10  # 2 s; once 35 s and more


_READ = """
import resource, sys, time
from pathlib import Path
from course.marking import submissions
before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
for one in submissions.find(Path(sys.argv[1])):
    assert one.problem, one
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // (1024 if sys.platform != "darwin" else 2**20), round(time.process_time() - begun, 1))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows tells no peak of memory this way")
def test_no_file_costs_the_marker_much(tmp_path: Path) -> None:
    texts = {
        "objects": "[" + "{}," * (32 * 2**20 // 3) + "{}]",
        "objects that just fit": "[" + "{}," * 49_000 + "{}]",
        "numbers": "[" + "1," * 999_000 + "1]",
        "depth": "[" * 90_000,
        "one text": '{"nbformat": 4, "cells": [{"cell_type": "code", "source": "' + "é" * 9_000_000
                    + '"}]}',
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / f"{name}_01_tensors.ipynb").write_text(text, encoding="utf-8")
    line = [sys.executable, "-c", _READ, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    megabytes, seconds = map(float, done.stdout.split())
    assert megabytes < 100
    assert seconds < 5


# -- the two processes agree ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "position"),
    [("tensors.shape", 0), ("memory.view", 2), ("ops.dispatch", 0),
     ("inplace.leaves", 1), ("extending.hvp", 0), ("optim.sgd", 0), ("data.collate", 0)],
)  # fmt: skip
def test_a_mistake_is_recognised_from_data(
    tmp_path: Path, cache: None, name: str, position: int
) -> None:
    found = registry.exercise(name)
    mutant = found.mutants[position]
    judged = mark(tmp_path, found, driver.reference(found, mutant.source), seconds=20.0)
    assert judged.mark.reason.startswith(mutant.label), judged.mark.reason
    assert judged.verdict is not None
    rows = known.mutants(found)[position]
    assert [(o.check, *o.signature) for o in judged.verdict.outcomes] == [
        (row[0], row[1], row[4]) for row in rows
    ]


@pytest.mark.slow
def test_the_two_processes_need_no_forking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows, where each is a Python of its own."""
    monkeypatch.setattr(start, "_FORKS", False)
    whole = driver.whole(driver.reference(FIRST))
    assert supervisor.work(FIRST, whole, Limits(20.0, 1024)).green
