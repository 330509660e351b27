"""What keeps the framework's house in order, counted from its source: `python -m tests.test_house`.

    formulas    pointwise ops that do not state what they compute as one formula, and for no known reason
    op names    the name of an op as the key of a dictionary, an element of a set or of a list of
                names, or the other side of a comparison: a table beside the records
    op.name     a comparison with the name of a record, or a look into a table by it
    circles     files that import each other when they are loaded
    inside      imports inside functions without a comment (on the line or above) that says why
    xp is np    kernels of ops that ask which array module they were given
    Any         the share of annotated parameters that may be anything
    ignores     lines with `type: ignore`
    silent      those without a comment (on the line or above) that says why

Each has a limit. Those above 0 are what is left to do; whoever brings a count down lowers its limit.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import toytorch
from toytorch.core.op import KINDS, Op, registry

ROOT = Path(toytorch.__file__).parent
LIMITS = {
    "formulas": 0,
    "op names": 0,
    "op.name": 0,
    "circles": 0,
    "inside": 0,
    "xp is np": 0,
    "Any": 0.082,
    "ignores": 65,
    "silent": 0,
}

# Pointwise ops that are no formula of the loop language, and why.
WITHOUT_FORMULA = {
    "conj_physical angle complex polar": "complex numbers, which the loop language has not",
    "nan_to_num": "what takes the place of infinity is a fact of the type; complex numbers",
    "igamma igammac polygamma mvlgamma special_zeta _standard_gamma_grad _dirichlet_grad": "series and "
    "fractions that go on until a term is small, or as far as an argument says",
    "special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
    "special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t "
    "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v "
    "special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he "
    "special_laguerre_polynomial_l special_legendre_polynomial_p": "recurrences of n steps",
    "special_modified_bessel_k0 special_scaled_modified_bessel_k0 special_modified_bessel_k1 "
    "special_scaled_modified_bessel_k1 special_bessel_y0 special_bessel_y1 "
    "special_airy_ai": "several expansions with tables, of which each element needs one",
}

# Where names of ops may stand, and why: a file or a folder, and the words ("" for all of them).
ALLOWED: dict[str, tuple[str, str]] = {
    "loops/": ("words of the loop language, after which ops are named", ""),
    "nn/modules/module.py": ("an argument of `Module.to`", "copy"),
    "compat/fx/experimental/proxy_tensor.py": ("a mode of `make_fx`", "real"),
    "backends/cupy_kernels.py": (
        "CuPy's functions",
        "add minimum maximum logical_and logical_not logical_or logical_xor copy",
    ),
    "backends/cupy_numbers.py": ("functions of Python", "abs"),
    "backends/cupy_rows.py": ("kernels that a backend has, by their own names", ""),
    "backends/cupy_runtime.py": ("both pools of an allocator", "all"),
    "backends/simulator/allocator.py": ("a key of PyTorch's snapshots", "addr"),
    "backends/launching.py": (
        "Python's operators; a method of arrays",
        "fill pow add sub mul nonzero",
    ),
    "cuda/emulator/": ("functions of CUDA C, atomics, and words of its grammar", ""),
    "kernels/halves.py": ("the reduction of a loss", "mean"),
    "kernels/sequential.py": (
        "functions of C's library, of Python and of LLVM",
        "abs cos erfc exp expm1 lgamma log log1p pow sin",
    ),
    "cuda/comm.py": ("functions between devices", "scatter gather"),
    "cuda/memory.py": ("both pools of an allocator", "all"),
    "core/formulas.py": ("words of formulas", "maximum minimum sign"),
    "core/node_class.py": (
        "words of conditions in formulas and of `reduction=`; names of results",
        "where logical_not mean sum values",
    ),
    "core/op.py": ("kinds", "view"),
    "jit/fuser/lower.py": ("steps of a loop program", "add mul pow prod sum where"),
    "kernels/table.py": ("kernels that a backend has, by their own names", ""),
    "kernels/pool.py": ("what a pool makes of a window", "max mean"),
    "jit/builtins.py": ("Python's operators and functions of its own values", ""),
    "jit/interpreter.py": ("attributes of a tensor", "imag real"),
    "jit/script/": ("methods of Python's own values, functions of `math`", "values index"),
    "ops/aten_forms.py": ("words of `reduction=`", "mean sum"),
    "ops/foreach.py": ("the public functions `_foreach_…` that are made", ""),
    "ops/shaping/view_copies.py": ("the public functions `…_copy` that are made", ""),
    "ops/special/names.py": ("the public names in `torch.special`", ""),
    "ops/operators.py": ("Python's operators and the methods that they call", ""),
    "ops/overloads.py": ("rounding modes; methods that are made", "floor trunc cumsum cumprod"),
    "ops/indexing/scatter.py": ("words of `reduce=`", "add"),
    "ops/indexing/scatter_reduce.py": ("words of `reduce=`", "amax amin mean prod sum"),
    "ops/reductions/segment.py": ("words of `reduce=`", "max mean min prod sum"),
    "ops/nn/loss.py": ("words of `reduction=`", "mean sum"),
    "ops/nn/loss_pairs.py": ("words of `reduction=`", "mean sum"),
    "ops/reductions/order_statistics.py": ("words of `interpolation=`", "linear"),
    "ops/elementwise/activation.py": ("words of `approximate=`", "tanh"),
    "ops/named_results.py": ("names of results", "values"),
    "ops/reference.py": ("kinds of ops", "view"),
    "nn/functional/": ("names that the package exports; words of `reduction=` and `mode=`", ""),
    "nn/init.py": ("words of `nonlinearity=` and `mode=`", ""),
    "nn/modules/": ("words of `nonlinearity=` and `activation=`", "relu tanh gelu"),
    "nested/": (
        "functions that a subclass answers to, by the names it is told, and its methods",
        "",
    ),
    "masked/tensor.py": ("functions that a subclass answers to, by the names it is told", ""),
    "compat/return_types.py": ("classes that are found by the public names", ""),
    "compat/_names.py": ("methods of sparse tensors", "values"),
    "compat/nn/_reduction.py": ("words of `reduction=`", "mean sum"),
    "nn/utils/_per_sample_grad.py": ("words of `loss_reduction=`", "mean sum"),
    "functional.py": ("names that the package exports", ""),
    "sparse/__init__.py": ("names that the package exports", ""),
    "optim/": ("words of `mode=`, `anneal_strategy=` and the like", "cos linear min max abs"),
    "trainer/": ("words of `mode=` and `reduce_fx=`; Python's module", "mean sum min max random"),
    "autograd/graph.py": ("words of `mode=`", "all any"),
    "backends/sparse.py": ("slots of an array", "values"),
    "fx/graph.py": (
        "functions of Python's operator",
        "add eq ge gt le lt mul ne neg pow sub",
    ),
    "distributions/constraints.py": (
        "names that the module exports",
        "cat real square stack",
    ),
    "core/printing.py": ("words of `set_printoptions`", "threshold"),
    "facts/": ("attributes of a device; an attribute of edges", "index"),
    "profiler/": ("keys of a trace that Chrome reads", "stack cat"),
    "serialization/storages.py": ("a flag in archives", "neg"),
    "vision/transforms/values.py": ("words of `value=`", "random"),
    "viz/device/chrome_trace.py": ("a field of the trace event format", "cat"),
    "viz/device/timeline_read.py": ("kinds of spans", "copy"),
    "viz/graph/graph_picture.py": ("the program of Graphviz", "dot"),
}


# -- reading ---------------------------------------------------------------------------------------


@functools.cache
def files() -> dict[str, ast.Module]:
    """The framework's modules by their paths below `toytorch`."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for path in sorted(ROOT.rglob("*.py"))
    }


