"""Compiled and traced functions: types, memory and layouts as without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from tests.outside.alike import same, same_words


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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["linspace", "logspace", "arange", "range"])
def test_ranges_fill_an_out_of_any_shape(name: str) -> None:
    for shape in ((), (1, 1), (2,)):

        def filled(m: Any, x: Any, shape: tuple[int, ...] = shape) -> Any:
            out = m.ones(shape) * x[0]
            ends = (x[0], x[1], 1) if "space" in name else (0, 1) if name == "arange" else (1, 1)
            getattr(m, name)(*ends, out=out)
            return out

        for make in (tt.compile, lambda f: tt.jit.trace(f, (tt.ones(2),), check_trace=False)):
            run = make(lambda x: filled(tt, x))
            for first in (0.0, 1.0, 1.0):
                made, want = run(tt.tensor([first, 2.0])), filled(torch, torch.tensor([first, 2.0]))
                assert (made.tolist(), list(made.shape)) == (want.tolist(), list(want.shape))


def test_a_compiled_copy_that_is_detached_says_that_there_is_no_derivative() -> None:
    run = tt.compile(lambda x: tt.detach_copy(x))
    x = tt.ones(3, requires_grad=True)
    for _ in range(3):
        made = run(x)
        assert made.requires_grad
        with pytest.raises(RuntimeError, match="derivative for aten::detach_copy is not"):
            made.sum().backward()


def test_a_trace_refuses_to_write_to_leaves() -> None:
    leaf = tt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        tt.jit.trace(lambda x: x[0].mul_(2), (leaf,))


@pytest.mark.parametrize("name", ["squeeze_", "unsqueeze_(0)", "t_"])
def test_traces_refuse_other_layouts_of_leaves(name: str) -> None:
    def run(x: Any) -> Any:
        eval(f"x.{name}" + "()" * ("(" not in name))
        return x

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        tt.jit.trace(run, (tt.ones(2, 2, requires_grad=True),), check_trace=False)


# -- compositions ----------------------------------------------------------------------------------


def test_a_function_that_leaves_values_it_cannot_be_planned_for() -> None:
    def seen(m: Any) -> Any:
        def f(x: Any) -> Any:
            y = x.squeeze()
            x %= x
            return y - x

        run = f if m is torch else m.compile(f)
        x = m.tensor([[5], [-3], [-1]])
        return run(x).tolist(), x.tolist(), run(m.tensor([[5], [2]])).tolist()

    same(seen)


# -- functions -------------------------------------------------------------------------------------


def test_traced_functions_lay_their_inputs_anew() -> None:
    def squeezed(x: Any) -> Any:
        x.squeeze_()
        return x + 1

    def cleared(x: Any) -> Any:
        return tt.zeros(4, out=x)

    made = tt.jit.trace(squeezed, (tt.ones(1, 3),), check_trace=False)
    for shape in ((1, 3), (2, 1), (1, 3)):
        x, y = tt.ones(shape), torch.ones(shape)
        made(x), squeezed(y)
        assert tuple(x.shape) == tuple(y.shape)
    made = tt.jit.trace(cleared, (tt.ones(2),), check_trace=False)
    x = tt.ones(2)
    assert made(x) is x and x.tolist() == [0] * 4


def test_a_trace_is_made_anew_for_another_layout() -> None:
    made = tt.jit.trace(lambda x: x.contiguous(), (tt.ones(2, 3),), check_trace=False)
    x = tt.ones(3, 2).t()
    assert made(x) is not x and made(x).is_contiguous()


@pytest.mark.parametrize("offset", [0, 1, 2])
@pytest.mark.parametrize("name", ["contiguous", "clone", "ravel", "float"])
@pytest.mark.filterwarnings("ignore:.*jit.trace")  # of PyTorch, that it is deprecated
def test_a_trace_that_is_made_anew_knows_how_histories_lie(name: str, offset: int) -> None:
    """A diagonal is copied by what gives the rows back that were traced."""

    def seen(m: Any, make: Any, grad: bool) -> Any:
        def run(x: Any) -> Any:
            y = getattr(x, name)()
            y.mul_(3)
            return y

        x = m.ones(3, 3, requires_grad=grad) * 1
        made = make(run, m.ones(3, 3))(x.diagonal(offset))
        return x.tolist(), made.tolist(), made.requires_grad

    def traced(run: Any, example: Any) -> Any:
        return tt.jit.trace(run, (example,), check_trace=False)

    for grad in (False, True):
        assert seen(tt, traced, grad) == seen(torch, lambda run, _: run, grad)


def test_results_of_plans_lie_as_the_function_lays_them() -> None:
    def power(x: Any) -> Any:
        y = x.unfold(0, 2, 2)
        return y**y / 2

    compiled, x = tt.compile(power), tt.arange(6.0).reshape(2, 3)
    for _ in range(3):
        assert compiled(x).stride() == power(x).stride()


def test_plans_of_losses_in_bfloat16() -> None:
    def loss(x: Any) -> Any:
        return tt.nn.functional.hinge_embedding_loss(x, x)

    compiled, x = tt.compile(loss), tt.tensor([1.0, 2, -1], dtype=tt.bfloat16, requires_grad=True)
    wanted = tt.autograd.grad(loss(x), x)[0].tolist()
    for _ in range(3):
        assert tt.autograd.grad(compiled(x), x)[0].tolist() == wanted


# -- scripts ---------------------------------------------------------------------------------------


def test_a_write_after_a_group_of_a_script() -> None:
    text = """
