"""Jacobians, Hessians and their products, with inputs and outputs as tensors or tuples of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.autograd.api import grad
from toytorch.autograd.forward_ad import Level
from toytorch.autograd.modes import enable_grad
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.ops import registry
from toytorch.ops.creation.create import zeros_like


def as_tuple(value: Tensor, what: str, where: str) -> tuple[bool, tuple[Tensor, ...]]:
    """(whether it was a tuple, the tensors)."""
    many = isinstance(value, (tuple, list))
    tensors = tuple(value) if many else (value,)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            if many:
                raise TypeError(
                    f"The {what} given to {where} must be either a Tensor or a tuple of"
                    f" Tensors but the value at index {i} has type {type(t)}."
                )
            raise TypeError(
                f"The {what} given to {where} must be either a Tensor or a tuple of "
                f"Tensors but the given {what} has type {type(t)}."
            )
    return many, tensors


def prepared(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs to differentiate by; connected to the given ones where graphs are wanted."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_()
        for x in inputs
    )


def checked_direction(
    v: Tensor | None, like: tuple[Tensor, ...], name: str, many: bool, what: str
) -> tuple[Tensor, ...]:
    """The vector of a product, which must look like the inputs or the outputs."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {what} to the user-provided "
                "function is a single Tensor with a single element."
                if what == "input"
                else "The vector v can only be None if the user-provided function "
                "returns a single Tensor with a single element."
            )
        return (zeros_like(like[0].detach()) + 1,)
    _, vs = as_tuple(v, "v", name)
    if not many and len(vs) != 1:
        raise RuntimeError("The given v should contain a single Tensor.")
    if len(vs) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}."
        )
    for i, (a, b) in enumerate(zip(vs, like)):
        if a.shape != b.shape:
            prefix = f"Entry {i} in " if many else ""
            raise RuntimeError(
                f"{prefix}v has invalid size: should be {b.shape} but got {a.shape}."
            )
    return vs


def finished(values: Sequence[Tensor], many: bool, create_graph: bool) -> Any:
    """Results as the caller's inputs were given, without history unless it is wanted."""
    made = tuple(v if create_graph else v.detach() for v in values)
    return made if many else made[0]


def where_wanted(
    outs: Sequence[Tensor], xs: Sequence[Tensor], us: Sequence[Tensor], create_graph: bool
) -> Sequence[Tensor | None]:
    """Gradients of the outputs that have a history; None where nothing depends on an input."""
    live = [(o, u) for o, u in zip(outs, us) if o.requires_grad]
    if not live:
        return [None] * len(xs)
    given = [o for o, _ in live], xs, [u for _, u in live]
    return grad(*given, create_graph=create_graph, retain_graph=True, allow_unused=True)


def gradients(
    outs: Sequence[Tensor],
    xs: tuple[Tensor, ...],
    us: Sequence[Tensor],
    create_graph: bool,
    strict: bool,
    what: str = "The output",
    slopes: str = "",
) -> Any:
    """Gradients with zeros where nothing depends on an input, or an error where that is strict.

    The error names what does not depend on it; with `slopes` gradients must depend on inputs, too.
    """
    found = where_wanted(outs, xs, us, create_graph)
    for i, g in enumerate(found) if strict else ():
        if g is None:
            raise RuntimeError(
                f"{what} of the user-provided function is independent of input {i}."
                " This is not allowed in strict mode."
            )
        if slopes and not g.requires_grad:
            raise RuntimeError(slopes.format(i))
    return [zeros_like(x) if g is None else g for g, x in zip(found, xs)]


LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect "
    "to input {} is independent of the input. This is not allowed in strict mode. You should ensure "
    "that your function is twice differentiable and that the jacobian depends on the inputs (this "
    "would be violated by a linear function for example)."
)
NO_SLOPE = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in "
    "strict mode when create_graph=True."
)


def connected(outs: Sequence[Tensor], strict: bool) -> None:
    """Refuses outputs without a history, where that is strict."""
    for i, o in enumerate(outs) if strict else ():
        if not o.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs "
                "must be computed in a differentiable manner from the input when running in "
                "strict mode."
            )