def strings(node: ast.AST | None) -> Iterator[str]:
    """The strings of a constant, or of a tuple, list, set or call of frozenset."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for item in node.elts:
            yield from strings(item)
    elif isinstance(node, ast.Starred):
        yield from strings(node.value)
    elif isinstance(node, ast.Call) and called(node) in ("frozenset", "set", "tuple", "fromkeys"):
        for item in node.args:
            yield from strings(item)


def called(node: ast.Call) -> str:
    """The last name of what is called."""
    function = node.func
    return getattr(function, "id", "") or getattr(function, "attr", "")


def about_kinds(node: ast.Compare) -> bool:
    """Whether a comparison is with the kind of an op or a node: "view" is a kind, too."""
    sides = [node.left, *node.comparators]
    return any(getattr(s, "attr", getattr(s, "id", "")) == "kind" for s in sides) and all(
        word in KINDS for s in sides for word in strings(s)
    )


# -- formulas --------------------------------------------------------------------------------------


def pointwise() -> list[Op]:
    """The records that compute element by element."""
    return [op for op in registry.values() if op.kind == "pointwise"]


def without_formula() -> set[str]:
    """Those that state none."""
    return {op.name for op in pointwise() if op.formula is None}


# -- names of ops ----------------------------------------------------------------------------------


def table_words(tree: ast.Module) -> Iterator[str]:
    """The strings that stand where a table or a test by name has them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key in node.keys:
                yield from strings(key)
        elif isinstance(node, ast.Set):
            yield from strings(node)
        elif isinstance(node, ast.Compare) and not about_kinds(node):
            for side in (node.left, *node.comparators):
                yield from strings(side)
        elif isinstance(node, ast.Call) and called(node) in ("frozenset", "set", "dict"):
            yield from strings(node)
            yield from (k.arg for k in node.keywords if k.arg is not None)
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Tuple, ast.List)):
            yield from strings(node.value)
        elif isinstance(node, ast.match_case):
            for inner in ast.walk(node.pattern):
                yield from strings(inner)


