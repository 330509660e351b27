"""Views, what is written through them, and the counts of writes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import (
    What,
    alike,
    alike_for,
    alike_rounded,
    node,
    same,
    same_or_refused,
    steps,
    whats,
)


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


@pytest.mark.parametrize("value", ["ones(1)", "ones(())"])
def test_masks_that_cast_one_value_leave_a_history(value: str) -> None:
    def put(m: Any, x: Any, index: Any) -> Any:
        y = eval(f"m.{value}", {"m": m}).requires_grad_()
        x[index(m, x)] = y
        return x

    for index in (
        lambda m, x: x > 0,
        lambda m, x: True,
        lambda m, x: (slice(None), [True, False]),
    ):
        for kind in ("bool", "int64", "float64"):
            alike_rounded(
                lambda m, i=index, k=kind: put(m, m.tensor([[2, 0]]).to(getattr(m, k)), i),
                words=False,
            )


def test_views_are_read_out_of_a_base_that_was_written_to_without_a_history() -> None:
    def seen(m: Any) -> Any:
        x = m.ones(2, 2)
        view = x.t()
        x.requires_grad = True
        before = view.is_leaf
        with m.no_grad():
            x.mul_(2)
        other = x[None, 0]
        with m.no_grad():
            other.mul_(3)
        other.sum().backward()
        return before, view.is_leaf, type(view.grad_fn).__name__, other.grad_fn.name(), x.grad

    alike_rounded(seen)


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_an_out_that_is_written_to_gives_its_views_new_histories() -> None:
    for op in ("greater", "less_equal"):

        def what(m: Any, op: str = op) -> Any:
            x = m.ones(2, 3, requires_grad=True)
            v = x[...]
            w = v[0]
            getattr(m, op)(w, -1, out=w)
            (g,) = m.autograd.grad(w, v, m.ones(3), allow_unused=True)
            return g is None

        alike(what)


@pytest.mark.filterwarnings("ignore")
def test_inference_tensors_are_refused_after_the_write() -> None:
    for write in (
        lambda m, x: x.add_(1),
        lambda m, x: x.add_(m.ones(2)),
        lambda m, x: x[0:1].add_(5),
        lambda m, x: m.exp(m.ones(3), out=x),
        lambda m, x: x.long().lerp_(x.long(), 0.5),
    ):

        def what(m: Any, write: Callable[[Any, Any], Any]) -> Any:
            with m.inference_mode():
                x = m.ones(3)
            _, refused = attempt(lambda: write(m, x))
            return [type(refused).__name__, x]

        alike_for(what, write)


# -- memory and histories --------------------------------------------------------------------------


def test_data_over_the_same_memory_goes_on_counting_with_it() -> None:
    def seen(m: Any) -> Any:
        x = m.ones(3)
        view = x.view_as(x)
        view.data = x.detach()
        x.mul_(2)
        other = m.ones(3)
        part = other[1:]
        part.data = m.zeros(2)
        other.mul_(2)
        return view._version, part._version, part.tolist()

    same(seen)


# -- linear algebra: shapes before types, and nothing to do ----------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("shape", [(2, 1), (2, 0)])
def test_histories_of_views_after_writes(dtype: str, shape: tuple[int, ...]) -> None:
    def seen(m: Any, how: Callable[[Any, Any], Any]) -> Any:
        x = m.ones(shape, dtype=getattr(m, dtype)).requires_grad_()
        part, other = x.unbind(0)[0], x.detach()
        how(m, x)
        leaf, refused = attempt(lambda: part.is_leaf)
        return x._version, other._version, leaf, str(refused)

    def stepped(m: Any, x: Any) -> None:
        (x * x).abs().sum().backward()
        m.optim.SGD([x], 0.1).step()

    def let_go(m: Any, x: Any) -> None:
        x.requires_grad_(False)
        x += x

    for how in (stepped, let_go, lambda m, x: x.data.mul_(2), lambda m, x: x.detach().mul_(2)):
        assert seen(tt, how) == seen(torch, how)


# -- memory ----------------------------------------------------------------------------------------


def test_memory_that_grows_through_a_view_is_everybodys() -> None:
    def seen(m: Any) -> Any:
        x = m.arange(6.0).reshape(2, 3)
        part, other, nothing = x[1, 1:], x.detach(), x[:, 5:]
        with pytest.warns(UserWarning, match="resized"):
            m.mul(m.ones(7), 2, out=part)
        other[0, 0] = 9
        return x.tolist(), part.tolist(), steps(part), steps(nothing), x._version

    same(seen)


def test_memory_of_nothing_grows_for_its_views() -> None:
    def seen(m: Any) -> Any:
        x = m.zeros(0)
        turned = x.view(0)
        m.linspace(0, 2, 3, out=turned)
        return x._version, x.untyped_storage().data_ptr() == turned.untyped_storage().data_ptr()

    same(seen)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(x > 0, x),
        lambda x: x[:1].__setitem__(x[:1] > 0, x[:1]),
        lambda x: x.__setitem__([0, 1], x),
        lambda x: x.__setitem__(x > 0, x[:]),
        lambda x: x[::2].__setitem__(x[::2] > 0, x[::2].T),
        lambda x: x.expand(3, 4).__setitem__(True, x.expand(3, 4)),
        lambda x: x[1:].add_(x[:-1]),
        lambda x: x[:3:2].add_(x[1:3]),
        lambda x: x.reshape(2, 2).add_(x.reshape(2, 2).t()),
        lambda x: x.expand(2, 4).conj_physical_(),
    ],
)
def test_writes_to_memory_that_is_read(write: What) -> None:
    def result(m: Any) -> Any:
        x = m.tensor([1.0, 2.0, 3.0, 4.0])
        write(x)
        return x.tolist()

    same_or_refused(result)


def test_threshold_may_write_where_places_are_shared() -> None:
    same(lambda m: m.threshold_(m.arange(3.0).as_strided((2, 2), (1, 0)), 0.5, -1).tolist())


def test_unravelled_indices_are_views() -> None:
    same(lambda m: [steps(x) for x in m.unravel_index(m.tensor([[1, 0, 3]]), (5, 8))])


# -- histories -------------------------------------------------------------------------------------


def test_slices_of_everything_are_no_step() -> None:
    for index in whats(
        lambda x: x[0, 0:2],
        lambda x: x[0, :5],
        lambda x: x[0, 0:],
        lambda x: x[0, -2:2],
        lambda x: x[0:3],
        lambda x: x[:0][None, 0:0],
    ):
        same(lambda m: node(index(m.ones(3, 2, requires_grad=True))))  # noqa: B023  # called in this turn


def test_what_inference_tensors_show_may_be_written() -> None:
    def written(m: Any) -> Any:
        with m.inference_mode():
            z = m.ones(3) + 1
        z.data.mul_(2)
        z.detach().add_(1)
        kinds = [z.data, z.detach(), z.view(m.int32), z.view(3)]
        return z.tolist(), [k.is_inference() for k in kinds], z.detach()._version

    same(written)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("of_inference", [False, True])
@pytest.mark.parametrize("kind", ["int32", "float32", "float64", "complex64", "uint8"])
@pytest.mark.parametrize("own", ["float32", "int32", "complex64"])
def test_bytes_read_anew_are_inference_tensors_where_the_mode_is_on(
    own: str, kind: str, of_inference: bool, inside: bool
) -> None:
    def run(m: Any) -> Any:
        with m.inference_mode(of_inference):
            x = m.ones(2, 4).to(getattr(m, own)) * 1
        with m.inference_mode(inside):
            y = x.view(getattr(m, kind))
        said = [y.is_inference(), y[0].is_inference(), (y * 1).is_inference(), y.dtype.itemsize]
        if of_inference:  # of others, it is a view
            said.append(y._is_view())
        try:
            y.zero_()
            said += [y._version, x.abs().sum().item()]
        except RuntimeError as e:
            said.append(str(e)[:40])
        return said

    same(run)


@pytest.mark.parametrize("dims", [(0, 0), (-1, 0), ((), ())])
def test_a_number_whose_dimensions_move_is_an_alias(dims: Any) -> None:
    def run(m: Any) -> Any:
        x = (m.ones(2).requires_grad_() * 1).unbind()[0].movedim(*dims)
        try:
            return x.zero_()
        except RuntimeError as e:
            return type(x.grad_fn).__name__, str(e)

    same(run)


OVER = ["[:,1:]=[:,:-1]", "[:,2:]=[:,:-2]", "[:,:-1]=[:,1:]", "[:,:3]=[:,:3].T", "[:]=[:1]"]


@pytest.mark.parametrize("kind", ["float32", "complex64", "bfloat16", "bool"])
@pytest.mark.parametrize("parts", OVER)
@pytest.mark.parametrize("n", [6, 40])
def test_a_copy_over_part_of_its_source_goes_along_the_memory(
    kind: str, parts: str, n: int
) -> None:
    to, of = parts.split("=")

    def moved(m: Any) -> Any:
        x = (m.arange(3 * n) * 5 % 7 % 3).reshape(3, n).to(getattr(m, kind))
        exec(f"x{to} = x{of}", {"x": x})
        return x.tolist()

    same(moved)


@pytest.mark.parametrize("call", ["flatten()", "flatten(1)", "reshape(-1)", "ravel()"])
@pytest.mark.parametrize(
    "part", ["x", "x[:, :, 1:]", "x[..., 0]", "x.permute(2, 1, 0)", "x[:, :1]"]
)
def test_the_node_of_one_dimension(part: str, call: str) -> None:
    def what(m: Any) -> Any:
        x = m.ones(2, 3, 4).requires_grad_()
        y = eval(f"{part}.{call}", {"x": x})
        return y.grad_fn.name(), y.stride(), y._base is x

    same(what)


@pytest.mark.parametrize("turns", range(-1, 4))
def test_turns_have_a_node_of_their_own(turns: int) -> None:
    def what(m: Any) -> Any:
        x = m.ones(2, 3, 4).permute(1, 0, 2).requires_grad_()
        y = m.rot90(x, turns, (-1, 0))
        (grad,) = m.autograd.grad((y * y).sum(), x)
        return y.grad_fn.name(), steps(y), y._base is None, steps(grad)

    same(what)
