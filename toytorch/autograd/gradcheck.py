"""Checks derivatives against finite differences.

Everything is compared as real numbers: a complex input or output counts as its real and imaginary
parts, so that the same Jacobian serves functions of real and of complex tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from toytorch.autograd import forward_ad
from toytorch.autograd.api import grad
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import warned
from toytorch.facts.device import strided
from toytorch.facts.hints import Array, Fn
from toytorch.ops.creation.create import zeros_like
from toytorch.ops.creation.random import randn_like
from toytorch.ops.elementwise.complex_numbers import view_as_real

NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
    "times gives different values, although analytical gradient matches numerical gradient. The "
    "tolerance for nondeterminism was {}."
)
UNDEFINED = (
    "Expected backward function to handle undefined output grads. "
    'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)
BREAKING = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, "
    "but it may break existing callers of this function. If this is true for you, you can call this "
    'function with "check_undefined_grad=False" to disable the feature'
)


class GradcheckError(RuntimeError):
    """A derivative is wrong."""


def as_tuple(value: Sequence[Tensor] | Tensor) -> tuple[Any, ...]:
    """Inputs or outputs as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def reals(tensor: Tensor) -> Any:
    """The elements as a flat array of real numbers, (re, im) pairs for complex ones."""
    array = np.array(tensor.detach().resolve_conj().cpu().numpy(), order="C").reshape(-1)
    return array.view(array.real.dtype) if array.dtype.kind == "c" else array


def differentiable(values: tuple[Any, ...]) -> list[Tensor]:
    """The tensors that have derivatives."""
    return [v for v in values if isinstance(v, Tensor) and v.dtype.rank > 1]


def numerical_jacobian(func: Fn, inputs: tuple[Any, ...], index: int, eps: float) -> list[Any]:
    """For every output its Jacobian by inputs[index], (output, input), by central differences.

    The input itself is moved and put back, since `func` may know it from elsewhere, too.
    """
    x = inputs[index]
    base = x.detach().clone()
    places = np.array(base.cpu().numpy(), order="C")
    flat = places.reshape(-1)
    flat = flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
    columns: list[list[Any]] = []
    usual = differentiable(as_tuple(func(*inputs)))
    for k in range(flat.size):
        ends = []
        for step in (eps, -eps):
            before = flat[k]
            flat[k] = before + step
            x.data.copy_(wrap(places.copy(), x.dtype))
            flat[k] = before
            try:
                found = differentiable(as_tuple(func(*inputs)))
                refuse_other(found, usual, eps)
                ends.append([reals(o).copy() for o in found])
            finally:
                x.data.copy_(base)
        columns.append([(a - b) / (2 * eps) for a, b in zip(*ends)])
    return from_columns(columns, func, inputs)


def from_columns(columns: list[Any], func: Fn, inputs: Sequence[Any]) -> list[Any]:
    """The Jacobian of each result, of its columns."""
    outs = differentiable(as_tuple(func(*inputs)))
    return [
        np.stack([c[i] for c in columns], 1) if columns else np.zeros((reals(o).size, 0))
        for i, o in enumerate(outs)
    ]


def refuse_other(found: list[Tensor], usual: list[Tensor], eps: float) -> None:
    """Refuses a function whose results have another shape or type a small step away."""
    for one, other in zip(found, usual):
        for what, a, b in (("shape", one.shape, other.shape), ("dtype", one.dtype, other.dtype)):
            if a != b:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are "
                    f"perturbed by {eps}, but got: {what}s {b} and {a}."
                )


def backward_jacobian(output: Tensor, x: Tensor) -> Any:
    """The Jacobian of one output, a row for each unit vector sent backward."""
    rows = []
    for k in range(reals(output).size):
        unit = zeros_like(output.detach())
        part = np.array(unit.cpu().numpy(), order="C")
        flat = part.reshape(-1)
        (flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat)[k] = 1
        seed = wrap(part, output.dtype).to(output.device)
        (g,) = grad(output, x, seed, retain_graph=True, allow_unused=True)
        rows.append(np.zeros(reals(x).size) if g is None else reals(g).copy())
    return np.stack(rows) if rows else np.zeros((0, reals(x).size))


