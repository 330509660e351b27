"""What the second generator found, one short test a cause."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, attempt, torch, tt

BOTH = (torch, tt)


def steps(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape), tuple(x.stride()), x.storage_offset()


def same(what: Callable[[Any], Any]) -> None:
    """That both sides say the same of what a function makes of the package."""
    theirs, ours = (what(m) for m in BOTH)
    assert ours == theirs


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda m: m.arange(24.0).reshape(2, 3, 4),
    "reversed": lambda m: m.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0),
    "first two": lambda m: m.arange(24.0).reshape(3, 2, 4).permute(1, 0, 2),
    "expanded": lambda m: m.arange(3.0).reshape(1, 3, 1).expand(2, 3, 4),
    "row": lambda m: m.arange(4.0),
    "every other": lambda m: m.arange(48.0).reshape(2, 3, 8)[..., ::2],
    "integers": lambda m: m.arange(24).reshape(4, 3, 2).permute(2, 1, 0),
    "halves": lambda m: m.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0).half(),
    "nothing": lambda m: m.zeros(4, 0, 2).permute(2, 1, 0),
}


@pytest.mark.parametrize("op", ["add", "lt", "atan2", "rsub", "mul"])
def test_elementwise_results_lie_as_the_first_operand_that_tells(op: str) -> None:
    for a, b in itertools.product(LAYOUTS, LAYOUTS):
        if {a, b} == {"row", "nothing"}:
            continue  # whose first operand says nothing, as in a sum with a number
        want, refused = attempt(lambda: getattr(torch, op)(LAYOUTS[a](torch), LAYOUTS[b](torch)))  # noqa: B023  # called in this turn
        if refused is None:
            got = getattr(tt, op)(LAYOUTS[a](tt), LAYOUTS[b](tt))
            assert steps(got) == steps(want), (op, a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_keep_the_order_of_memory(layout: str) -> None:
    for make in (
        lambda m, x: x.clone(),
        lambda m, x: x.double(),
        lambda m, x: m.full_like(x, 2),
        lambda m, x: x.sin() if x.numel() else x,
        lambda m, x: m.zeros_like(x),
        lambda m, x: x.unsqueeze(1),
    ):
        same(lambda m: steps(make(m, LAYOUTS[layout](m))))  # noqa: B023  # called in this turn


def test_views_of_nothing_have_strides_and_a_place() -> None:
    for view in (
        lambda m: m.zeros(1, 0, 4)[:, :, ::2],
        lambda m: m.arange(6.0)[2:][:0],
        lambda m: m.zeros(3, 0).t(),
        lambda m: m.zeros(2, 0).expand(4, 2, 0),
        lambda m: m.ones(1, 3).expand(1, 1, 3),
        lambda m: m.arange(6.0).as_strided((0, 2), (3, 1), 2),
        lambda m: m.arange(6.0).reshape(2, 3)[5:, 1:],
        lambda m: m.arange(6.0).reshape(2, 3).diagonal(7),
        lambda m: m.zeros(2, 0)[:, None],
        lambda m: m.arange(6.0).split([6, 0])[1],
    ):
        same(lambda m: steps(view(m)))  # noqa: B023  # called in this turn


def test_matrices_come_in_columns() -> None:
    for solve in (
        lambda m, a: m.linalg.inv(a),
        lambda m, a: m.linalg.qr(a)[1],
        lambda m, a: m.linalg.svd(a)[2],
        lambda m, a: m.linalg.solve(a, a),
        lambda m, a: m.linalg.lu_factor(a)[0],
        lambda m, a: m.linalg.eigh(a @ a.mT)[1],
        lambda m, a: m.linalg.lstsq(a, a)[0],
        lambda m, a: m.fft.fft(a, dim=-2),
        lambda m, a: m.nonzero(a),
    ):
        same(lambda m: steps(solve(m, m.eye(3).expand(2, 3, 3) * 2)))  # noqa: B023  # called in this turn


def test_indexing_lies_as_a_loop_over_both() -> None:
    for index in (
        lambda m, x: x[:, [2, 0]],
        lambda m, x: x[[1], :, [0]],
        lambda m, x: x[m.tensor([True, False])],
        lambda m, x: x[..., m.tensor([], dtype=m.int64)],
    ):
        for layout in ("rows", "reversed", "first two", "every other"):
            same(lambda m: steps(index(m, LAYOUTS[layout](m))))  # noqa: B023  # called in this turn


def test_copies_count_writes_by_themselves() -> None:
    def counts(m: Any) -> list[int]:
        x = m.ones(3)
        x.add_(1)
        made = [copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.data]
        made[0].add_(1)
        before = [t._version for t in (x, *made)]
        x.data = m.zeros(2)
        return [*before, x._version]

    same(counts)


def test_out_keeps_its_memory_when_it_is_resized() -> None:
    def written(m: Any) -> Any:
        x = m.arange(6.0)
        part = x[2:]
        with pytest.warns(UserWarning, match="resized"):
            m.mul(m.ones(2), 7, out=part)
        return x.tolist(), steps(part)

    same(written)


def test_no_view_is_made_of_bytes_read_anew() -> None:
    same(lambda m: m.ones(2).view(m.int32)._base is None)
    same(lambda m: attempt(lambda: m.ones(4)[::2].view(m.int16))[1] is not None)


def test_infinities_of_complex_sums_spread() -> None:
    inf = float("inf")
    for a, b in itertools.product([complex(1, 2), complex(-inf, 1), complex(0, inf)], repeat=2):
        for sign in (1, -1):
            same(lambda m: str(m.add(m.tensor(a), m.tensor(b) * sign)))  # noqa: B023  # called in this turn
            same(lambda m: str(m.tensor([a]).sub_(m.tensor([b]))))  # noqa: B023  # called in this turn


def test_hooks_of_saved_tensors_leave_second_derivatives() -> None:
    def second(m: Any) -> list[float]:
        x = m.tensor([0.5, 1.0], dtype=m.float64, requires_grad=True)
        with m.autograd.graph.saved_tensors_hooks(lambda v: v.detach(), lambda v: v):
            y = (x * x).sin().exp()
        (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
        return [round(v, 12) for v in m.autograd.grad(g.sum(), x)[0].tolist()]

    same(second)


def test_checkpoints_can_be_differentiated_twice() -> None:
    def second(m: Any) -> list[float]:
        x = m.tensor([0.5, 1.0], dtype=m.float64, requires_grad=True)
        y = m.utils.checkpoint.checkpoint(lambda v: (v * v).sin(), x, use_reentrant=False)
        (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
        return [round(v, 12) for v in m.autograd.grad(g.sum(), x)[0].tolist()]

    same(second)


def test_gradients_of_gradients_have_memory_of_their_own() -> None:
    def grad(m: Any) -> Any:
        x = m.ones(2, 3, requires_grad=True)
        x.sum().backward(create_graph=True)
        return steps(x.grad), x.grad.requires_grad

    with warnings.catch_warnings():  # PyTorch warns of create_graph once a process
        warnings.simplefilter("ignore")
        same(grad)


def test_truth_values_are_not_rounded() -> None:
    for name in ("abs", "floor", "ceil", "trunc", "round", "frac"):
        same(lambda m: repr(attempt(lambda: getattr(m.tensor([True]), name)())[1]))  # noqa: B023  # called in this turn


def test_logit_beyond_its_limits() -> None:
    same(lambda m: m.tensor([0.2, 0.5, 0.9, float("nan")]).logit(0.9).isnan().tolist())
    same(lambda m: str(m.tensor([0.2, 0.9]).logit(1.0)))


def test_functions_that_write_by_keyword() -> None:
    for name in ("relu_", "exp_", "clamp_min_", "round_", "neg_"):
        more = {"min": 0.5} if "min" in name else {}
        same(lambda m: getattr(m, name)(input=m.tensor([1.5]), **more).tolist())  # noqa: B023  # called in this turn


def test_losses_with_a_number_for_the_reduction() -> None:
    for name in ("hinge_embedding_loss", "kl_div", "binary_cross_entropy_with_logits"):
        for reduction in ((), (0,), (1,), (2,)):
            more = dict(zip(["reduction"], reduction))
            x = [[0.5, 1.0], [0.25, 1.0]]
            got, want = (getattr(m, name)(m.tensor(x), m.tensor(x), **more) for m in BOTH)
            assert got.flatten().tolist() == pytest.approx(want.flatten().tolist()), name


def test_compiled_functions_return_what_is_one_as_one() -> None:
    def twice(x: Any) -> Any:
        y = x * 2
        return y, y

    compiled = tt.compile(twice)
    for _ in range(2):
        a, b = compiled(tt.ones(2))
        assert a is b


def test_compiled_out_has_the_type_of_what_was_given() -> None:
    def written(x: Any) -> Any:
        out = x.int()
        tt.logical_xor(x, x, out=out)
        return out * 2

    assert tt.compile(written)(tt.ones(2)).dtype is tt.int32


def test_traced_writes_into_new_tensors_by_out() -> None:
    def cleared(x: Any) -> Any:
        return tt.zeros((2,), out=x)

    traced = tt.jit.trace(cleared, (tt.ones(2),))
    x = tt.ones(2)
    traced(x)
    assert x.tolist() == [0, 0]


def test_a_trace_refuses_to_write_to_leaves() -> None:
    leaf = tt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        tt.jit.trace(lambda x: x[0].mul_(2), (leaf,))


def test_both_sides_are_there() -> None:
    assert (ORACLE.root, SUBJECT.root) == BOTH
