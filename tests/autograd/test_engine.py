"""backward, grad, retain_graph, create_graph, accumulation, hooks: behaviour and error texts."""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict
from typing import Any

import pytest

from tests.oracle import attempt, both, error_difference, first, torch, tt


def leaf(m: Any, *values: float) -> Any:
    return m.tensor(list(values), dtype=m.float64, requires_grad=True)


def accumulates(m: Any) -> Any:
    x = leaf(m, 1, 2)
    (x * x).sum().backward()
    (3 * x).sum().backward()
    return x.grad


def shared_subexpression(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x.exp()
    (y * y + y).sum().backward()
    return x.grad


def diamond(m: Any) -> Any:
    x = leaf(m, 3)
    a, b = x * 2, x * x
    (a * b + a).sum().backward()
    return x.grad


def retain(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = (x**3).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


def vector(m: Any) -> Any:
    x = leaf(m, 1, 2)
    (x * x).backward(m.tensor([1.0, -2.0], dtype=m.float64))
    return x.grad


def keyword_gradient(m: Any) -> Any:
    x = leaf(m, 1, 2)
    (x * x).backward(gradient=m.ones(2, dtype=m.float64))
    return x.grad


def third_derivative(m: Any) -> Any:
    x = leaf(m, 0.7)
    g = x.sin() * x**4
    out = []
    for _ in range(4):
        (g,) = m.autograd.grad(g.sum(), x, create_graph=True)
        out.append(g.detach())
    return out


def backward_with_create_graph(m: Any) -> Any:
    x = leaf(m, 2.0)
    (x**3).sum().backward(create_graph=True)
    g = x.grad
    (d,) = m.autograd.grad(g.sum(), x)
    x.grad = None
    return g.detach(), g.requires_grad, d


def hessian_vector(m: Any) -> Any:
    x = leaf(m, 1, 2, 3)
    (g,) = m.autograd.grad((x**4).sum(), x, create_graph=True)
    return m.autograd.grad(g, x, m.ones(3, dtype=m.float64))


def only_inputs(m: Any) -> Any:
    x, w = leaf(m, 1, 2), leaf(m, 3, 4)
    (x * w).sum().backward(inputs=[x])
    return x.grad, w.grad is None


def inputs_in_the_middle(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x * 2
    z = y.exp().sum()
    return m.autograd.grad(z, [y, x])


def several_outputs(m: Any) -> Any:
    x, w = leaf(m, 1, 2), leaf(m, 3, 4)
    a, b = (x * w).sum(), x.sin()
    return m.autograd.grad([a, b], [x, w], [None, m.ones(2, dtype=m.float64)])


def autograd_backward_function(m: Any) -> Any:
    x = leaf(m, 1, 2)
    m.autograd.backward([(x * x).sum(), (x * 3).sum()])
    return x.grad


def unused_allowed(m: Any) -> Any:
    x, w = leaf(m, 1), leaf(m, 2)
    return m.autograd.grad(x * 2, [x, w], allow_unused=True)[1] is None


def unused_materialized(m: Any) -> Any:
    x, w = leaf(m, 1), leaf(m, 2, 3)
    return m.autograd.grad((x * 2).sum(), [x, w], materialize_grads=True)


def retained_grad(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x * 3
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad, y.retains_grad, x.retains_grad


def nonleaf_grad_is_none(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x * 3
    y.sum().backward()
    return attempt(lambda: y.grad)[0] is None


def hook_replaces(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.clone()))
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    return x.grad, seen


def hook_on_leaf(m: Any) -> Any:
    x = leaf(m, 1, 2)
    x.register_hook(lambda g: g + 1)
    (x * x).sum().backward()
    return x.grad


def hook_removed(m: Any) -> Any:
    x = leaf(m, 1, 2)
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    (x * x).sum().backward()
    return x.grad


def hook_runs_once_on_the_sum(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.clone()))
    (y * 3 + y.exp()).sum().backward()
    return seen


def hook_after_accumulation(m: Any) -> Any:
    x, seen = leaf(m, 1, 2), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
    for _ in range(2):
        (x * x).sum().backward()
    return seen


def node_hooks(m: Any) -> Any:
    x, seen = leaf(m, 1, 2), []
    y = x * 3
    y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append((inputs[0].clone(), outputs[0].clone()))
    )
    y.grad_fn.register_prehook(lambda outputs: seen.append(outputs[0].clone()))
    y.sum().backward()
    return seen


def graph_structure(m: Any) -> Any:
    x, w = leaf(m, 1), leaf(m, 2)
    y = (x * w).exp()
    node = y.grad_fn
    (mul, nr), *_ = node.next_functions
    leaves = [n for n, _ in mul.next_functions]
    return [
        node.name(), mul.name(), nr, len(node.next_functions), [n.name() for n in leaves],
        leaves[0].variable is x,
        leaves[1].variable is w, (x * 2).grad_fn.next_functions[1][0] is None, x.grad_fn is None,
        x.is_leaf,
    ]  # fmt: skip


def accumulate_is_one_node(m: Any) -> Any:
    x = leaf(m, 1)
    y, z = x * 2, x * 3
    return y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0]


def called_node(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x * m.tensor([3.0, 4.0], dtype=m.float64)
    return y.grad_fn(m.ones(2, dtype=m.float64))[0]


def grad_assignment(m: Any) -> Any:
    x = leaf(m, 1, 2)
    x.grad = m.tensor([5.0, 6.0], dtype=m.float64)
    (x * x).sum().backward()
    a = x.grad.clone()
    x.grad.zero_()
    x.grad = None
    return a


def detached(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x * 2
    z = y.detach()
    (y * z).sum().backward()
    w = (x * 1).detach_()
    return x.grad, z.requires_grad, z.is_leaf, w.requires_grad, w.grad_fn is None


def requires_grad_late(m: Any) -> Any:
    x = m.ones(2, dtype=m.float64)
    y = x * 2
    x.requires_grad_()
    z = x * 3
    z.sum().backward()
    return y.requires_grad, x.grad


def mixed_dtypes(m: Any) -> Any:
    x = m.tensor([1.0, 2.0], dtype=m.float32, requires_grad=True)
    w = m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True)
    (x * w).sum().backward()
    return x.grad, w.grad


def complex_gradient(m: Any) -> Any:
    z = m.tensor([1 + 2j, 3 - 1j], dtype=m.complex128, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    return z.grad


def broadcast_gradient(m: Any) -> Any:
    x, b, s = (m.ones(s, dtype=m.float64, requires_grad=True) for s in ((3, 2), (2,), ()))
    ((x + b) * s).sum().backward()
    return x.grad, b.grad, s.grad


def empty_gradient(m: Any) -> Any:
    x = m.zeros(0, 3, dtype=m.float64, requires_grad=True)
    (x.exp().sum() + x.sum()).backward()
    return x.grad


def max_ties(m: Any) -> Any:
    x = leaf(m, 2, 3, 3)
    y = leaf(m, 2, 3, 3)
    x.max().backward()
    y.max(0).values.backward()
    return x.grad, y.grad


def same_tensor_twice(m: Any) -> Any:
    x = leaf(m, 2, 3)
    return m.autograd.grad((x * x).sum(), [x, x])


def inputs_in_any_iterable(m: Any) -> Any:
    """`parameters()` is an iterator; a dict gives its values, and `grad` answers in one."""
    x, y = leaf(m, 2, 3), leaf(m, 2, 3)
    out, grad = (x * y).sum(), m.autograd.grad
    found = [*grad(out, iter([x, y]), retain_graph=True)]
    found += grad(x * y, iter([x, y]), m.ones(2, 2, dtype=m.float64), is_grads_batched=True)
    found += [grad(out, {"x": x, "y": y}, retain_graph=True)]
    out.backward(inputs=iter([y]), retain_graph=True)
    m.autograd.backward(out, inputs={"y": y}, retain_graph=True)
    for call in (grad, lambda out, inputs: m.autograd.backward(out, inputs=inputs)):
        for inputs in ([], OrderedDict(x=x)):
            try:
                call(out, inputs)
            except (RuntimeError, TypeError) as refused:
                found.append(str(refused))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        grad(out, x, only_inputs=False)
    return [*found, x.grad, y.grad, [(w.category, str(w.message)) for w in seen]]


def gradient_shares_nothing(m: Any) -> Any:
    a, b = leaf(m, 1, 2), leaf(m, 3, 4)
    (a + b).sum().backward()
    a.grad.add_(1)
    return a.grad, b.grad


def backward_of_a_leaf(m: Any) -> Any:
    x = m.tensor(2.0, requires_grad=True)
    x.backward()
    return x.grad


def leaf_gradient_dtype_and_layout(m: Any) -> Any:
    x = m.arange(6.0).reshape(2, 3).t().requires_grad_()
    (x * x).sum().backward()
    return x.grad, x.grad.is_contiguous(), x.grad.requires_grad


def set_grad_enabled_everywhere(m: Any) -> Any:
    x, out = leaf(m, 1), []
    with m.no_grad():
        y = x * 2
        with m.enable_grad():
            z = x * 2
        out += [y.requires_grad, z.requires_grad, m.is_grad_enabled()]
    with m.set_grad_enabled(False):
        out.append((x * 2).requires_grad)
    m.set_grad_enabled(False)
    out.append((x * 2).requires_grad)
    m.set_grad_enabled(True)

    @m.no_grad()
    def f() -> Any:
        return (x * 2).requires_grad

    @m.enable_grad()
    def g() -> Any:
        return (x * 2).requires_grad

    with m.no_grad():
        out += [f(), g()]
    return [*out, f(), m.is_grad_enabled()]


def no_grad_survives_errors(m: Any) -> Any:
    try:
        with m.no_grad():
            raise KeyError
    except KeyError:
        pass
    return m.is_grad_enabled()


def inference(m: Any) -> Any:
    x = leaf(m, 1)
    with m.inference_mode():
        y = x * 2
        inside = m.is_inference_mode_enabled()
    return inside, y.requires_grad, y.is_inference(), m.is_inference_mode_enabled()


def integers_and_comparisons(m: Any) -> Any:
    x = leaf(m, 1, 2)
    return [(x > 1).requires_grad, x.long().requires_grad, x.argmax().requires_grad,
        x.sign().requires_grad,
            x.floor().requires_grad, x.max(0).indices.requires_grad,
            m.zeros_like(x).requires_grad]  # fmt: skip


def returned_gradients_and_what_was_given(m: Any) -> Any:
    """Which of them are one tensor, or views: a write to one is seen, and counted, in the other."""
    x, y = m.ones(2, 3, requires_grad=True), m.ones(2, 3, requires_grad=True)
    g, turned = m.ones(2, 3), m.ones(3, 2)
    same = m.autograd.grad(x + y, [x, y], g)
    view = m.autograd.grad(x.t(), [x], turned)
    spread = m.autograd.grad((x.exp() + y).sum(), [y, x])
    found = [same[0] is same[1] is g, view[0]._base is turned, view[0].stride()]
    found += [(t.stride(), t._base is None, t.requires_grad) for t in spread]
    same[0].add_(1)
    view[0].mul_(3)
    return [*found, g, turned, g._version, turned._version]


def some_of_the_inputs(m: Any) -> Any:
    """Leaves and what is between, some of which the outputs do not depend on."""
    x, y, unused = (leaf(m, 1, 2) for _ in range(3))
    h = x * 2
    loss = (h.exp() * y).sum() + (y * 3).sum()
    asked = ([x], [y], [h], [h, y], [x, y], [x, unused], [unused])
    return [m.autograd.grad(loss, a, allow_unused=True, retain_graph=True) for a in asked]


BEHAVIOURS = [
    returned_gradients_and_what_was_given, some_of_the_inputs,
    accumulates, shared_subexpression, diamond, retain, vector, keyword_gradient, third_derivative,
    backward_with_create_graph, hessian_vector, only_inputs, inputs_in_the_middle, several_outputs,
    autograd_backward_function, unused_allowed, unused_materialized, retained_grad,
    nonleaf_grad_is_none,
    hook_replaces, hook_on_leaf, hook_removed, hook_runs_once_on_the_sum, hook_after_accumulation,
    node_hooks,
    graph_structure, accumulate_is_one_node, called_node, grad_assignment, detached,
    requires_grad_late,
    mixed_dtypes, complex_gradient, broadcast_gradient, empty_gradient, max_ties, same_tensor_twice,
    inputs_in_any_iterable,
    gradient_shares_nothing, backward_of_a_leaf, leaf_gradient_dtype_and_layout,
    set_grad_enabled_everywhere,
    no_grad_survives_errors, inference, integers_and_comparisons,
]  # fmt: skip


@pytest.mark.parametrize("f", BEHAVIOURS, ids=lambda f: f.__name__)
def test_behaviour(f: Any) -> None:
    assert attempt(f, torch)[1] is None
    both(f)


def _twice(m: Any) -> None:
    y = (leaf(m, 1, 2) ** 2).sum()
    y.backward()
    y.backward()


def _twice_by_grad(m: Any) -> None:
    x = leaf(m, 1, 2)
    y = (x.exp()).sum()
    m.autograd.grad(y, x)
    m.autograd.grad(y, x)


def _part_twice(m: Any) -> None:
    x = leaf(m, 1, 2)
    y = x * x
    y.sum().backward()
    (y * 2).sum().backward()


def _saved_after_free(m: Any) -> None:
    y = leaf(m, 1, 2).exp()
    y.sum().backward()
    y.grad_fn._saved_result  # noqa: B018


def _modified_result(m: Any) -> None:
    y = leaf(m, 1, 2).exp()
    y.add_(1)
    y.sum().backward()


def _modified_input(m: Any) -> None:
    x = leaf(m, 1, 2)
    y = x * 1
    z = y * y
    y.add_(1)
    z.sum().backward()


def _modified_through_view(m: Any) -> None:
    y = leaf(m, 1, 2).sigmoid()
    y[0].mul_(3)
    y.sum().backward()


def _modified_weight(m: Any) -> None:
    x, w = leaf(m, 1, 2), m.ones(2, dtype=m.float64)
    y = (x * w).sum()
    w.mul_(2)
    y.backward()


def _modified_by_data_of_detach(m: Any) -> None:
    x = leaf(m, 1, 2)
    y = x.tanh()
    y.detach().zero_()
    y.sum().backward()


ERRORS: dict[str, Any] = {
    "second backward": _twice,
    "second grad": _twice_by_grad,
    "second backward through a part": _part_twice,
    "saved value after backward": _saved_after_free,
    "result overwritten": _modified_result,
    "input overwritten": _modified_input,
    "overwritten through a view": _modified_through_view,
    "weight overwritten": _modified_weight,
    "overwritten through detach": _modified_by_data_of_detach,
    "not a scalar": lambda m: leaf(m, 1, 2).mul(2).backward(),
    "grad of no scalar": lambda m: m.autograd.grad(leaf(m, 1, 2) * 2, leaf(m, 1)),
    "no graph": lambda m: m.ones(1).sum().backward(),
    "no graph in grad": lambda m: m.autograd.grad(m.ones(1).sum(), m.ones(1)),
    "gradient shape": lambda m: (leaf(m, 1, 2) * 2).backward(m.ones(3, dtype=m.float64)),
    "gradient of another type": lambda m: (leaf(m, 1, 2) * 2).backward([1.0, 2.0]),
    "unused": lambda m: m.autograd.grad((leaf(m, 1) * 2).sum(), leaf(m, 2)),
    "input without grad": lambda m: m.autograd.grad(leaf(m, 1).sum(), m.ones(1)),
    "leaf overwritten": lambda m: leaf(m, 1, 2).mul_(2),
    "leaf assigned": lambda m: leaf(m, 1, 2).__setitem__(0, 1.0),
    "view of a leaf overwritten": lambda m: leaf(m, 1, 2)[:1].mul_(2),
    "leaf zeroed": lambda m: leaf(m, 1, 2).zero_(),
    "requires_grad of an integer": lambda m: m.tensor([1, 2]).requires_grad_(),
    "requires_grad off on a result": lambda m: (leaf(m, 1) * 2).requires_grad_(False),
    "requires_grad set off on a result": lambda m: setattr(leaf(m, 1) * 2, "requires_grad", False),
    "numpy of a result": lambda m: (leaf(m, 1) * 2).numpy(),
    "hook without grad": lambda m: m.ones(2).register_hook(lambda g: g),
    "retain_grad without grad": lambda m: m.ones(2).retain_grad(),
    "hook of another shape": lambda m: _bad_hook(m),
    "grad of another shape": lambda m: setattr(leaf(m, 1, 2), "grad", m.ones(3, dtype=m.float64)),
    "grad of another dtype": lambda m: setattr(leaf(m, 1, 2), "grad", m.ones(2, dtype=m.float32)),
    "grad of another kind": lambda m: setattr(leaf(m, 1, 2), "grad", 3),
    "detach_ of a view": lambda m: (leaf(m, 1, 2) * 1)[0].detach_(),
    "post-accumulate hook on a result": lambda m: (leaf(m,
        1) * 2).register_post_accumulate_grad_hook(print),
    "one of several views written": lambda m: (leaf(m, 1, 2) * 1).unbind(0)[0].add_(1),
    "one of split written": lambda m: (leaf(m, 1, 2) * 1).split(1)[0].add_(1),
    "no_grad view written": lambda m: _no_grad_view(m),
    "inference tensor saved": lambda m: _inference_saved(m),
    "inference tensor written": lambda m: _inference_written(m),
    "written over part of its source": lambda m: _overlap(m),
    "empty inputs": lambda m: leaf(m, 1).sum().backward(inputs=[]),
    "backward of complex": lambda m: (leaf(m, 1) * 1j).sum().backward(),
}  # fmt: skip


def _bad_hook(m: Any) -> None:
    y = leaf(m, 1, 2) * 2
    y.register_hook(lambda g: g.sum())
    (y * 1).sum().backward()


def _no_grad_view(m: Any) -> None:
    y = leaf(m, 1, 2) * 1
    with m.no_grad():
        v = y[0]
    v.add_(1)


def _overlap(m: Any) -> None:
    x = m.arange(6.0)
    x[1:].add_(x[:-1])


def _inference_saved(m: Any) -> None:
    with m.inference_mode():
        c = m.ones(2, dtype=m.float64)
    (leaf(m, 1, 2) * c).sum().backward()


def _inference_written(m: Any) -> None:
    with m.inference_mode():
        c = m.ones(2, dtype=m.float64)
    c.add_(1)


@pytest.mark.parametrize("label", ERRORS)
def test_error(label: str) -> None:
    want, got = attempt(ERRORS[label], torch)[1], attempt(ERRORS[label], tt)[1]
    assert want is not None, "PyTorch accepts this: the table is wrong"
    bad = error_difference(want, got)
    assert not bad, bad


SAME_TEXT = [
    "second backward", "second grad", "result overwritten", "input overwritten",
    "overwritten through a view",
    "weight overwritten", "overwritten through detach", "not a scalar", "no graph",
    "leaf overwritten", "leaf zeroed",
    "view of a leaf overwritten", "unused", "requires_grad off on a result", "numpy of a result",
]  # fmt: skip


@pytest.mark.parametrize("label", SAME_TEXT)
def test_error_has_pytorchs_words(label: str) -> None:
    """The messages learners will search for are PyTorch's, up to the package's name."""
    want, got = attempt(ERRORS[label], torch)[1], attempt(ERRORS[label], tt)[1]
    assert want is not None
    assert got is not None
    assert words(got) == words(want)


def words(e: Exception) -> str:
    """An error's text, up to what differs between versions of PyTorch: "Exp" or "ExpBackward0"."""
    text = first(e).replace("toytorch", "torch").replace(", check_nan=False", "")
    text = text.replace("The differentiated Tensor at index 0", "One of the differentiated Tensors")
    return re.sub(r"output (\d+) of ([A-Za-z]+?)(Backward\d*)?,", r"output \1 of \2,", text)


def test_an_engine_of_ones_own_runs_where_nodes_have_one_result() -> None:
    """It is given nothing to tell several results by, so there the framework's own runs."""
    seen = []

    def run(root: Any, gradient: Any) -> None:
        seen.append(root.name())
        for (target, _), part in zip(root.next_functions, root(gradient), strict=True):
            if target is not None:
                target(part)

    x = leaf(tt, 1, 2)
    with tt.autograd.engine.default.using(run=run):
        (3 * x).backward(tt.ones(2, dtype=tt.float64))
        first_of, second = x.unbind()
        (first_of * second).backward()
        x.unbind()[1].backward()
    assert seen == ["MulBackward0"]
    assert x.grad.tolist() == [3 + 2, 3 + 1 + 1]


def test_hooks_on_several_tensors() -> None:
    """Once in each pass, with what the pass comes to."""

    def seen(T: Any) -> list[Any]:
        log: list[Any] = []
        a, b, c = (T.ones(2, requires_grad=True) for _ in range(3))
        d = b * 3
        note = T.autograd.graph.register_multi_grad_hook
        note((a, b, c, d), lambda gs: log.append([g is not None for g in gs]))
        note((b, c), lambda g: log.append(g.tolist()), mode="any")
        (a * d).sum().backward(retain_graph=True)
        (a * 2).sum().backward()
        T.autograd.grad((a * d).sum(), (d,), retain_graph=True)
        (a * d).sum().backward(inputs=(a, b), retain_graph=True)
        (c * 2).sum().backward()
        (a.clone().unbind()[0] * 2).backward()
        return log

    assert seen(tt) == seen(torch)


def test_hooks_of_nodes_and_ends() -> None:
    """Tensors' hooks first, then retained gradients, then those of nodes; ends have both kinds."""

    def seen(T: Any) -> list[Any]:
        log: list[Any] = []
        a = T.ones(2, requires_grad=True)
        b = a.clone()
        end = b.grad_fn.next_functions[0][0]
        b.grad_fn.register_prehook(lambda gs: (log.append("node"), tuple(g * 2 for g in gs))[1])
        b.register_hook(lambda g: (log.append("tensor"), g * 3)[1])
        b.retain_grad()
        end.register_prehook(lambda gs: (log.append("end"), (gs[0] * 5,))[1])
        a.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.tolist()))
        end.register_hook(lambda gi, go: log.append([list(gi), go[0].tolist()]))
        b.sum().backward(retain_graph=True)
        log.append((a.grad.tolist(), b.grad.tolist()))
        T.autograd.grad(b.sum(), (a,), retain_graph=True)
        b.grad = None
        b.sum().backward(inputs=(b,), retain_graph=True)
        b.sum().backward(inputs=(b,))
        log.append(b.grad.tolist())
        c, d = T.ones(2, requires_grad=True).unbind()
        c.register_hook(lambda g: log.append(g))
        d.backward()
        return log

    assert seen(tt) == seen(torch)


def test_gradients_of_a_batch() -> None:
    def answer(T: Any) -> list[Any]:
        x, other = T.tensor([1.0, 2.0, 3.0], requires_grad=True), T.ones(2, requires_grad=True)
        y = x.exp()
        given = {"is_grads_batched": True, "retain_graph": True, "allow_unused": True}
        both = T.autograd.grad((y, y.sum()), (x, other), (T.eye(3), T.ones(3)), **given)
        found: list[Any] = [both[0].tolist(), both[1]]
        for grads in (T.ones(3), None):
            try:
                found.append(T.autograd.grad(y, x, grads, **given))
            except RuntimeError as error:
                found.append(str(error))
        return found

    theirs, ours = answer(torch), answer(tt)
    assert ours[1:] == theirs[1:]
    for a, b in zip(ours[0], theirs[0], strict=True):
        assert a == pytest.approx(b)