def forward_jacobian(func: Fn, inputs: tuple[Any, ...], index: int) -> list[Any]:
    """The Jacobians of all outputs, a column for each unit vector pushed forward."""
    x = inputs[index]
    columns: list[list[Any]] = []
    for k in range(reals(x).size):
        part = np.zeros(tuple(x.shape), x.dtype.numpy)
        flat = part.reshape(-1)
        (flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat)[k] = 1
        with forward_ad.dual_level():
            values = [
                forward_ad.make_dual(v, zeros_like(v.detach()))
                if isinstance(v, Tensor) and v.requires_grad and v.layout is strided
                else v
                for v in inputs
            ]
            values[index] = forward_ad.make_dual(x, wrap(part, x.dtype).to(x.device))
            outs = differentiable(as_tuple(func(*values)))
            moved = [forward_ad.unpack_dual(o).tangent for o in outs]
        columns.append(
            [np.zeros(reals(o).size) if t is None else reals(t).copy() for o, t in zip(outs, moved)]
        )
    return from_columns(columns, func, inputs)


def compare_parts(
    output: Tensor, i: int, j: int, numerical: Array, analytical: Array, how: How, kind: str = ""
) -> None:
    """`compare`, for a complex output one part after the other."""
    if not output.dtype.is_complex:
        return compare(kind, i, j, numerical, analytical, how)
    for part, rows in (("imaginary", slice(1, None, 2)), ("real", slice(0, None, 2))):
        about = f"While considering the {part} part of complex outputs only, "
        compare(kind, i, j, numerical[rows], analytical[rows], how, about)
    return None


def compare(
    kind: str, i: int, j: int, numerical: Array, analytical: Array, how: How, about: str = ""
) -> None:
    """Refuses a Jacobian that differs from the numerical one."""
    if not np.allclose(analytical, numerical, how.rtol, how.atol, equal_nan=True):
        raise GradcheckError(
            f"{about}Jacobian {kind}mismatch for output {i} with respect to input {j},\n"
            f"numerical:{wrap(numerical)}\nanalytical:{wrap(analytical)}\n"
        )


class How(NamedTuple):
    """How gradients are checked, and which."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    undefined: bool
    dtypes: bool
    batched: bool
    forward: bool
    backward: bool
    fast: bool
    masked: bool


def gradcheck(
    func: Fn,
    inputs: Sequence[Tensor] | Tensor,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether gradients agree with (f(x + ε) - f(x - ε))/2ε. Like `torch.autograd.gradcheck`.

    With `masked` only the entries of sparse inputs are varied, else all of their elements.
    With `fast_mode` one random combination of all entries of each Jacobian is compared.

    >>> gradcheck(torch.sin, torch.rand(3, dtype=torch.float64, requires_grad=True))
    True
    """
    try:
        how = How(
            eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes,
            check_batched_grad, check_forward_ad, check_backward_ad, fast_mode, bool(masked),
        )  # fmt: skip
        return check(func, as_tuple(inputs), how)
    except GradcheckError:
        if raise_exception:
            raise
        return False


def places_wanted(inputs: tuple[Any, ...]) -> list[int]:
    """Which inputs want a gradient; refuses those of which none can be computed."""
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but "
            "none of them have requires_grad=True."
        )
    for i in wanted:
        x = inputs[i]
        if x.dtype.to_real().name != "float64":
            warned.at_call(
                f"Input #{i} requires gradient and is not a double precision floating "
                "point or complex. This check will likely fail if all the inputs are not "
                "of double precision floating point or complex. "
            )
        held = x._values() if x.is_sparse else x.values() if x._compressed else x
        if any(s == 0 and n > 1 for n, s in zip(held.shape, held.stride())):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly. "
                "You should call .contiguous on the input before passing it to gradcheck."
            )
    return wanted


