"""Every pass: what it makes of small graphs, and that nobody can tell that it ran.

300 random programs; TOYTORCH_PROGRAMS=3000 in the environment asks for more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

import toytorch as torch
from tests.jit.pass_check import PASSES, differences, joint_differences
from tests.jit.programs import program
from toytorch.jit import interpreter
from toytorch.jit.check import GraphError, check
from toytorch.jit.ir import Graph
from toytorch.jit.passes import pipeline
from toytorch.jit.passes.algebra import simplify_algebra
from toytorch.jit.passes.batch_mm import batch_matrix_products
from toytorch.jit.passes.constant import propagate_constants
from toytorch.jit.passes.cse import eliminate_common_subexpressions
from toytorch.jit.passes.peephole import peephole, peephole_any_shape
from toytorch.jit.passes.unroll import unroll
from toytorch.jit.read import read

COUNT = int(os.environ.get("TOYTORCH_PROGRAMS", "300"))
BATCH = 50
MATRIX = "Float({}, {}, strides=[{}, 1], requires_grad=0, device=cpu)"
M22, M23, M32 = (MATRIX.format(a, b, b) for a, b in ((2, 2), (2, 3), (3, 2)))
I3 = "Int(3, strides=[1], requires_grad=0, device=cpu)"
F3 = "Float(3, strides=[1], requires_grad=0, device=cpu)"
D3 = "Double(3, strides=[1], requires_grad=0, device=cpu)"


def lines(apply: Callable[[Graph], Graph], inputs: str, body: str, outputs: str) -> list[str]:
    """The nodes after a pass, without types of results."""
    text = (
        f"graph({inputs}):\n"
        + "".join(f"  {line.strip()}\n" for line in body.split("\n") if line.strip())
        + f"  return ({outputs})\n"
    )
    graph = read(indented(text))
    before = str(graph)
    made = check(apply(graph), apply.__name__)
    assert str(graph) == before, "the input was changed"
    return [shown(line) for line in str(made).split("\n") if " = " in line or "->" in line] + [
        ", ".join("%" + v.name for v in made.outputs)
    ]


def indented(text: str) -> str:
    """Blocks as the printer indents them."""
    made, depth = [], 0
    for line in text.split("\n"):
        bare = line.strip()
        depth += bare.startswith("block")
        made.append(
            "  " * (depth if line.startswith(" ") else 0) + "  " * bool(line.startswith(" ")) + bare
        )
        depth -= bare.startswith("->")
    return "\n".join(made)


def shown(line: str) -> str:
    """`%2 : Tensor = aten::mul(%a, %b)` as `%2 = aten::mul(%a, %b)`."""
    left, mark, right = line.strip().partition(" = ")
    made = (
        ", ".join(
            part.split(" ")[0]
            for part in left.split(", %")
            for part in [part if part.startswith("%") or not part else "%" + part]
        )
        if mark
        else left
    )
    return f"{made}{mark}{right}"


def test_constants_are_computed() -> None:
    found = lines(
        propagate_constants,
        "%x : Tensor",
        """
        %1 : int = prim::Constant[value=2]()
        %2 : int = prim::Constant[value=3]()
        %3 : int = aten::mul.int(%1, %2)
        %4 : int[] = prim::ListConstruct(%3, %1)
        %5 : Tensor = aten::mul(%x, %3)
        %6 : Tensor = aten::reshape(%5, %4)""",
        "%6",
    )
    assert found == [
        "%0 = prim::Constant[value=6]()",
        "%7 = prim::Constant[value=[6, 2]]()",
        "%5 = aten::mul(%x, %0)",
        "%6 = aten::reshape(%5, %7)",
        "%6",
    ]


def test_branches_are_decided_and_empty_loops_dropped() -> None:
    found = lines(
        propagate_constants,
        "%x : Tensor",
        """
        %t : bool = prim::Constant[value=True]()
        %n : int = prim::Constant[value=0]()
        %y : Tensor = prim::If(%t)
        block0():
        %1 : Tensor = aten::tanh(%x)
        -> (%1)
        block1():
        %2 : Tensor = aten::exp(%x)
        -> (%2)
        %z : Tensor = prim::Loop(%n, %t, %y)
        block0(%i : int, %h : Tensor):
        %3 : Tensor = aten::neg(%h)
        -> (%t, %3)""",
        "%z",
    )
    assert found == ["%1 = aten::tanh(%x)", "%1"]


def test_a_list_that_changes_is_no_constant() -> None:
    found = lines(
        propagate_constants,
        "%x : Tensor",
        """
        %1 : int = prim::Constant[value=2]()
        %l : int[] = prim::ListConstruct(%1)
        %n : NoneType = aten::append.t(%l, %1)
        %k : int = aten::len.t(%l)""",
        "%k, %l",
    )
    assert "%l = prim::ListConstruct(%1)" in found
    assert "%k = aten::len.t(%l)" in found


def test_errors_stay_where_they_are() -> None:
    found = lines(
        propagate_constants,
        "%x : Tensor",
        """
        %1 : int = prim::Constant[value=2]()
        %0 : int = prim::Constant[value=0]()
        %q : int = aten::floordiv.int(%1, %0)""",
        "%q",
    )
    assert "%q = aten::floordiv.int(%1, %0)" in found


def test_common_subexpressions_are_merged() -> None:
    found = lines(
        eliminate_common_subexpressions,
        f"%x : {F3}",
        f"""
        %1 : {F3} = aten::exp(%x)
        %2 : {F3} = aten::exp(%x)
        %3 : {F3} = aten::mul(%1, %2)""",
        "%3",
    )
    assert found == ["%1 = aten::exp(%x)", "%3 = aten::mul(%1, %1)", "%3"]


@pytest.mark.parametrize(
    ("body", "outputs", "kept"),
    [
        ("%1 : T = aten::exp(%x)\n%2 : T = aten::exp(%x)", "%1, %2", 2),
        (
            "%1 : T = aten::exp(%x)\n%2 : T = aten::exp(%x)\n%3 : T = aten::neg_(%1)\n"
            "%4 : T = aten::add(%3, %2)",
            "%4",
            2,
        ),
        (
            "%1 : T = aten::exp(%x)\n%3 : T = aten::neg_(%x)\n%2 : T = aten::exp(%x)\n"
            "%4 : T = aten::add(%1, %2)",
            "%4",
            2,
        ),
        (
            "%v : T = aten::alias(%x)\n%1 : T = aten::exp(%x)\n%3 : T = aten::neg_(%v)\n"
            "%2 : T = aten::exp(%x)\n%4 : T = aten::add(%1, %2)",
            "%4",
            2,
        ),
        (
            "%1 : T = aten::exp(%x)\n%2 : T = aten::exp(%x)\n%v : T = aten::alias(%1)\n"
            "%w : T = aten::alias(%2)",
            "%v, %w",
            2,
        ),
    ],
)
def test_memory_that_can_be_told_apart_stays_apart(body: str, outputs: str, kept: int) -> None:
    found = lines(eliminate_common_subexpressions, f"%x : {F3}", body.replace("T", F3), outputs)
    assert sum("aten::exp" in line for line in found) == kept


def test_random_numbers_are_drawn_as_often_as_asked() -> None:
    f = torch.jit.trace(
        lambda x: torch.rand(2) - torch.rand(2) + x, torch.zeros(2), check_trace=False
    )
    made = eliminate_common_subexpressions(f.graph)
    assert str(made).count("aten::rand") == 2


@pytest.mark.parametrize(
    ("kind", "body", "left"),
    [
        (F3, "%1 : int = prim::Constant[value=1]()\n%2 : T = aten::mul(%x, %1)", 0),
        (F3, "%1 : int = prim::Constant[value=1]()\n%2 : T = aten::mul(%1, %x)", 0),
        (F3, "%1 : int = prim::Constant[value=1]()\n%2 : T = aten::div(%x, %1)", 0),
        (I3, f"%1 : int = prim::Constant[value=1]()\n%2 : {F3} = aten::div(%x, %1)", 1),
        (I3, f"%1 : float = prim::Constant[value=1.0]()\n%2 : {F3} = aten::mul(%x, %1)", 1),
        (
            F3,
            "%1 : int = prim::Constant[value=0]()\n%2 : T = aten::add(%x, %1)",
            1,
        ),  # -0.0 + 0 is 0.0
        (I3, "%1 : int = prim::Constant[value=0]()\n%2 : T = aten::add(%x, %1)", 0),
        (F3, "%1 : float = prim::Constant[value=-0.0]()\n%2 : T = aten::add(%x, %1)", 0),
        (F3, "%1 : float = prim::Constant[value=-0.0]()\n%2 : T = aten::sub(%x, %1)", 1),
        (F3, "%1 : int = prim::Constant[value=0]()\n%2 : T = aten::sub(%x, %1)", 0),
        (F3, "%1 : int = prim::Constant[value=1]()\n%2 : T = aten::pow(%x, %1)", 0),
        (F3, "%1 : T = aten::neg(%x)\n%2 : T = aten::neg(%1)", 0),
        (F3, "%1 : T = aten::exp(%x)\n%2 : T = aten::log(%1)", 2),
        (
            F3,
            f"%d : Dtype = prim::Constant[value=torch.float64]()\n%1 : {D3} = aten::_to_copy(%x, %d)\n"
            "%f : Dtype = prim::Constant[value=torch.float32]()\n%2 : T = aten::_to_copy(%1, %f)",
            0,
        ),
        (
            D3,
            f"%f : Dtype = prim::Constant[value=torch.float32]()\n%1 : {F3} = aten::_to_copy(%x, %f)\n"
            "%d : Dtype = prim::Constant[value=torch.float64]()\n%2 : T = aten::_to_copy(%1, %d)",
            2,
        ),
    ],
)
def test_algebra(kind: str, body: str, left: int) -> None:
    found = lines(
        simplify_algebra,
        f"%x : {kind}",
        body.replace(" T ", f" {kind} ") + f"\n%9 : {F3} = aten::tanh(%2)",
        "%9",
    )
    assert sum("aten::" in line for line in found) - 1 == left


def test_transposes_and_views_cancel() -> None:
    flat = "Float(6, strides=[1], requires_grad=0, device=cpu)"
    turned = "Float(3, 2, strides=[1, 3], requires_grad=0, device=cpu)"
    found = lines(
        simplify_algebra,
        f"%x : {M23}",
        f"""
        %1 : {turned} = aten::t(%x)
        %2 : {M23} = aten::t(%1)
        %s : (int) = prim::Constant[value=(6,)]()
        %3 : {flat} = aten::view(%2, %s)
        %r : (int, int) = prim::Constant[value=(2, 3)]()
        %4 : {M23} = aten::view(%3, %r)
        %5 : {M23} = aten::exp(%4)""",
        "%5",
    )
    assert found == ["%5 = aten::exp(%x)", "%5"]


def test_algebra_leaves_memory_that_is_seen() -> None:
    one = "%1 : int = prim::Constant[value=1]()\n"
    result = lines(simplify_algebra, f"%x : {F3}", one + f"%2 : {F3} = aten::mul(%x, %1)", "%2")
    assert "%2 = aten::mul(%x, %1)" in result
    written = lines(
        simplify_algebra,
        f"%x : {F3}",
        one + f"%2 : {F3} = aten::mul(%x, %1)\n"
        f"%3 : {F3} = aten::neg_(%2)\n%4 : {F3} = aten::add(%3, %x)",
        "%4",
    )
    assert "%2 = aten::mul(%x, %1)" in written


def test_peephole_answers_what_types_tell() -> None:
    body = f"""
        %0 : int = prim::Constant[value=1]()
        %n : NoneType = prim::Constant[value=None]()
        %1 : int = aten::size.int(%x, %0)
        %2 : int = aten::dim(%x)
        %3 : int = aten::numel(%x)
        %4 : bool = aten::__is__(%x, %n)
        %l : Tensor[] = prim::ListConstruct(%x, %x)
        %a : {M23}, %b : {M23} = prim::ListUnpack(%l)
        %5 : {M23} = aten::add(%a, %b)"""
    found = lines(peephole, f"%x : {M23}", body, "%1, %2, %3, %4, %5")
    assert [line.split("value=")[1][:-3] for line in found if "Constant" in line] == [
        "3",
        "2",
        "6",
        "False",
    ]
    assert "%5 = aten::add(%x, %x)" in found
    general = lines(peephole_any_shape, f"%x : {M23}", body, "%1, %2, %3, %4, %5")
    assert "%1 = aten::size.int(%x, %0)" in general  # another shape may come


LOOP = """
        %n : int = prim::Constant[value=NUMBER]()
        %t : bool = prim::Constant[value=True]()
        %y : Tensor = prim::Loop(%n, %t, %x)
        block0(%i : int, %h : Tensor):
        %2 : Tensor = aten::add(%h, %i)
        -> (%t, %2)"""


def test_short_loops_are_written_out() -> None:
    found = lines(unroll, "%x : Tensor", LOOP.replace("NUMBER", "2"), "%y")
    assert [line for line in found if "aten" in line] == [
        "%1 = aten::add(%x, %0)",
        "%4 = aten::add(%1, %3)",
    ]
    assert found[-1] == "%4"
    long = lines(unroll, "%x : Tensor", LOOP.replace("NUMBER", "9"), "%y")
    assert any("prim::Loop" in line for line in long)


def test_products_with_one_factor_are_one() -> None:
    found = lines(
        batch_matrix_products,
        f"%a : {M23}, %b : {M23}, %c : {M23}, %w : {M32}".replace(", %", ",\n      %"),
        f"""
        %1 : {M22} = aten::mm(%a, %w)
        %2 : {M22} = aten::mm(%b, %w)
        %3 : {M22} = aten::mm(%c, %w)
        %4 : {M22} = aten::mul(%1, %2)
        %5 : {M22} = aten::mul(%4, %3)""",
        "%5",
    )
    assert sum("aten::mm" in line for line in found) == 1
    assert sum("aten::narrow" in line for line in found) == 3


def test_sums_of_products_are_one() -> None:
    def f(a: Any, b: Any, c: Any, d: Any) -> Any:
        return (a @ b + c @ d + b @ c + d @ a) * 2

    given = [torch.randn(4, 4) for _ in range(4)]
    graph = torch.jit.trace(f, tuple(given)).graph
    made = check(batch_matrix_products(graph))
    assert str(made).count("aten::mm") == 1
    assert torch.allclose(interpreter.run(made, given), f(*given), atol=1e-5)


@pytest.mark.filterwarnings("ignore::toytorch.jit.TracerWarning")
@pytest.mark.parametrize("size", [8, 64])
def test_the_products_of_a_recurrent_network_are_batched(size: int) -> None:
    def run(xs: Any, w: Any, u: Any) -> Any:
        h = torch.zeros(4, size)
        for x in xs:  # x @ w is known beforehand, h @ u is not
            h = torch.tanh(x @ w.t() + h @ u.t())
        return h.sum()

    given = [torch.randn(6, 4, size), *(torch.randn(size, size) / size for _ in range(2))]
    for w in given[1:]:
        w.requires_grad_()
    f = torch.jit.trace(run, tuple(given))
    plan = f.executor.plan_for(given)
    assert str(plan.optimised).count("aten::mm") == 1 + 6
    assert str(plan.backward_graph).count("aten::mm") == 5 + 2
    expected = torch.autograd.grad(run(*given), given[1:])
    for a, b in zip(torch.autograd.grad(f(*given), given[1:]), expected):
        torch.testing.assert_close(a, b)


def test_products_are_left_alone_where_copies_cost_more_than_they_save() -> None:
    given = [torch.randn(300, 300) for _ in range(3)]
    w = torch.randn(300, 2)
    f = torch.jit.trace(lambda a, b, c, w: (a @ w) * (b @ w) + c @ w, (*given, w))
    assert str(batch_matrix_products(f.graph)).count("aten::mm") == 3


def test_the_checker_names_the_pass_that_broke_the_graph() -> None:
    def careless(graph: Graph) -> Graph:
        made = graph.copy()
        del made.nodes[0]
        return made

    f = torch.jit.trace(
        lambda x: (x * 2).tanh(), torch.ones(2), check_trace=False, passes=[careless]
    )
    with pytest.raises(GraphError, match="after careless"):
        f(torch.ones(2))


def test_passes_are_an_argument() -> None:
    seen = []

    def watching(graph: Graph) -> Graph:
        seen.append(graph)
        return graph

    f = torch.jit.trace(lambda x: (x * 2).tanh(), torch.ones(2), passes=[watching])
    assert seen and not f.graph_for(torch.ones(2)).nodes_of("prim::FusionGroup")
    fused = torch.jit.trace(lambda x: (x * 2).tanh(), torch.ones(2), passes=[pipeline.fuse])
    assert fused.graph_for(torch.ones(2)).nodes_of("prim::FusionGroup")
    assert torch.equal(f(torch.ones(2)), fused(torch.ones(2)))


def test_general_passes_do_not_fix_shapes() -> None:
    """A traced graph that nobody can trace again serves all shapes it is right for."""
    f = torch.jit.trace(lambda x: x.reshape(x.shape[0], -1) * x.shape[1], torch.ones(2, 3, 4))
    graph = pipeline.run(f.graph, pipeline.GENERAL)
    x = torch.randn(5, 2, 2)
    assert torch.equal(interpreter.run(graph, [x]), x.reshape(5, -1) * 2)


def test_fuser_modes() -> None:
    f = torch.jit.trace(lambda x: (x * 2).tanh(), torch.ones(2))
    with torch.jit.fuser("none"):
        assert not f.graph_for(torch.ones(2)).nodes_of("prim::FusionGroup")
    with torch.jit.optimized_execution(False):
        assert not f.graph_for(torch.ones(2)).nodes_of("prim::FusionGroup")
    assert f.graph_for(torch.ones(2)).nodes_of("prim::FusionGroup")
    with pytest.raises(Exception, match="unrecognized fuser option"), torch.jit.fuser("fuser9"):
        pass
    with pytest.raises(ValueError, match="only supported 'STATIC' or 'DYNAMIC', got: X"):
        torch.jit.set_fusion_strategy([("X", 1)])
    before = torch.jit.set_fusion_strategy([("STATIC", 1)])
    try:
        for n in (1, 2, 3):
            f.executor.plan_for([torch.ones(n)])
        assert len(f.executor.plans) == 1
    finally:
        torch.jit.set_fusion_strategy(before)


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_random_programs(first: int) -> None:
    wrong = [
        text for seed in range(first, min(first + BATCH, COUNT)) if (text := differences(seed))
    ]
    assert not wrong, wrong[0]


def test_a_wrong_pass_is_found() -> None:
    """The comparison does what it is for: most programs show that a sum became a difference."""

    def wrong(graph: Graph) -> Graph:
        made = graph.copy()
        for node in made.nodes:
            if node.kind == "aten::mul":
                node.kind = "aten::add"
                node.op = torch.ops.add
        return made

    PASSES.append(wrong)
    try:
        assert any(differences(seed) for seed in range(20))
    finally:
        PASSES.remove(wrong)
    assert callable(joint_differences) and program(0) is not None
