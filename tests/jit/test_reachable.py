"""What an archive may name: every entry is looked into and called, and files that mean harm.

Static: from each entry, all functions of the framework that it refers to are read; none may name
what evaluates text, imports or opens files. The core and the backends, which write the code of
kernels from records, are not followed. Dynamic: each entry is called with crafted text, in every
place where an argument may stand, and an audit hook looks whether Python ever compiles, imports or
opens something that the text names.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import sys
import time
import types
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import toytorch as torch
from tests.nn.test_every_module import MODULES
from tests.nn.test_every_module import inputs as inputs_of
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.jit import interpreter, reachable
from toytorch.jit.archive import FORMAT, written
from toytorch.jit.builtins import Builtin
from toytorch.jit.ir import Node
from toytorch.jit.read import read
from toytorch.jit.read_parts import GraphSyntaxError
from toytorch.serialization import DamagedArchive

FORBIDDEN = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "open",
    "import_module",
    "system",
    "popen",
    "Popen",
    "loads",
    "fromfile",
    "tofile",
    "memmap",
    "frombuffer",
    "run_path",
    "unlink",
}
MACHINE = tuple(f"toytorch.{room}." for room in ("facts", "core", "backends", "kernels", "loops"))
MARK = "toytorch_marker"


def entries() -> dict[tuple[str, str], Any]:
    """All that an archive can name, by its name."""
    found = {
        (table, name): reachable.found_at(table, name)
        for table, held in reachable.TABLES.items()
        for name in held
    }
    found.update({("method", name): reachable.found_at("method", name) for name in dir(Tensor)})
    found.update(reachable.listed())
    return {place: entry for place, entry in found.items() if entry is not None}


def test_every_module_and_name_is_an_operation() -> None:
    """The tables hold what they should, and names lead to nothing else."""
    found = entries()
    assert len(found) > 1500
    for (table, name), entry in found.items():
        module = str(getattr(entry, "__module__", "") or "")
        assert isinstance(entry, (Op, Builtin)) or (
            inspect.isroutine(entry)
            and f"{module}.".startswith("toytorch.")
            and not module.startswith(("toytorch.ops.define", "toytorch.core.op"))
        ), (table, name)
    for table, module in (
        ("os", "os"),
        ("builtins", "builtins"),
        ("math", "math"),
        *((m, m) for m in sorted(sys.modules) if f"{m}.".startswith("toytorch.")),
    ):
        for name, thing in list(vars(sys.modules.get(module, types)).items()):
            place = reachable.found_at(table, name)
            assert place is None or (place is thing and (table, name) in found), (table, name)


# -- what the entries refer to ---------------------------------------------------------------------


def functions_of(thing: Any) -> Iterator[Any]:
    """The Python functions behind an entry or a global name."""
    if inspect.isfunction(thing):
        yield thing
    elif isinstance(thing, Op):
        slots = [
            getattr(thing, name, None)
            for kind in type(thing).__mro__
            for name in (*getattr(kind, "__slots__", ()), *vars(thing))
        ]
        for held in slots:
            for part in held.values() if isinstance(held, dict) else [held]:
                if inspect.isfunction(part):
                    yield part
    elif isinstance(thing, Builtin):
        yield from functions_of(thing.function)
    elif isinstance(thing, type) and thing is not Tensor:
        for held in vars(thing).values():
            held = getattr(held, "__func__", getattr(held, "fget", held))
            if inspect.isfunction(held):
                yield held


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def referred(function: Any) -> Iterator[Any]:
    """What a function refers to: globals, attributes of modules, what it closes over."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not filled yet
    for code in codes(function.__code__):
        for name in code.co_names:
            found = function.__globals__.get(name)
            yield found
            if isinstance(found, types.ModuleType) and found.__name__.startswith("toytorch"):
                yield from (getattr(found, attribute, None) for attribute in code.co_names)


def forbidden_names(start: Any) -> list[str]:
    """Names of FORBIDDEN in a function or in any that it leads to."""
    return followed([start], set())


def followed(waiting: list[Any], seen: set[int]) -> list[str]:
    bad = []
    while waiting:
        for function in functions_of(waiting.pop()):
            module = function.__module__ or ""
            if (
                id(function) in seen
                or not module.startswith(("toytorch", "tests"))
                or (module.startswith(MACHINE))
            ):
                continue
            seen.add(id(function))
            bad += [
                f"{module}.{function.__qualname__}: {name}"
                for code in codes(function.__code__)
                for name in code.co_names
                if name in FORBIDDEN
            ]
            waiting += referred(function)
    return bad


def indirect(text: str) -> Any:
    """What the walk has to find: a function that leads to one that evaluates text."""
    return [evaluating(part) for part in text.split()]


def evaluating(text: str) -> Any:
    return eval(text)