def check(func: Fn, inputs: tuple[Any, ...], how: How) -> bool:
    """The checks one after the other; the first that fails raises."""
    if not (how.forward or how.backward):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    wanted = places_wanted(inputs)
    if any(isinstance(x, Tensor) and x.layout is not strided for x in inputs):
        from toytorch.autograd.sparse_gradcheck import densified  # seldom needed

        func, inputs = densified(func, inputs, how.masked)
    outputs = differentiable(as_tuple(func(*inputs)))
    if any(o.layout is not strided for o in outputs):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call "
            "to_dense(masked_grad=...) on the output of fn for gradcheck."
        )
    if not outputs:
        return True
    for j in wanted:
        numerical = numerical_jacobian(func, inputs, j, how.eps) if not how.fast else None
        for i, output in enumerate(outputs):
            if how.backward:
                check_backward(func, inputs, i, j, output, numerical, how)
        if how.forward:
            pushed = forward_jacobian(func, inputs, j)
            exact = numerical or numerical_jacobian(func, inputs, j, how.eps)
            for i in range(len(outputs)):
                kind = "computed with forward mode "
                compare_parts(outputs[i], i, j, exact[i], pushed[i], how, kind)
    xs = [inputs[j] for j in wanted]
    if how.backward and how.undefined:
        check_undefined(func, inputs, xs)
        if len(outputs) > 1:
            check_one_output_at_a_time(outputs, xs)
    if how.backward and how.batched:
        check_batched(outputs, xs)
    return True


def check_backward(
    func: Fn, inputs: tuple[Any, ...], i: int, j: int, output: Tensor, numerical: Any, how: How
) -> None:
    """One output's gradient by one input."""
    x = inputs[j]
    if not output.requires_grad:
        if any(o.requires_grad for o in differentiable(as_tuple(func(*inputs)))):
            return  # a result beside the one that is differentiable
        exact = numerical or numerical_jacobian(func, inputs, j, how.eps)
        if np.any(exact[i] != 0):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    if how.fast:
        check_along(func, inputs, i, j, output, how)
        return
    analytical = backward_jacobian(output, x)
    need_again(analytical, backward_jacobian(output, x), how)
    compare_parts(output, i, j, numerical[i], analytical, how)
    if how.dtypes:
        (g,) = grad(output, x, zeros_like(output.detach()), retain_graph=True, allow_unused=True)
        if g is not None and g.dtype is not x.dtype:
            raise GradcheckError("Gradient has dtype mismatch")


def check_along(
    func: Fn, inputs: tuple[Any, ...], i: int, j: int, output: Tensor, how: How
) -> None:
    """The same in one random direction, and for one random combination of the output's elements."""
    x, eps = inputs[j], how.eps
    u = np.random.default_rng(0)  # of its own, so that a program's draws stay as they are
    v = wrap(u.standard_normal(x.shape)).to(x)
    base, ends = x.detach().clone(), []
    for step in (eps, -eps):
        x.data.copy_(base + step * v)
        try:
            found = differentiable(as_tuple(func(*inputs)))
            refuse_other([found[i]], [output], eps)
            ends.append(reals(found[i]).copy())
        finally:
            x.data.copy_(base)
    along = (ends[0] - ends[1]) / (2 * eps)
    weights = u.standard_normal(along.shape)
    unit = weights.view(np.complex128) if output.dtype.is_complex else weights
    seed = wrap(unit.reshape(output.shape), output.dtype)
    (g,), (h,) = (grad(output, x, seed, retain_graph=True, allow_unused=True) for _ in range(2))
    if g is not None:
        need_again(reals(g), reals(h), how)
    got = 0.0 if g is None else float(reals(g) @ reals(v))
    compare("", i, j, np.asarray(weights @ along), np.asarray(got), how)


def need_again(once: Array, twice: Array, how: How) -> None:
    """Refuses gradients that differ from one time to the next."""
    if np.abs(once - twice).max(initial=0) > how.nondet_tol:
        raise GradcheckError(NOT_REENTRANT.format(how.nondet_tol))