@functools.cache
def op_names() -> dict[str, set[str]]:
    """The names of ops in tables and tests, by file."""
    found = {
        path: {w for w in table_words(tree) if w.removeprefix("aten::") in registry}
        for path, tree in files().items()
    }
    return {path: words for path, words in found.items() if words}


def unexpected() -> dict[str, set[str]]:
    """The names that no entry of ALLOWED explains."""
    left = {}
    for path, words in op_names().items():
        for place, (_, fine) in ALLOWED.items():
            if path == place or (place.endswith("/") and path.startswith(place)):
                words = words - set(fine.split()) if fine else set()
        if words:
            left[path] = words
    return left


def is_name_of_record(node: ast.AST) -> bool:
    """`op.name`, `node.record.name`, `self.op.name`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "name"
        and getattr(node.value, "id", getattr(node.value, "attr", "")) in ("op", "record")
    )


# Files that look things up by the name of a record, and why.
BY_NAME = {
    "backends/sparse.py": "a device is a table of kernels",
    "ops/reference.py": "the pages are called as the functions are",
}


@functools.cache
def name_tests() -> dict[str, list[str]]:
    """Comparisons of a record's name, and looks into tables by it, by file.

    What the name looks like ("." in op.name: an overload) is no test of which op it is.
    """
    found: dict[str, list[str]] = {}
    for path, tree in files().items():
        for node in ast.walk(tree):
            asked: list[ast.AST] = []
            if isinstance(node, ast.Compare) and "." not in strings(node.left):
                asked = [node.left, *node.comparators]
            elif isinstance(node, ast.Subscript):
                asked = [node.slice]
            elif isinstance(node, ast.Call) and called(node) == "get":
                asked = list(node.args)
            if any(map(is_name_of_record, asked)):
                found.setdefault(path, []).append(f"{node.lineno}: {ast.unparse(node)}")
    return found


# -- imports ---------------------------------------------------------------------------------------


def module_of(path: str) -> str:
    """The name of the module in a file.

    >>> module_of("ops/__init__.py"), module_of("core/op.py")
    ('toytorch.ops', 'toytorch.core.op')
    """
    parts = Path(path).with_suffix("").parts
    return ".".join(("toytorch", *parts)).removesuffix(".__init__")


@functools.cache
def modules() -> dict[str, str]:
    """The file of each module."""
    return {module_of(path): path for path in files()}


def imported(node: ast.AST) -> Iterator[str]:
    """The framework's modules that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules())
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            if whole in modules() or node.module in modules():
                yield whole if whole in modules() else node.module