def foo(a, b):
    c = a + b
    e = 2 * a
    torch.add(c, b, out=e)
    return e
"""
    ours, theirs = tt.jit.CompilationUnit(text), torch.jit.CompilationUnit(text)
    for shape in ((3,), (3, 3), (3,)):
        for _ in range(2):
            made = ours.foo(tt.ones(shape), tt.ones(3)).tolist()
            assert made == theirs.foo(torch.ones(shape), torch.ones(3)).tolist()


# -- batches of cotangents through compiled functions ----------------------------------------------


COMPILED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product": lambda m, a, b: a * b,
    "several": lambda m, a, b: ((a * b).sum(1), a.sin()),
    "matrices": lambda m, a, b: a @ b.T,
    "distance": lambda m, a, b: m.nn.functional.pairwise_distance(a, b),
}


def pulled(m: Any, name: str, way: str) -> Any:
    rng = np.random.default_rng(0)
    a, b = (
        m.tensor(rng.standard_normal((3, 4)).tolist(), dtype=m.float64, requires_grad=True)
        for _ in range(2)
    )

    def function(a: Any, b: Any) -> Any:
        return COMPILED[name](m, a, b)

    if way == "trace":
        function = m.jit.trace(function, (a, b))
    elif way == "compile" and m.__name__ == "toytorch":
        function = m.compile(function)
    for _ in range(3):  # the later calls of a compiled function are those that run its plan
        made = function(a, b)
    made = made if isinstance(made, tuple) else (made,)
    grads = [m.tensor(rng.standard_normal((2, *y.shape)).tolist(), dtype=m.float64) for y in made]
    found = []
    for more in (False, True):
        given = {"is_grads_batched": True, "retain_graph": True, "create_graph": more}
        found += m.autograd.grad(made, (a, b), grads, **given)
    found += m.autograd.grad(made[:1], (a, b), grads[:1], is_grads_batched=True, retain_graph=True)
    found += m.func.vmap(lambda *g: m.autograd.grad(made, (a, b), g, retain_graph=True))(*grads)
    forward = m.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(g[0], g[1]) for g in grads]
        for x in m.autograd.grad(made, (a, b), duals, retain_graph=True):
            found += [v.clone() for v in forward.unpack_dual(x)]
    return [v.detach().numpy() for v in found]


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")
@pytest.mark.parametrize("way", ["trace", "compile"])
@pytest.mark.parametrize("name", COMPILED)
def test_batches_of_cotangents(name: str, way: str) -> None:
    for ours, theirs in zip(pulled(tt, name, way), pulled(torch, name, way), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


# -- what is taken now -----------------------------------------------------------------------------


MODULES_LACK = """get_buffer get_parameter get_submodule set_submodule requires_grad_ to_empty
bfloat16 xpu register_forward_hook register_full_backward_hook"""


# -- compiled code ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")
@pytest.mark.parametrize("name", MODULES_LACK.split())
def test_what_compiled_modules_refuse(name: str) -> None:
    same_words(lambda m: getattr(m.jit.script(m.nn.Linear(2, 2)), name)("weight"))


@pytest.mark.filterwarnings("ignore:torch.tensor results are registered")  # PyTorch's, too
def test_a_number_chosen_beside_complex_gradients_is_no_wider() -> None:
    def chosen(m: Any, x: Any) -> Any:
        y = x * x
        return y, m.where(m.tensor(False), 1j, y)

    def seen(m: Any, f: Any) -> Any:
        x = m.tensor(0.5, requires_grad=True)
        y, z = f(x)
        (y + z.real).backward()
        return x.grad.dtype is m.float32, x.grad.tolist()

    traced = tt.jit.trace(lambda x: chosen(tt, x), (tt.tensor(0.5, requires_grad=True),))
    assert seen(tt, traced) == seen(torch, lambda x: chosen(torch, x))


def test_a_sum_of_gradients_that_lost_a_term_lies_in_rows() -> None:
    """What reads the sum is compiled for rows; the diagonal that is left does not lie so."""

    def parts(m: Any, x: Any) -> Any:
        y = m.view_as_real(x * 2)
        return y * 3, m.diag_embed(y)

    def seen(m: Any, f: Any) -> Any:
        x = m.ones(1, dtype=m.complex64, requires_grad=True)
        f(x)[1].sum().backward()
        return x.grad.tolist()

    example = tt.ones(1, dtype=tt.complex64, requires_grad=True)
    traced = tt.jit.trace(lambda x: parts(tt, x), (example,))
    assert seen(tt, traced) == seen(torch, lambda x: parts(torch, x))


WALKED: dict[str, Callable[[Any, Any], Any]] = {
    "x - x": lambda m, x: (x - x).t(),
    "x * 2 + 1": lambda m, x: x * 2 + 1,
    "sum": lambda m, x: (x + 1).sum(0),
    "x * x": lambda m, x: x * x,
    "exp": lambda m, x: x.exp(),
    "unused": lambda m, x: (x / 3, x**2)[0],
}


@pytest.mark.filterwarnings("ignore:.*jit.trace")  # of PyTorch, that it is deprecated
@pytest.mark.parametrize("name", WALKED)
def test_a_trace_that_saves_nothing_is_walked_twice(name: str) -> None:
    def seen(m: Any) -> Any:
        x = m.ones(2, 2, requires_grad=True)
        traced = m.jit.trace(lambda x: WALKED[name](m, x), (x,))
        for _ in range(3):
            y = traced(x)
        y.backward(m.ones_like(y))
        try:
            y.backward(m.ones_like(y))
        except RuntimeError as e:
            return str(e)[:60]
        return x.grad.tolist()

    same(seen)


# -- how gradients lie, and what is left after an error ----------------------------------------------


def unary(m: Any) -> list[Callable[[Any], Any]]:
    return [m.exp, m.sin, lambda x: x * 2, lambda x: x / x, lambda x: x.transpose(0, 1).tanh()]


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("way", ["trace", "compile"])
def test_gradients_lie_as_those_of_the_function_itself(way: str, number: int) -> None:
    weights: list[Callable[[Any, Any], Any]] = [
        lambda m, y: m.ones_like(y),
        lambda m, y: m.ones(y.shape),
        lambda m, y: m.ones(()).expand(y.shape),
    ]
    layouts: list[Callable[[Any], Any]] = [
        lambda m: m.arange(24.0).reshape(3, 2, 4),
        lambda m: m.arange(24.0).reshape(4, 2, 3).permute(2, 1, 0),
        lambda m: m.arange(24.0).reshape(3, 4, 2).transpose(1, 2),
    ]
    for lay in layouts:
        for weight in weights:
            steps = []
            for m in (torch, tt):
                x = (lay(m) + 1).clone().requires_grad_()
                f = unary(m)[number]
                if m is tt:
                    f = tt.compile(f) if way == "compile" else tt.jit.trace(f, (x,))
                y = f(x)
                steps.append(m.autograd.grad(y, [x], weight(m, y))[0].stride())
            assert steps[0] == steps[1]


@pytest.mark.parametrize("change", ["mul_", "unsqueeze_", "t_", "resize_"])
def test_what_a_traced_function_wrote_before_it_failed_stays_written(change: str) -> None:
    def f(x: Any, y: Any) -> Any:
        getattr(y, change)(*{"mul_": (2,), "unsqueeze_": (0,), "resize_": (2, 2)}.get(change, ()))
        return y.reshape(-1) * x

    left = []
    for m in (torch, tt):
        y = m.tensor([[3, 0, 1, 2]])
        traced = f if m is torch else tt.jit.trace(f, (m.ones(4), y + 1), check_trace=False)
        with pytest.raises(RuntimeError, match="size of tensor"):
            traced(m.ones(7), y)
        left.append((y.tolist(), y.stride()))
    assert left[0] == left[1]


def test_an_out_that_is_given_its_shape_in_a_compiled_function_lies_as_the_result() -> None:
    for name in ("msort", "abs", "special.ndtr"):
        steps = []
        for m in (torch, tt):
            home, _, function = name.rpartition(".")
            called = getattr(getattr(m, home) if home else m, function)

            def f(x: Any, out: Any, called: Any = called) -> Any:
                called(x, out=out)
                return out * 1

            out = m.zeros(2, 0)
            f = f if m is torch else tt.compile(f)
            f(m.ones(2, 2, 2, 3).contiguous(memory_format=m.channels_last), out)
            steps.append(out.stride())
        assert steps[0] == steps[1]


@pytest.mark.parametrize("name", ["isposinf", "isneginf", "isinf", "isnan", "isfinite"])
def test_fused_questions_about_infinities(name: str) -> None:
    """A bool is not infinite, though infinity as a bool is true."""

    def asked(m: Any, x: Any) -> Any:
        made = getattr(m, name)(x)
        return made, made.float() * 2

    compiled = tt.compile(lambda x: asked(tt, x))
    for kind in ("bool", "uint8", "int64", "float32", "float64"):
        values = [1.0, 0.0, -3.0] if "int" in kind else [np.inf, -np.inf, np.nan, 0.0]
        want, got = (m.tensor(values).to(getattr(m, kind)) for m in (torch, tt))
        for _ in range(2):
            assert [t.tolist() for t in compiled(got)] == [t.tolist() for t in asked(torch, want)]


def test_numbers_are_divided_by_zero_in_compiled_functions() -> None:
    def f(m: Any, x: Any) -> Any:
        return x * 1, m.div(3, 0), m.div(-1e-5, 0.0), m.div(0, 0), m.div(3, 2)

    compiled = tt.compile(lambda x: f(tt, x))
    for _ in range(2):
        made = [str(t.tolist()) for t in compiled(tt.ones(2))]
        assert made == [str(t.tolist()) for t in f(torch, torch.ones(2))]


@pytest.mark.filterwarnings("ignore:.*jit.trace")  # of PyTorch, that it is deprecated
@pytest.mark.parametrize("name", ["conj", "adjoint"])
def test_conjugates_that_a_trace_returns_show_later_writes(name: str) -> None:
    def later(m: Any) -> Any:
        f = m.jit.trace(lambda x: getattr(x, name)(), (m.ones(2, 2, dtype=m.complex64),))
        z = m.tensor([[1 + 2j, 3j], [1j, 2]])
        made = f(z)
        z.mul_(2)
        return made.resolve_conj().tolist()

    same(later)


@pytest.mark.filterwarnings("ignore:.*jit.trace")  # of PyTorch, that it is deprecated
@pytest.mark.parametrize("both", [True, False])
def test_no_gradient_goes_through_the_data_of_a_parameter(both: bool) -> None:
    def run(m: Any) -> Any:
        def scaled(norm: Any, x: Any) -> Any:
            made = x * norm.weight.data
            return made + norm.weight if both else made

        norm = type("Scaled", (m.nn.LayerNorm,), {"forward": scaled})(2)
        made = m.jit.trace(norm, m.ones(2))(m.ones(2) * 5)
        if both:
            made.sum().backward()
        return made.tolist(), made.requires_grad, both and norm.weight.grad.tolist()

    same(run)


@pytest.mark.filterwarnings("ignore:.*jit.trace")  # of PyTorch, that it is deprecated
@pytest.mark.parametrize("power", [0, 0.0, 0j, 1, 2, 0.5, -1])
def test_powers_of_complex_numbers_in_plans(power: Any) -> None:
    def powers(m: Any) -> Any:
        x = m.tensor([2 + 1j, -1j])
        f = m.jit.trace(lambda x: (x + x) ** power + 1, (x,))
        x[0] = 0
        return str([f(x).tolist() for _ in range(2)])

    same(powers)


@pytest.mark.filterwarnings("ignore:.*jit.trace")  # of PyTorch, that it is deprecated
@pytest.mark.parametrize("shape", [(2,), (1, 0)])
def test_what_a_trace_detaches_counts_writes_with_its_source(shape: tuple[int, ...]) -> None:
    def versions(m: Any) -> Any:
        f = m.jit.trace(lambda x: x.detach(), (m.ones(2),))
        x = m.ones(shape)
        a, b = f(x), f(x)
        a.add_(1)
        return a._version, b._version, x._version

    same(versions)


def read(m: Any, x: Any) -> Any:
    return x.data * 2


def written_and_read(m: Any, x: Any) -> Any:
    y = x.data
    y[0] = 5
    return x + y


def added_to(m: Any, x: Any) -> Any:
    y = x.data
    y.add_(1)
    return y, x


def shown(m: Any, x: Any) -> Any:
    return x * 2, x.data


def set_anew(m: Any, x: Any) -> Any:
    y = x * 1
    y.data = x.detach() * 3
    return y + 1


def laid_anew(m: Any, x: Any) -> Any:
    y = x.data
    y.unsqueeze_(0)
    return x + y.add_(1)


def flattened(m: Any, x: Any) -> Any:
    return x.data * 2, x.flatten()


@pytest.mark.filterwarnings("ignore:.*jit.trace")  # of PyTorch, that it is deprecated
@pytest.mark.parametrize(
    "f", [read, written_and_read, added_to, set_anew, shown, laid_anew, flattened]
)
def test_data_in_a_trace_is_a_constant(f: Any) -> None:
    def run(m: Any) -> Any:
        x = m.arange(3.0)
        try:
            traced = m.jit.trace(lambda x: f(m, x), (x,), check_trace=False)
        except RuntimeError as e:
            return str(e)[-60:]
        seen = [x.tolist()]
        for given in (m.ones(3), m.ones(3), m.ones(2, 3), m.ones(1)):
            try:
                made = traced(given)
                seen.append([t.tolist() for t in (made if isinstance(made, tuple) else (made,))])
            except RuntimeError:
                seen.append(["refused"])
        return seen

    same(run)


@pytest.mark.filterwarnings("ignore:.*jit.trace")  # of PyTorch, that it is deprecated
@pytest.mark.parametrize("call", ["t_", "unsqueeze_", "squeeze_", "transpose_"])
def test_a_trace_lays_anew_what_its_function_holds(call: str) -> None:
    def run(m: Any) -> Any:
        held = m.tensor([[1.0], [5.0]])
        more = {"unsqueeze_": (0,), "transpose_": (0, 1)}.get(call, ())
        f = m.jit.trace(lambda x: x * getattr(held, call)(*more), (m.ones(()),), check_trace=False)
        return [(f(m.ones(())).tolist(), held.tolist()) for _ in range(3)]

    same(run)


OF_ELEMENTS = {
    "zeros beside": lambda m, x: x[x > 0] + m.zeros(x[x > 0].shape),
    "new zeros": lambda m, x: x[x > 0] + x.new_zeros(x[x > 0].shape[0]),
    "a view": lambda m, x: m.nonzero(x).view(1, m.nonzero(x).numel()),
    "a range": lambda m, x: m.arange(len(x[x > 0])),
    "a loss": lambda m, x: m.nn.functional.hinge_embedding_loss(x[x > 0], x[x > 0]),
    "a grid": lambda m, x: m.meshgrid(x[x > 0], x[x > 0], indexing="ij")[0],
    "covariance": lambda m, x: m.cov(m.masked_select(x, x > 0)),
    "repeats": lambda m, x: m.arange(m.repeat_interleave(x.long()).numel()),
    "uniques": lambda m, x: m.ones(m.unique(x).shape),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_ELEMENTS)
def test_sizes_that_depend_on_elements_are_those_of_each_call(name: str) -> None:
    f = OF_ELEMENTS[name]
    compiled = tt.compile(lambda x: f(tt, x))
    for values in ([0.0, 1, 2, 3], [0.0, 0, 1, 0], [1.0, 1, 1, 1]):
        assert str(compiled(tt.tensor(values)).tolist()) == str(
            f(torch, torch.tensor(values)).tolist()
        )


CONSTANT = {
    "sgn": lambda m, x: (x * x, x.sgn()),
    "floor": lambda m, x: (x.floor(), x * x),
    "filled": lambda m, x: (x * x, (x * 2).fill_(3.0)),
    "detached": lambda m, x: (x * x, x.detach() * 2),
    "two": lambda m, x: (x * 2, x.sign(), x.round()),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONSTANT)
def test_gradients_that_are_always_zero_beside_others(name: str) -> None:
    def gradients(m: Any, f: Any) -> Any:
        x = m.tensor([0.5, -2.0]).requires_grad_()
        count = len(f(x))
        made = []
        for i in range(count):
            y = f(x)[i]
            if y.requires_grad:
                (g,) = m.autograd.grad(y.sum(), x, allow_unused=True)
                made.append(g if g is None else (g + 0.0).tolist())
        return made

    f = CONSTANT[name]
    want = gradients(torch, lambda x: f(torch, x))
    compiled = tt.compile(lambda x: f(tt, x))
    for _ in range(3):
        assert gradients(tt, compiled) == want