def check_undefined(func: Fn, inputs: tuple[Any, ...], xs: list[Tensor]) -> None:
    """A backward must do with no gradient at all, which counts as zeros."""
    from toytorch.core.barriers import UndefinedGrad  # seldom needed

    outs = [UndefinedGrad()(o) for o in differentiable(as_tuple(func(*inputs)))]
    live = [o for o in outs if o.requires_grad]
    if not live:
        return
    try:
        found = grad(live, xs, [zeros_like(o.detach()) for o in live], allow_unused=True)
    except RuntimeError as error:
        warned.at_call(BREAKING)
        raise GradcheckError(UNDEFINED) from error
    if any(g is not None and reals(g).any() for g in found):
        warned.at_call(BREAKING)
        raise GradcheckError(
            "Expected all input grads to be undefined or zero when all output grads are undefined or "
            'zero. Please look at "Notes about undefined output gradients" in '
            '"tools/autograd/derivatives.yaml"'
        )


def check_one_output_at_a_time(outputs: list[Tensor], xs: list[Tensor]) -> None:
    """A backward must do with gradients of some outputs, the others being zero."""
    live = [o for o in outputs if o.requires_grad]
    for k, chosen in enumerate(live):
        some = grad(
            chosen, xs, zeros_like(chosen.detach()) + 1, retain_graph=True, allow_unused=True
        )
        chosen_alone = [zeros_like(o.detach()) + (i == k) for i, o in enumerate(live)]
        full = grad(live, xs, chosen_alone, retain_graph=True, allow_unused=True)
        for a, b in zip(some, full):
            same = (a is None or b is None) or np.allclose(reals(a), reals(b), equal_nan=True)
            if not same:
                raise GradcheckError(UNDEFINED)


def check_batched(outputs: list[Tensor], xs: list[Tensor]) -> None:
    """Gradients of a batch of cotangents under vmap must be those of each."""
    from toytorch.autograd.vmap import vmap  # seldom needed

    for output in outputs:
        if not output.requires_grad:
            continue
        units = randn_like(output.detach().unsqueeze(0).expand(2, *output.shape))

        def pull(u: Tensor, output: Tensor = output) -> Any:
            found = grad(output, xs, u, retain_graph=True, allow_unused=True)
            return tuple(zeros_like(x.detach()) if g is None else g for g, x in zip(found, xs))

        together = vmap(pull)(units)
        for k in range(2):
            for whole, one in zip(together, pull(units[k])):
                if not np.allclose(reals(whole[k]), reals(one), equal_nan=True):
                    raise GradcheckError(
                        "While computing batched gradients, got a result that "
                        "differs from the sequentially computed one"
                    )


def drawn_like(output: Tensor, apart: bool) -> Tensor:
    """A random cotangent with numbers in [-1, 1), drawn as PyTorch draws it; `apart`, with gaps
    between its elements."""
    made = output.detach().new_empty(output.shape)
    (view_as_real(made) if made.is_complex() else made).uniform_(-1, 1)
    if apart and made.ndim:
        made = made.repeat_interleave(2, -1)[..., ::2]
    return made.requires_grad_()


def gradgradcheck(
    func: Fn,
    inputs: Sequence[Tensor],
    grad_outputs: Sequence[Tensor] | Tensor | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether second derivatives agree with differences of gradients.

    The gradients' own cotangents are `grad_outputs`, or random. Like
    `torch.autograd.gradgradcheck`.

    >>> gradgradcheck(torch.exp, torch.rand(3, dtype=torch.float64, requires_grad=True))
    True
    """
    inputs = as_tuple(inputs)
    if grad_outputs is None:
        live = [o for o in differentiable(as_tuple(func(*inputs))) if o.requires_grad]
        cotangents = tuple(drawn_like(o, gen_non_contig_grad_outputs) for o in live)
    else:
        cotangents = as_tuple(grad_outputs)
    count = len(inputs)

    def first(*args: Tensor) -> Any:
        values = args[:count]
        wanted = [x for x in values if isinstance(x, Tensor) and x.requires_grad]
        outs = [o for o in differentiable(as_tuple(func(*values))) if o.requires_grad]
        found = grad(outs, wanted, list(args[count:]), create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    if not first(*inputs, *cotangents):
        return True  # no input has any gradient
    return gradcheck(
        first, (*inputs, *cotangents), eps=eps, atol=atol, rtol=rtol, nondet_tol=nondet_tol,
        raise_exception=raise_exception, check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode, masked=masked,
    )  # fmt: skip