def test_no_entry_leads_to_evaluation_imports_or_files() -> None:
    assert forbidden_names(indirect) == [f"{__name__}.evaluating: eval"]
    seen: set[int] = set()
    assert followed(list(entries().values()), seen) == []
    assert len(seen) > 1000


def test_functions_of_python_behind_builtins_are_harmless() -> None:
    for name, builtin in reachable.BUILTINS.items():
        function = builtin.function
        if not inspect.isfunction(function):
            assert getattr(function, "__name__", "") not in FORBIDDEN | {"getattr", "format"}, name


TEXTS = (f"__import__('{MARK}')", MARK, f"/{MARK}/file", f"{{0.{MARK}}}", f"%({MARK})s")


def crafted() -> list[list[Any]]:
    """Arguments with text in every place."""
    t = torch.ones(2, 2)
    found: list[list[Any]] = []
    for s in TEXTS:
        found += [
            [s],
            [s, s],
            [s, s, s],
            [t, s],
            [s, t],
            [t, t, s],
            [t, s, s],
            [[s, s]],
            [t, [s]],
            [[t, t], s],
            [t, 1, s],
            [t, 1, 1, s],
            [{s: s}],
            [[s], s],
            [t, {s: s}],
        ]
    return found


def test_no_entry_evaluates_imports_or_opens_what_a_text_names() -> None:
    noticed: list[str] = []
    watching = True

    def watch(event: str, args: Any) -> None:
        if watching and event in (
            "compile",
            "import",
            "open",
            "os.system",
            "subprocess.Popen",
            "pickle.find_class",
            "ctypes.dlopen",
        ):
            text = str(args)
            if MARK in text:
                noticed.append(f"{current}: {event} {text[:200]}")

    current: Any = "the hook"
    sys.addaudithook(watch)
    with pytest.raises(ImportError):
        evaluating(TEXTS[0])
    with pytest.raises(OSError):
        open(TEXTS[2])  # noqa: SIM115  # there is no such file
    assert {n.split()[2] for n in noticed} == {"compile", "import", "open"}
    noticed.clear()
    arguments, ran = crafted(), 0
    known: set[int] = set()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for place, entry in entries().items():
                current = place
                if id(entry) in known:
                    continue
                known.add(id(entry))
                node = Node("aten::crafted", [], function=entry)
                for args in arguments:
                    try:
                        interpreter.call_op(node, list(args))
                        ran += 1
                    except Exception:
                        continue  # text is refused almost everywhere
    finally:
        watching = False
    assert not noticed and ran > 100


# -- files -----------------------------------------------------------------------------------------

X = "graph(%x : Tensor):\n"
END = "  return (%1)\n"


def archive(graph: str, hidden: Any = None, **about: Any) -> io.BytesIO:
    """An archive of one function, written by hand."""
    method = {
        "graph": "graphs/f.txt",
        "name": "f",
        "hidden": {"0": hidden} if hidden else {},
        "constants": [],
        "traced": True,
        "result": None,
    } | about
    return records({"kind": "function", "methods": {"f": method}, "tensors": []}, graph)


def records(about: Any, graph: str) -> io.BytesIO:
    file = io.BytesIO()
    written(
        file,
        {
            "format": FORMAT,
            "module.json": json.dumps(about).encode(),
            "graphs/f.txt": graph.encode(),
            "graphs/forward.txt": graph.encode(),
        },
    )
    return file


def module(graph: str, **tree: Any) -> io.BytesIO:
    """An archive of a module with one attribute, `n`."""
    method = {
        "graph": "graphs/forward.txt",
        "name": "forward",
        "hidden": {},
        "constants": [],
        "traced": True,
        "result": None,
    }
    whole = {
        "class": "M",
        "training": False,
        "parameters": {},
        "buffers": {},
        "children": {},
        "attributes": {"n": {"value": "3"}},
    } | tree
    return records(
        {
            "kind": "module",
            "class": "TracedModule",
            "tree": whole,
            "tensors": [],
            "methods": {"forward": method},
        },
        graph,
    )