def vjp(
    func: Fn,
    inputs: Tensor,
    v: Tensor | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """(func(*inputs), vᵀJ). Like `torch.autograd.functional.vjp`.

    >>> vjp(lambda x: x.exp().sum(), torch.zeros(2))[1]
    tensor([1., 1.])
    """
    with enable_grad():
        many, given = as_tuple(inputs, "inputs", "vjp")
        xs = prepared(given, create_graph)
        out_many, outs = as_tuple(func(*xs), "outputs of the user-provided function", "vjp")
        connected(outs, strict)
        vs = checked_direction(v, outs, "vjp", out_many, "output")
        found = gradients(
            outs, xs, vs, create_graph, strict, slopes=NO_SLOPE if create_graph else ""
        )
    return finished(outs, out_many, create_graph), finished(found, many, create_graph)


def jvp(
    func: Fn, inputs: Any, v: Tensor | None = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """(func(*inputs), J·v), by forward mode. Like `torch.autograd.functional.jvp`.

    >>> jvp(lambda x: x ** 2, torch.tensor([1., 2.]), torch.ones(2))[1]
    tensor([2., 4.])
    """
    with enable_grad():
        many, given = as_tuple(inputs, "inputs", "jvp")
        xs = prepared(given, create_graph)
        vs = checked_direction(v, xs, "jvp", many, "input")
        with Level() as level:
            made = func(*level.duals(xs, vs))
            out_many, outs = as_tuple(made, "outputs of the user-provided function", "jvp")
        connected(outs, strict)
        if strict:
            gradients(outs, xs, [zeros_like(o) for o in outs], False, strict)
        moved = []
        for o in outs:
            moved_here = level.get(o)
            moved.append(zeros_like(o) if moved_here is None else moved_here)
            if strict and create_graph and not moved[-1].requires_grad:
                raise RuntimeError(NO_SLOPE.format(len(moved) - 1))
    return finished(outs, out_many, create_graph), finished(moved, out_many, create_graph)


def jacobian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """∂output/∂input for every pair. Like `torch.autograd.functional.jacobian`.

    With `vectorize` all rows are computed at once by `vmap`; `strategy="forward-mode"` computes
    columns instead, and needs it.

    >>> jacobian(lambda x: x ** 2, torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy(strategy, create_graph, strict, vectorize)
    many, given = as_tuple(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        return by_columns(func, given, many)
    with enable_grad():
        xs = prepared(given, create_graph)
        out_many, outs = as_tuple(func(*xs), "outputs of the user-provided function", "jacobian")
        if vectorize:
            return finished_rows(all_rows(outs, xs, create_graph), many, out_many, create_graph)
        connected(outs, strict)
        table = [_by_rows(i, o, xs, create_graph, strict) for i, o in enumerate(outs)]
    return finished_rows(table, many, out_many, create_graph)


def _check_strategy(strategy: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    """Refuses options of `jacobian` that cannot be had together."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". '
            'Hint: If your function has more outputs than inputs, "forward-mode"'
            " tends to be more performant. Otherwise, prefer to use "
            '"reverse-mode".'
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
            "supported together. Please either set `strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode" and (create_graph or not vectorize):
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and "
            '`strategy="forward-mode"` are not supported together (yet). '
            'Please either set `create_graph=False` or `strategy="reverse-'
            'mode"`.'
            if create_graph
            else "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )


def _by_rows(i: int, o: Tensor, xs: Any, create_graph: bool, strict: bool) -> list[Tensor]:
    """The Jacobians of output number i, each of its elements differentiated by itself."""
    flat = o.reshape(-1)
    rows_of: list[list[Tensor]] = [[] for _ in xs]
    for k in range(flat.numel()):
        seed = zeros_like(flat[k].detach()) + 1
        blame = NO_SLOPE if create_graph else ""
        found = gradients([flat[k]], xs, [seed], create_graph, strict, f"Output {i}", blame)
        for rows_, g in zip(rows_of, found):
            rows_.append(g)
    stack = registry["stack"].function
    shapes = [(*o.shape, *x.shape) for x in xs]
    return [
        stack(r, 0).reshape(shape) if r else x.new_zeros(shape)
        for r, x, shape in zip(rows_of, xs, shapes)
    ]


def by_columns(func: Fn, given: tuple[Tensor, ...], many: bool) -> Any:
    """Jacobians in forward mode, of all columns at once."""
    from toytorch.autograd.transforms import jacfwd  # seldom needed

    several: list[bool] = []

    def checked(*args: Tensor) -> Any:
        value = func(*args)
        several.append(as_tuple(value, "outputs of the user-provided function", "jacobian")[0])
        return value

    found = jacfwd(checked, tuple(range(len(given))))(*given)
    rows = found if several[0] else (found,)
    return finished_rows([list(r) for r in rows], many, several[0], create_graph=True)


def all_rows(
    outs: tuple[Tensor, ...], xs: tuple[Tensor, ...], create_graph: bool
) -> list[list[Tensor]]:
    """Jacobians in reverse mode, of all rows at once."""
    from toytorch.autograd.transforms import basis  # seldom needed
    from toytorch.autograd.vmap import vmap

    wanted = [i for i, o in enumerate(outs) if o._requires_grad]

    def pull(*us: Tensor) -> tuple[Tensor, ...]:
        values, cotangents = ([given[i] for i in wanted] for given in (outs, us))
        found = grad(values, xs, cotangents, True, create_graph, allow_unused=True)
        return tuple(zeros_like(x.detach()) if g is None else g for g, x in zip(found, xs))

    if not wanted:
        return [[x.new_zeros((*o.shape, *x.shape)) for x in xs] for o in outs]
    sizes = [o.numel() for o in outs]
    parts = [rows.split(sizes, 0) for rows in vmap(pull)(*basis(list(outs)))]
    return [
        [p[i].view((*o.shape, *x.shape)) for p, x in zip(parts, xs)] for i, o in enumerate(outs)
    ]


def finished_rows(table: list[list[Tensor]], many: bool, out_many: bool, create_graph: bool) -> Any:
    """Jacobians nested as outputs and inputs were."""
    rows = tuple(finished(row, many, create_graph) for row in table)
    return rows if out_many else rows[0]


def scalar(func: Fn, name: str, strict: bool = False) -> Any:
    """The function, which must give a tensor with a single element."""

    def checked(*xs: Tensor) -> Tensor:
        many, outs = as_tuple(func(*xs), "outputs of the user-provided function", name)
        if many:
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if outs[0].numel() != 1:
            raise RuntimeError(
                "The Tensor returned by the function given to "
                f"{name} should contain a single element"
            )
        connected(outs, strict)
        return outs[0].squeeze()

    return checked


def hessian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """∂²f/∂xᵢ∂xⱼ of a function with a single value. Like `torch.autograd.functional.hessian`.

    >>> hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    many, given = as_tuple(inputs, "inputs", "hessian")
    checked = scalar(func, "hessian", strict)

    def gradient(*xs: Tensor) -> Any:
        found = jacobian(checked, xs, create_graph=True)
        for i, g in enumerate(found) if strict else ():
            if not g.requires_grad:
                raise RuntimeError(LINEAR.format(i))
        return found

    if outer_jacobian_strategy == "forward-mode" and vectorize:
        from toytorch.autograd.transforms import jacfwd, jacrev  # seldom needed

        numbers = tuple(range(len(given)))
        found = jacfwd(jacrev(checked, numbers), numbers)(*(x.detach() for x in given))
        return found if many else found[0][0]
    found = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if many else found[0][0]


def vhp(
    func: Fn,
    inputs: Tensor,
    v: Tensor | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """(func(*inputs), vᵀH), by two backward passes. Like `torch.autograd.functional.vhp`."""
    return product_with_hessian("vhp", func, inputs, v, create_graph, strict)


def product_with_hessian(
    name: str, func: Fn, inputs: Tensor, v: Tensor | None, create_graph: bool, strict: bool
) -> Any:
    """(func(*inputs), vᵀH); `name` is what errors say."""
    with enable_grad():
        many, given = as_tuple(inputs, "inputs", name)
        xs = prepared(given, create_graph)
        vs = checked_direction(v, xs, name, many, "input")
        value = scalar(func, name, strict)(*xs)
        first = gradients(
            [value], xs, [zeros_like(value.detach()) + 1], True, strict, slopes=LINEAR
        )
        found = gradients(first, xs, vs, create_graph, strict)
    return finished([value], False, create_graph), finished(found, many, create_graph)


def hvp(
    func: Fn,
    inputs: Tensor,
    v: Tensor | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """(func(*inputs), H·v). Like `torch.autograd.functional.hvp`; the Hessian being symmetric, this
    is `vhp`.

    >>> hvp(lambda x: (x ** 4).sum(), torch.tensor([1., 2.]), torch.ones(2))[1]
    tensor([12., 48.])
    """
    return product_with_hessian("hvp", func, inputs, v, create_graph, strict)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
