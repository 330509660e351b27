"""What takes part in an answer: all that an honest notebook needs, and nothing for show."""

from __future__ import annotations

import ast
import time
import types
from types import SimpleNamespace
from typing import Any

import pytest

from course.marking import execute, extract, screen


def cells(*sources: str) -> list[Any]:
    return [SimpleNamespace(cell_type="code", source=source) for source in sources]


def kept(*sources: str) -> list[tuple[str, ast.stmt]]:
    found = extract.answer(cells(*sources), "a.b", "f")
    assert not found.problem
    return [(piece.label, node) for piece in found.pieces for node in piece.nodes]


def result(*sources: str) -> Any:
    """What ``f()`` gives where only the answer's statements have run."""
    space: dict[str, Any] = {"__name__": "__main__"}
    execute.run(kept(*sources), space)
    return space["f"]()


def whole(*sources: str) -> Any:
    """What ``f()`` gives in the notebook."""
    space: dict[str, Any] = {"__name__": "__main__", "check": lambda *_: None}
    exec(compile("\n".join(sources), "<cells>", "exec", dont_inherit=True), space)
    return space["f"]()


F = "def f():\n    return dict(table)"
REGISTER = "table = {}\ndef rule(name):\n    def keep(g):\n        table[name] = g(1)\n" \
    "        return g\n    return keep"  # fmt: skip

HONEST = {
    "a dictionary filled after its definition": ["table = {}", "table['a'] = 1", F],
    "filled after the function": ["table = {}", F, "table['a'] = 1\ntable['b'] = 2"],
    "a star import": ["from math import *", "def f():\n    return floor(pi)"],
    "a star import that hides a builtin": ["from math import *", "def f():\n    return pow(2, 2)"],
    "try to import": [
        "try:\n    import no_such_module as m\nexcept ImportError:\n    import math as m",
        "def f():\n    return m.floor(2.5)",
    ],
    "a loop that appends": [
        "items = []\nfor i in range(3):\n    items.append(i)", "def f():\n    return items",
    ],
    "a loop that fills": ["table = {}\nfor k in 'ab':\n    table[k] = ord(k)", F],
    "update and setdefault": [
        "table = {}\ntable.update(a=1)\ntable.setdefault('b', []).append(2)", F,
    ],
    "if and else": ["import sys\nif sys:\n    n = 1\nelse:\n    n = 2", "def f():\n    return n"],
    "with": [
        "import contextlib\nwith contextlib.suppress(KeyError):\n    n = 1\n    n = {}[0]",
        "def f():\n    return n",
    ],
    "while": ["n = 0\nwhile n < 3:\n    n += 1", "def f():\n    return n"],
    "augmented": ["items = [1]\nitems += [2]\nitems *= 2", "def f():\n    return items"],
    "del of an item": ["table = dict(a=1, b=2)\ndel table['a']", F],
    "a walrus": ["print(n := 3)", "def f():\n    return n"],
    "match": ["match [1, 2]:\n    case [a, b]:\n        n = a + b", "def f():\n    return n"],
    "unpacking": ["(a, *b), c = [1, 2, 3], 4", "def f():\n    return a, b, c"],
    "a registry with a decorator": [
        REGISTER, "@rule('one')\ndef one(x):\n    return x", F, "rule('two')(lambda x: x + 1)",
    ],
    "a registry that is an object": [
        "class Rules:\n    def __init__(self):\n        self.all = {}\n"
        "    def add(self, g):\n        self.all[g.__name__] = g(2)\n        return g",
        "rules = Rules()",
        "@rules.add\ndef one(x):\n    return x",
        "def f():\n    return rules.all",
    ],
    "a registry of subclasses": [
        "table = {}\nclass Op:\n    def __init_subclass__(cls):\n        table[cls.__name__] = 1",
        "class Add(Op):\n    pass\nclass Mul(Op):\n    pass",
        F,
    ],
    "a class that registers by a method of its own": [
        "class Op:\n    all = []\n    @classmethod\n    def add(c, x):\n        c.all.append(x)",
        "Op.add(3)",
        "def f():\n    return Op.all",
    ],
    "singledispatch": [
        "from functools import singledispatch\n@singledispatch\ndef size(x):\n    return 0",
        "@size.register(list)\ndef _(x):\n    return len(x)",
        "@size.register\ndef _(x: tuple):\n    return 2 * len(x)",
        "def f():\n    return size([1, 2]), size((1,)), size('a')",
    ],
    "an attribute of a function": ["def f():\n    return f.n", "f.n = 3"],
    "a method set later": [
        "class A:\n    pass", "A.go = lambda self: 4", "def f():\n    return A().go()",
    ],
    "a function that fills what it is given": [
        "table = {}\ndef fill(t):\n    t['a'] = 1\nfill(table)", F,
    ],
    "a function that fills and returns": [
        "items = []\ndef add(t, x):\n    t.append(x)\n    return len(t)",
        "n = add(items, 3)\nm = add(items, n)",
        "def f():\n    return items",
    ],
    "a function that says global": [
        "def start():\n    global n\n    n = 7", "start()", "def f():\n    return n",
    ],
    "a function that fills by its name": [
        "table = {}\ndef fill():\n    helper('a')\ndef helper(k):\n    table[k] = 1", "fill()", F,
    ],
    "through a loop's variable": [
        "rows = [[], []]\nfor row in rows:\n    row.append(1)", "def f():\n    return rows",
    ],
    "through another name": [
        "items = []\nsame = items", "items.append(1)", "def f():\n    return same",
    ],
    "a loop over functions that marks them": [
        "def g():\n    return 1\nfor one in (g,):\n    one.n = 2", "def f():\n    return g.n",
    ],
    "map and a bound method": [
        "items = []\nlist(map(items.append, [1, 2]))", "def f():\n    return items",
    ],
    "of the standard library": [
        "import heapq\nitems = []\nfor n in (3, 1, 2):\n    heapq.heappush(items, n)",
        "def f():\n    return items",
    ],
    "an iterator that was begun": [
        "numbers = iter(range(9))\nnext(numbers)", "def f():\n    return next(numbers)",
    ],
    "a helper defined twice, used in between": [
        "def g():\n    return 1", "n = g()", "def g():\n    return 2",
        "def f():\n    return n, g()",
    ],
    "a value made of an earlier value": [
        "n = 1", "m = n + 1", "n = 10", "def f():\n    return n, m",
    ],
    "a name that a builtin has": [
        "def sum(x):\n    return 42", "def f():\n    return sum([1])",
    ],
    "annotations of the future": [
        "from __future__ import annotations", "def f(x: Unknown = 3) -> Nothing:\n    return x",
    ],
    "a default that is a list": [
        "seen = []\ndef f(x=seen):\n    return x", "seen.append(5)",
    ],
    "a decorator of one's own": [
        "def twice(g):\n    return lambda: 2 * g()", "@twice\ndef f():\n    return 4",
    ],
    "help and timing in the cell": ["n = 3", "def f():\n    return n"],
    "a statement that fails": [
        "n = 1\ntry:\n    n = missing\nexcept NameError:\n    n = 2", "def f():\n    return n",
    ],
    "a conditional definition": [
        "if True:\n    def f():\n        return 1\nelse:\n    def f():\n        return 2",
    ],
    "partial": ["from functools import partial\ndef g(x):\n    return x", "f = partial(g, 3)"],
}  # fmt: skip