CALL = X + "  %1 : Tensor = aten::relu(%x)\n" + END
SELF = "graph(%self : __torch__.M,\n      %x : Tensor):\n"
GROUP = (
    "with {0}_0 = graph(%self : __torch__.M):\n"
    '  %1 : Tensor = prim::GetAttr[name="__class__"](%self)\n  return (%1)\n'
)
NAMED = {  # functions an archive may not name, as [table, name]
    "op that evaluates formulas": ["toytorch.core.op", "rule"],
    "code generator": ["toytorch.core.op", "generate"],
    "definition of an op": ["toytorch.ops.define", "define"],
    "registration": ["toytorch.ops.define", "public"],
    "kind of op": ["toytorch.ops.define", "general"],
    "generated functions": ["toytorch.ops.elementwise.one_pass", "gradient"],
    "global hook": ["toytorch.nn.modules.hooks", "register_module_forward_hook"],
    "marker": ["toytorch.jit.script.markers", "ignore"],
    "finder of modules": ["toytorch.nn.modules.elsewhere", "finder"],
    "bytes as memory": ["toytorch.ops.creation.from_data", "frombuffer"],
    "state of the process": ["toytorch.ops.creation.create", "set_default_device"],
    "function that takes a function": [
        "toytorch.nn.functional.loss",
        "triplet_margin_with_distance_loss",
    ],
    "builtin": ["builtins", "eval"],
    "module of Python's": ["os", "system"],
    "loader": ["math", "__loader__"],
    "class": ["public", "linalg.LinAlgError"],
    "file": ["record", "from_file"],
    "reader of files": ["toytorch.serialization", "load"],
    **{
        f"method {name}": ["method", name]
        for name in (
            "apply_",
            "map_",
            "numpy",
            "__class__",
            "__reduce_ex__",
            "__deepcopy__",
            "__setstate__",
            "tofile",
            "set_",
            "register_hook",
            "backward",
            "share_memory_",
            "storage",
            "_accumulator",
            "__init_subclass__",
            "__getattribute__",
            "new",
        )
    },
}
ATTACKS = {
    **{f"a name: {what}": archive(CALL, {"_op": place}) for what, place in NAMED.items()},
    "a class by its kind": archive(CALL.replace("aten::relu", "aten::linalg.LinAlgError")),
    "a function by its kind": archive(CALL.replace("aten::relu", "os::system")),
    "a dunder of a tensor": archive(CALL.replace("aten::relu", "prim::__class__")),
    "a method of a tensor": archive(CALL.replace("aten::relu", "prim::numpy")),
    "a call of Python": archive(CALL.replace("aten::relu", 'prim::CallFunction[name="eval"]')),
    "a method of Python's": archive(CALL.replace("aten::relu", 'prim::CallMethod[name="numpy"]')),
    "a call whose graph is none": archive(
        CALL.replace("aten::relu", 'prim::CallMethod[name="numpy", Subgraph=1]')
    ),
    "hidden attributes in the text": archive(
        CALL.replace("aten::relu", "prim::TupleConstruct[_class=1]")
    ),
    "an object": archive(
        CALL.replace("aten::relu(%x)", "prim::CreateObject()"), {"_class": "Exception"}
    ),
    "a class in a tuple": archive(
        CALL.replace("aten::relu", "prim::TupleConstruct"), {"_class": "Exception"}
    ),
    "an exception that is none": archive(
        CALL.replace("aten::relu", "prim::RaiseException"), {"_class": "SystemExit"}
    ),
    "names of arguments that are code": archive(CALL, {"_names": ["dtype=exit()"]}),
    "a graph's name that is code": archive(CALL, name="f(): pass\nexit()\ndef g"),
    "a value's name that is code": archive(
        CALL.replace("%x", "%x=[0for[wrap.__class__]in[[exit]]]")
    ),
    "Python in a constant": archive(X + "  %1 : int = prim::Constant[value=exit()]()\n" + END),
    "a function in a constant": archive(
        X + "  %1 : int = prim::Constant[value=torch.load]()\n" + END
    ),
    "a lambda in a constant": archive(X + "  %1 : int = prim::Constant[value=lambda: 0]()\n" + END),
    "Python in a default": archive(
        CALL,
        traced=False,
        returns="Tensor",
        params=[
            {
                "name": "x",
                "type": "Tensor",
                "default": {"value": "exit()"},
                "inferred": True,
                "keyword_only": False,
            }
        ],
    ),
    "an attribute of a tensor": archive(
        X + '  %1 : Tensor = prim::GetAttr[name="__class__"](%x)\n' + END
    ),
    "an attribute that is not listed": module(
        SELF + '  %1 : Tensor = prim::GetAttr[name="__class__"](%self)\n' + END
    ),
    "a method as an attribute": module(
        SELF + '  %1 : Tensor = prim::GetAttr[name="forward"](%self)\n' + END
    ),
    "a hook that is set": module(
        SELF + '   = prim::SetAttr[name="_forward_hooks"](%self, %x)\n  return (%x)\n'
    ),
    "a class in the tree": module(
        SELF + "  return (%x)\n", attributes={"__class__": {"value": "1"}}
    ),
    "hooks in the tree": module(
        SELF + "  return (%x)\n", attributes={"_forward_hooks": {"dict": []}}
    ),
    "methods in the tree": module(SELF + "  return (%x)\n", attributes={"_methods": {"dict": []}}),
    **{
        f"an attribute inside a {kind}": module(
            SELF + f"  %1 : Tensor = prim::{kind}_0(%self)\n" + END + GROUP.format(f"prim::{kind}")
        )
        for kind in ("FusionGroup", "DifferentiableGraph", "CallFunction", "CallMethod")
    },
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_archives_are_refused(attack: str) -> None:
    """Nothing is called before the file is known to be harmless."""
    with pytest.raises(DamagedArchive, match="is damaged or hostile"):
        torch.jit.load(ATTACKS[attack])


def test_the_archives_are_right_but_for_their_attacks() -> None:
    x = torch.tensor([-1.0, 2.0])
    assert torch.jit.load(archive(CALL))(x).tolist() == [0, 2]
    assert torch.jit.load(archive(CALL, {"_op": ["toytorch.nn.functional.activation", "relu"]}))(
        x
    ).tolist() == [0, 2]  # as written before functions were listed
    assert torch.jit.load(
        module(
            SELF + '  %1 : int = prim::GetAttr[name="n"](%self)\n'
            "  %2 : Tensor = aten::mul(%x, %1)\n  return (%2)\n"
        )
    )(x).tolist() == [-3, 6]


@pytest.mark.parametrize("field", ["{0.__class__}", "{0[0]}", "{x}", "{0.grad_fn}", "{:{0.shape}}"])
def test_format_reads_no_attributes(field: str) -> None:
    graph = (
        X + f'  %2 : str = prim::Constant[value="{field}"]()\n'
        "  %1 : str = aten::format(%2, %x)\n" + END
    )
    with pytest.raises((ValueError, KeyError), match="a field of format is empty or a number"):
        torch.jit.load(archive(graph))(torch.ones(2))


def test_format_as_before() -> None:
    @torch.jit.script
    def f(x: int, y: float) -> str:
        return "{} and {:.2f}".format(x, y) + "{1} {0} {{}}".format(x, y)  # noqa: UP030, UP032

    assert f(1, 2.5) == "1 and 2.502.5 1 {}"


@pytest.mark.filterwarnings("ignore::toytorch.jit.TracerWarning")
@pytest.mark.parametrize("label", MODULES)
@pytest.mark.parametrize("way", ["script", "trace"])
def test_every_module_that_is_pytorchs_own_is_saved(label: str, way: str) -> None:
    """The lists hold what the framework's modules call."""
    arguments, options, shapes = MODULES[label]
    name = label.partition("/")[0]
    inputs_of.name = name  # type: ignore[attr-defined]
    if not shapes or name in ("TripletMarginWithDistanceLoss", "GaussianNLLLoss"):
        return  # random, or it takes a function or a number
    net = getattr(torch.nn, name)(*arguments, **options).double().eval()
    given = tuple(t.detach() if isinstance(t, Tensor) else t for t in inputs_of(torch, shapes))
    net(*given)  # for lazy ones
    made = (
        torch.jit.script(net) if way == "script" else torch.jit.trace(net, given, check_trace=False)
    )
    if any(n.kind in ("prim::CallMethod", "prim::CallFunction") for n in made.inlined_graph.walk()):
        assert way == "script"  # parts of it are left to Python, which an archive cannot hold
        return
    file = io.BytesIO()
    torch.jit.save(made, file)
    found = torch.jit.load(file)
    assert str(found.graph) == str(made.graph)
    ops = [[n.op for n in m.inlined_graph.walk()] for m in (made, found)]
    assert all(a is b for a, b in zip(*ops, strict=True))


SHAPES = {
    "places": "  %1 : Tensor = aten::relu(%x){} # a\n",
    "colons": "  %1 : Tensor = aten::relu({}\n",
    "scopes": "  %1 : Tensor = aten::relu(%x), scope: {}!\n",
    "types": "  %1 : Tensor{} = a::b()\n",
    "values": "  {} = aten::relu(%x)\n",
    "constant": "  %1 : int = prim::Constant[value={}]()\n",
}
PARTS = (
    " # a:1:1",
    ":1",
    ", scope: ",
    "[]",
    "?",
    "%x, ",
    "%x : int, ",
    "- ",
    "(",
    "[1,",
    '"',
    "\\",
    "1, ",
    " ",
    "a.",
    "::",
    "__torch__.",
    "Dict(",
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("part", PARTS)
def test_text_is_read_in_linear_time(shape: str, part: str) -> None:
    """Four times the text takes four times as long, within a factor of two (16 if quadratic)."""

    def seconds(size: int) -> float:
        text = X + SHAPES[shape].format(part * (size // len(part))) + END
        begin = time.process_time()
        with contextlib.suppress(GraphSyntaxError, RecursionError, MemoryError):
            read(text)  # some are graphs
        return time.process_time() - begin

    small, large = (min(seconds(size) for _ in range(2)) for size in (20_000, 80_000))
    assert large < max(8 * small, 0.1)
