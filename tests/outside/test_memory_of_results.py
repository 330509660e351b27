"""Where results lie in memory: strides, places, and whose memory it is."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, attempt, torch, tt
from tests.outside.alike import BOTH, LAYOUTS, alike, alike_for, same, steps, whats
from toytorch.core.op import registry


def public_names() -> list[tuple[str, int]]:
    """Elementwise functions of several tensors, and the losses, with the number of their operands."""
    found = {
        (path, len(op.tensor_at))
        for op in registry.values()
        for path in (op.name, op.name.replace("special_", "special."))
        if op.kind == "pointwise" and len(op.tensor_at) > 1 and op.name[0] != "_"
        if reached(torch, path) and reached(tt, path)
    }
    losses = ("mse", "l1", "smooth_l1", "huber", "soft_margin", "multilabel_soft_margin")
    return sorted(found | {(f"nn.functional.{name}_loss", 2) for name in losses})


def reached(m: Any, path: str) -> Any:
    for part in path.split("."):
        m = getattr(m, part, None)
    return m


def layout_within(rng: Random, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """A shape that broadcasts to another, and strides with gaps, repetitions, in any order."""
    sizes = tuple(1 if rng.random() < 0.2 else n for n in shape[rng.choice((0, 0, 0, 1, 2)) :])
    order = rng.sample(range(len(sizes)), len(sizes))
    steps, step = [0] * len(sizes), rng.choice((1, 1, 2))
    for d in order:
        steps[d], step = step, step * sizes[d]
    return sizes, tuple(0 if rng.random() < 0.1 else s for s in steps)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("path", "count"), public_names())
def test_elementwise_results_lie_as_the_first_operand_that_tells(path: str, count: int) -> None:
    rng = Random(0)
    more = {"reduction": "none"} if "loss" in path else {}
    for _ in range(60):
        shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(2, 4)))
        kinds = [KINDS[0]] * count
        if rng.random() < 0.5 and "logical" not in path:  # which are of any types, and cast none
            # The losses get halves as float32, and what they were repeated by is lost.
            kinds = rng.choices(KINDS[:-2] if "l1" in path else KINDS, k=count)
        given = [(*layout_within(rng, shape), k) for k in kinds]

        def made(m: Any) -> Any:
            operands = (
                m.ones(600, dtype=getattr(m, k)).as_strided(s, t)
                for s, t, k in given  # noqa: B023  # called in this turn
            )
            x = reached(m, path)(*operands, **more)
            return tuple(x.shape), [t for t, n in zip(x.stride(), x.shape) if n > 1]

        want, refused = attempt(made, torch)
        if refused is None:
            assert made(tt) == want, given


KINDS = ("float32", "float64", "int64", "bool", "float16", "bfloat16")


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


def test_no_view_is_made_of_bytes_read_anew() -> None:
    same(lambda m: m.ones(2).view(m.int32)._base is None)
    same(lambda m: attempt(lambda: m.ones(4)[::2].view(m.int16))[1] is not None)


def test_both_sides_are_there() -> None:
    assert (ORACLE.root, SUBJECT.root) == BOTH


# -- layouts ---------------------------------------------------------------------------------------


LAYERS = [
    ((2, 3, 2), (6, 2, 1)), ((2, 3, 2), (1, 2, 6)), ((1, 3, 2), (12, 2, 1)), ((2, 1, 3), (0, 2, 2)),
    ((3, 2, 1, 3), (3, 9, 7, 1)), ((2, 2, 3, 3), (18, 1, 6, 2)), ((2, 3, 3), (0, 2, 6)),
    ((1, 1, 3), (1, 3, 1)), ((2, 1, 3), (0, 1, 1)),
]  # fmt: skip


LAID: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view_as(x),
    "diagonal of a view": lambda x: x.view_as(x).diagonal(0),
    "sort": lambda x: x.sort(-1)[0],
    "roll": lambda x: x.roll(1, 0),
    "index_fill": lambda x: x.index_fill(0, x.new_zeros(1).long(), 1.0),
    "halves and truth values": lambda x: x.half() + (x > 0),
    "truth values and halves": lambda x: (x.as_strided(x.shape, x.stride()) > 0) + x.half(),
}


@pytest.mark.parametrize("kinds", [("float32", "float64"), ("int32", "float16"), ("bool", "bool")])
def test_stacks_of_images_lie_as_joined_ones(kinds: tuple[str, str]) -> None:
    def made(m: Any) -> Any:
        x, y = (
            m.ones(2, 3, 4, 5).to(getattr(m, k)).to(memory_format=m.channels_last) for k in kinds
        )
        return [m.stack([x, y], d).stride() for d in range(5)], m.stack([x, y]).dtype

    alike(made)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", LAID)
def test_where_results_lie(how: str) -> None:
    for shape, strides in LAYERS:
        alike_for(
            lambda m, shape, strides: LAID[how](m.arange(60.0).as_strided(shape, strides)),
            shape,
            strides,
        )


# -- compositions ----------------------------------------------------------------------------------


def test_copies_of_another_shape_are_no_views() -> None:
    def seen(m: Any) -> Any:
        x = m.arange(12.0).reshape(2, 3, 2).permute(2, 1, 0)
        made = (
            x.flatten(0), x.reshape(12), x.flatten(0, 1),
            m.grid_sampler_2d(m.ones(1, 1, 1, 1), m.zeros(1, 1, 1, 2), 0, 0, True),
        )  # fmt: skip
        return [(t._is_view(), t.detach_() is t) for t in made]

    same(seen)


def test_layouts_of_images_and_of_gradients() -> None:
    def seen(m: Any) -> Any:
        x = m.ones(2, 3, 4, 4).contiguous(memory_format=m.channels_last).requires_grad_()
        z = m.ones(2, 3, 2).permute(2, 0, 1).requires_grad_()
        (none,) = m.autograd.grad(
            m.ones(1, requires_grad=True), [z], m.ones(1), materialize_grads=True
        )
        part = z[:, [0, 1]]
        part.retain_grad()
        part.abs().sum().backward()
        return m.nn.RMSNorm(4)(x).stride(), none.stride(), part.grad.stride()

    same(seen)


# -- memory ----------------------------------------------------------------------------------------


def test_shuffles_make_memory_of_their_own() -> None:
    for shuffle in whats(
        lambda m, x: m.nn.functional.pixel_shuffle(x, 1),
        lambda m, x: m.nn.functional.pixel_unshuffle(x, 1),
        lambda m, x: m.nn.functional.channel_shuffle(x, 1),
        lambda m, x: m.nn.functional.channel_shuffle(x, 2),
    ):
        for layout in whats(
            lambda m: m.arange(48.0).reshape(2, 4, 2, 3),
            lambda m: m.arange(48.0).reshape(3, 2, 4, 2).permute(3, 2, 1, 0),
            lambda m: (m.arange(48.0).reshape(2, 4, 2, 3)).contiguous(
                memory_format=m.channels_last
            ),
        ):
            same(lambda m: (steps(shuffle(m, layout(m))), shuffle(m, layout(m))._base is None))  # noqa: B023  # called in this turn
    same(lambda m: tuple(m.nn.functional.pixel_unshuffle(m.zeros(1, 0, 2), 2).shape))


# -- memory ----------------------------------------------------------------------------------------


LIKE = "zeros_like ones_like empty_like rand_like randn_like"


@pytest.mark.parametrize("name", [*LIKE.split(), "randint_like", "full_like"])
def test_tensors_alike_keep_the_steps_over_sizes_of_1(name: str) -> None:
    more = {"randint_like": (3,), "full_like": (2,)}.get(name, ())
    for shape, strides in {
        (1, 2, 1): (2, 1, 2), (10, 3, 1, 1): (3, 1, 3, 3), (2, 1): (1, 2), (1, 1): (5, 7),
        (3, 1, 2): (2, 9, 1), (2, 3): (3, 1), (1,): (4,),
    }.items():  # fmt: skip
        ours, theirs = (m.empty_strided(shape, strides) for m in (tt, torch))
        made = getattr(tt, name)(ours, *more)
        assert made.stride() == getattr(torch, name)(theirs, *more).stride(), (shape, strides)


ODD = {  # dimensions of size 1, whose strides nothing but views and `stride()` can tell
    "a row": lambda m: m.arange(24.0).view(2, 3, 4)[:-1, 0],
    "a column": lambda m: m.arange(24.0).view(2, 3, 4)[:1, 0, :1],
    "a number": lambda m: m.arange(10.0)[::3][:1],
    "a row of nothing": lambda m: m.arange(24.0).view(2, 3, 4)[:1, 0, :0],
    "several": lambda m: m.arange(24.0).view(2, 3, 4)[:1, :1],
}
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "unsqueeze": lambda m, x: x.unsqueeze(0),
    "None": lambda m, x: x[None],
    "None and a part": lambda m, x: x[None, 1:2],
    "a last None": lambda m, x: x[..., None],
    "view": lambda m, x: x.view(1, *x.shape),
    "flatten": lambda m, x: x.flatten(),
    "unflatten": lambda m, x: x.unflatten(-1, (-1, 1)) if x.numel() else x,
    "reshape": lambda m, x: x.reshape(*x.shape, 1),
    "view_as_real": lambda m, x: m.view_as_real(m.complex(x, x)[:1]),
    "expand": lambda m, x: x.expand(1, 1, *x.shape),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("x", ODD)
def test_dimensions_of_size_one_keep_their_strides(x: str, view: str) -> None:
    for grad in (False, True):
        same(lambda m: VIEWS[view](m, ODD[x](m).requires_grad_(grad)).stride())  # noqa: B023  # called in this turn


@pytest.mark.filterwarnings("ignore:Using backward")  # of PyTorch, of cycles
@pytest.mark.parametrize("sizes", [((4, 0), (1, 1)), ((0, 3), (7, 5)), ((2, 0, 3), (1, 5, 2))])
@pytest.mark.parametrize("mode", ["", "create_graph", "of leaves"])
def test_gradients_of_leaves_without_elements_lie_as_these(sizes: Any, mode: str) -> None:
    def run(m: Any) -> Any:
        z = m.empty_strided(*sizes).requires_grad_()
        made = z if mode == "of leaves" else z.exp() * 2
        made.sum().backward(create_graph=mode == "create_graph")
        return steps(z), steps(z.grad)

    same(run)


@pytest.mark.parametrize("act", ["abs", "sin", "exp", "relu", "square", "neg"])
def test_gradients_of_leaves_that_lie_with_gaps(act: str) -> None:
    for shape, steps_ in (
        ((2, 3), (1, 1)),
        ((2, 3, 4), (2, 2, 0)),
        ((2, 3, 4), (0, 2, 2)),
        ((4, 2), (1, 6)),
    ):

        def laid(m: Any, shape: Any = shape, steps_: Any = steps_) -> Any:
            x = m.arange(60.0).as_strided(shape, steps_).requires_grad_()
            return steps(m.autograd.grad(getattr(x, act)().sum(), x)[0])

        same(laid)


@pytest.mark.parametrize("shape", [(2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 3, 1), (1, 3, 2)])
def test_elements_picked_beside_dimensions_of_size_one(shape: tuple[int, ...]) -> None:
    for key in ((slice(None), [0, -1]), (..., [0, -1]), ([0, 0],), (slice(None), [0], None)):
        for step in (1, 2):
            same(
                lambda m, key=key, step=step: steps(m.ones(shape)[:, :, ::step][key]),
            )