@pytest.mark.parametrize("sources", HONEST.values(), ids=HONEST)
def test_an_answer_gives_what_it_gives_in_the_notebook(sources: list[str]) -> None:
    assert result(*sources) == whole(*sources)


@pytest.mark.parametrize("sources", HONEST.values(), ids=HONEST)
def test_what_is_tried_beside_it_changes_nothing(sources: list[str]) -> None:
    """Cells of trying out between those of the answer are not run, whatever they are."""
    beside = [
        "f_shown = 1 / 0", "print(undefined)", "for _ in range(3):\n    undefined.show()",
        "import matplotlib.pyplot as plt", "plt.plot([1, 2])", "assert False", "raise SystemExit",
        "while True:\n    pass", "check('c.d', f_shown)", "%timeit f()", "plt?",
        "await something()",
    ]  # fmt: skip
    mixed = [cell for source in sources for cell in (*beside, source)]
    texts = [ast.unparse(node) for _, node in kept(*mixed, *beside)]
    assert texts == [ast.unparse(node) for _, node in kept(*sources)]


SHOWN = [
    "print(table)", "print(f())", "display(table, f)", "check('c.d', f)", "table",
    "import matplotlib.pyplot as plt\nplt.plot(table)\nplt.show()",
    "from toytorch import viz\nviz.graph(table)", "from course import look\nlook(f, beside=table)",
    "import toytorch as torch\ntorch.tensor = print", "import time\nstart = time.time()\nf()",
    "other = {}\nother['a'] = table", "for k in table:\n    print(k, table[k])", "assert f() == {}",
    "n = len(table)", "x = f()\nx.append(3)", "import copy\ny = copy.copy(table)",
    "losses = []\nfor step in range(9):\n    losses.append(step)",
    "for g, x in zip((f, len), 'ab'):\n    x.show()\n    g.y", "def g():\n    table.clear()",
]  # fmt: skip


@pytest.mark.parametrize("shown", SHOWN)
def test_what_only_shows_is_left_out(shown: str) -> None:
    texts = [ast.unparse(node) for _, node in kept("table = {'a': 1}", shown, F, shown)]
    assert texts == ["table = {'a': 1}", F]


@pytest.mark.parametrize("module", sorted(screen.STARS))
def test_a_star_import_gives_no_way_out(module: str) -> None:
    space: dict[str, Any] = {}
    exec(f"from {module} import *", space)
    given = {n: v.__name__ for n, v in space.items() if isinstance(v, types.ModuleType)}
    for name, of in given.items():
        used = ast.parse(f"from {module} import *\n{name}.x").body
        assert screen.fine(of) or screen.objections(used), name
    assert screen.objections(ast.parse(f"from {module} import *").body) == []


@pytest.mark.parametrize("module", ["os", "inspect", "ast", "course", "toytorch.jit", "."])
def test_a_star_import_of_anything_else_is_screened(module: str) -> None:
    found = extract.answer(
        cells(f"from {module} import *", "def f():\n    return unknown()"), "a.b", "f"
    )
    assert screen.objections(node for piece in found.pieces for node in piece.nodes)


def test_what_cannot_be_run_is_passed_over_but_definitions_are_not() -> None:
    assert result("table = {}\nfor n in (1, 2):\n    table[n] = 1 / (2 - n)", F) == {1: 1.0}
    with pytest.raises(ModuleNotFoundError):
        result("import no_such_module", "def f():\n    return no_such_module")


def test_long_notebooks_take_no_long_time() -> None:
    lines = "\n".join(f"a{n + 1} = a{n}" for n in range(5000))
    adds = "x = 0\n" + "x += 1\n" * 5000 + "items = []\n" + "items.append(x)\n" * 5000
    begun = time.process_time()
    found = kept(f"a0 = 1\n{lines}\n{adds}def f():\n    return a5000, x, items")
    assert time.process_time() - begun < 20  # 3 s; where all pairs are looked at, minutes
    assert len(found) == 5001 + 5001 + 5001 + 1