def when_loaded(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The statements that run when a module is loaded; types alone are not among them."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from when_loaded(node.orelse)
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from when_loaded(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from when_loaded(handler.body)


def groups_of(needs: dict[str, set[str]]) -> list[list[str]]:
    """Groups of which each member leads, directly or not, to every other."""
    reach: dict[str, set[str]] = {}
    for start in needs:
        seen, waiting = set[str](), [start]
        while waiting:
            new = needs[waiting.pop()] - seen
            seen |= new
            waiting += new
        reach[start] = seen
    groups = {frozenset(b for b in reach[a] if a in reach[b]) for a in needs if a in reach[a]}
    return sorted(sorted(group) for group in groups)


@functools.cache
def circles() -> list[list[str]]:
    """Files that import each other when they are loaded."""
    return groups_of(
        {
            name: {t for node in when_loaded(files()[path].body) for t in imported(node)} - {name}
            for name, path in modules().items()
        }
    )


def unexplained() -> list[str]:
    """Imports inside functions without a comment."""
    found = []
    for path, tree in files().items():
        lines = (ROOT / path).read_text().split("\n")
        for outer in ast.walk(tree):
            if not isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for node in ast.walk(outer):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    first = node.lineno - 1
                    while lines[first - 1].lstrip().startswith(("import ", "from ")):
                        first -= 1  # one comment serves imports that stand together
                    around = lines[first - 1 : node.end_lineno]
                    if not any("#" in line for line in around):
                        found.append(f"{path}:{node.lineno}")
    return sorted(set(found))


IGNORE = re.compile(r"# type: ignore(\[[\w, -]*\])?\s*(# *(?P<reason>[\w`].*))?")


# -- kernels and types -----------------------------------------------------------------------------


def asks_for_numpy() -> list[str]:
    """`xp is np`, `xp is not numpy` in the ops."""
    return [
        f"{path}:{node.lineno}"
        for path, tree in files().items()
        if path.startswith("ops/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        and {getattr(s, "id", "") for s in (node.left, *node.comparators)} & {"xp"}
        and {getattr(s, "id", "") for s in (node.left, *node.comparators)} & {"np", "numpy"}
    ]


def parameters() -> tuple[int, int]:
    """How many annotated parameters may be anything, of how many."""
    anything = whole = 0
    for tree in files().values():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                a = node.args
                every = (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg)
                notes = [p.annotation for p in every if p is not None and p.annotation is not None]
                whole += len(notes)
                anything += sum(getattr(n, "id", "") == "Any" for n in notes)
    return anything, whole


def ignores() -> tuple[int, int]:
    """Lines that the type checker is told to leave alone, and how many of them do not say why.

    A comment behind or above such a line says it.
    """
    count = silent = 0
    for path in files():
        lines = ["", *(ROOT / path).read_text().split("\n")]
        for above, line in itertools.pairwise(lines):
            if found := IGNORE.search(line):
                count += 1
                silent += not found["reason"] and not above.lstrip().startswith("# ")
    return count, silent


@functools.cache
def counts() -> dict[str, float]:
    """Everything that has a limit."""
    anything, whole = parameters()
    told, silent = ignores()
    return {
        "formulas": len(without_formula() - {*" ".join(WITHOUT_FORMULA).split()}),
        "op names": sum(map(len, unexpected().values())),
        "op.name": sum(len(v) for path, v in name_tests().items() if path not in BY_NAME),
        "circles": len(circles()),
        "inside": len(unexplained()),
        "xp is np": len(asks_for_numpy()),
        "Any": round(anything / whole, 3),
        "ignores": told,
        "silent": silent,
    }


# -- the tests -------------------------------------------------------------------------------------


def test_exceptions_without_a_formula_are_needed() -> None:
    assert {*" ".join(WITHOUT_FORMULA).split()} <= without_formula()


def test_no_table_by_the_names_of_ops() -> None:
    assert unexpected() == {}


def test_every_exception_is_needed() -> None:
    for place, (_, fine) in ALLOWED.items():
        words = {
            w
            for path, found in op_names().items()
            if path == place or (place.endswith("/") and path.startswith(place))
            for w in found
        }
        assert words, f"nothing in {place} is an exception any more"
        assert set(fine.split()) <= words, f"{place}: {set(fine.split()) - words} are gone"


def test_nobody_asks_for_the_name_of_a_record() -> None:
    assert name_tests().keys() == BY_NAME.keys()


def test_no_circles_of_files() -> None:
    assert circles() == []


@pytest.mark.parametrize("what", LIMITS)
def test_within_its_limit(what: str) -> None:
    assert counts()[what] <= LIMITS[what]


def test_the_count_finds_what_it_looks_for() -> None:
    """Each question, asked of a text that has one of what it counts."""
    tables = 'A = frozenset(["mul"])\nB = {"add": 1}\nif x in ("sub", "div"): pass\nC = ("mm", "t")'
    assert {*table_words(ast.parse(tables))} == {"mul", "add", "sub", "div", "mm", "t"}
    assert not {*table_words(ast.parse('op.kind == "view"\nf("mul")'))}
    test = ast.parse('node.record.name == "mul"', mode="eval").body
    assert isinstance(test, ast.Compare) and is_name_of_record(test.left)
    assert groups_of({"a": {"b"}, "b": {"a"}, "c": {"a"}}) == [["a", "b"]]


def main() -> None:
    """Prints the table."""
    print(f"{'what':<10} {'now':>8} {'limit':>8}")
    for what, now in counts().items():
        print(f"{what:<10} {now:>8} {LIMITS[what]:>8}")
    all, few = pointwise(), without_formula()
    print(f"{len(all) - len(few)} of {len(all)} pointwise ops state one formula; the others:")
    for names, why in WITHOUT_FORMULA.items():
        print(f"  {names}: {why}")
    for path, words in unexpected().items():
        print(f"  {path}: {' '.join(sorted(words))}")
    for path, lines in name_tests().items():
        print(*(f"  {path}:{line}" for line in lines if path not in BY_NAME), sep="\n", end="")
    print(*(f"  {' ↔ '.join(group)}" for group in circles()), sep="\n", end="")


if __name__ == "__main__":
    main()
