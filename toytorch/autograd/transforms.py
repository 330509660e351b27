"""Derivatives of functions: `grad`, `vjp`, `jvp`, Jacobians and Hessians, nested as one likes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from toytorch.autograd.api import grad as grad_of
from toytorch.autograd.forward_ad import Level, cut, has_history, inside, lifted, released
from toytorch.autograd.function_tangents import refuse_other_size
from toytorch.autograd.functional import where_wanted
from toytorch.autograd.modes import enable_grad
from toytorch.autograd.vmap import vmap
from toytorch.core.tensor import Tensor, like
from toytorch.facts import state
from toytorch.facts.hints import Args, Fn, Ints
from toytorch.facts.pytree import tree_flatten, tree_map, tree_unflatten
from toytorch.ops.creation.create import eye, zeros_like


def lift(tree: object) -> tuple[Any, list[Tensor], bool]:
    """A tree with lifted tensors, these tensors, and whether any was tracked already."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                "expected tensors to differentiate by, but got an argument of type "
                f"{type(leaf).__name__}"
            )
        if leaf.dtype.rank < 2:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
    fresh = [lifted(x) for x in leaves]
    return tree_unflatten(fresh, spec), fresh, any(x._requires_grad for x in leaves)


class Tracked:
    """The tensors that a transform differentiates by, for what prints inside of it."""

    def __init__(self, given: object, xs: list[Tensor]) -> None:
        self.given, self.xs = tree_flatten(given)[0], xs

    def within(self, value: Tensor) -> tuple[str, str, Tensor] | None:
        """A tensor that depends on them, as it is outside: without history unless others gave it."""
        for x, given in zip(self.xs, self.given):
            if x is value:
                return "GradTrackingTensor", "", given
        own = {id(x._grad_edge or x) for x in self.xs}
        if not value._requires_grad or not any(id(e) in own for e in history(value)):
            return None
        shown = value if captured(value, self.xs) else released(value)
        return "GradTrackingTensor", "", shown


class Moving(Level):
    """A direction to differentiate along, for what prints inside of `jvp`."""

    def within(self, value: Tensor) -> tuple[str, str, Tensor] | None:
        """A tensor with a tangent, without it."""
        if self.get(value) is None:
            return None
        plain = like(value, value._array)
        plain._requires_grad, plain._grad_edge = value._requires_grad, value._grad_edge
        plain._batches = value._batches
        plain._tangents = {k: v for k, v in (value._tangents or {}).items() if k is not self}
        return "GradTrackingTensor", "", plain


def chosen(args: Args, argnums: Any) -> Any:
    """The arguments to differentiate by."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    return tuple(args[n] for n in numbers) if isinstance(argnums, tuple) else args[argnums]


def replaced(args: Args, argnums: Any, new_values: Any) -> tuple[Any, ...]:
    """The arguments with others in the places of those chosen."""
    full = list(args)
    if isinstance(argnums, tuple):
        for n, value in zip(argnums, new_values):
            full[n] = value
    else:
        full[argnums] = new_values
    return tuple(full)


def filled(
    grads: Sequence[Tensor | None], xs: list[Tensor], tracked: bool, more: bool
) -> list[Tensor]:
    """Gradients with zeros where nothing depends on an input; without history where nobody outside
    tracks them, nor (unless `more`) the batches and tangents that they carry."""
    found = [zeros_like(released(x)) if g is None else g for g, x in zip(grads, xs)]
    return found if tracked else list(map(released if more else cut, found))


def grad_and_value(func: Fn, argnums: Ints = 0, has_aux: bool = False) -> Any:
    """A function that gives (gradient, value) of a scalar function; see `grad`."""

    @functools.wraps(func)
    def wrapper(*args: Tensor, **kwargs: object) -> Any:
        wanted = state.local.grad  # by what is around: inside, gradients are computed in any case
        with enable_grad():
            tree, xs, tracked = lift(chosen(args, argnums))
            with state.transforming(Tracked(chosen(args, argnums), xs)):
                result = func(*replaced(args, argnums, tree), **kwargs)
            value, aux = with_aux("grad_and_value(f)(*args)", result) if has_aux else (result, None)
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a "
                    f"Tensor, got {type(value)}"
                )
            if value.ndim:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar "
                    f"Tensor, got tensor with {value.ndim} dims. Maybe you wanted to"
                    " use the vjp or jacrev APIs instead?"
                )
            tracked, more = connected([value], xs, tracked) if wanted else (False, False)
            if value._requires_grad:
                grads = grad_of(value, xs, create_graph=more, allow_unused=True)
            else:
                grads = [None] * len(xs)
        found = tree_unflatten(filled(grads, xs, tracked, more), tree_flatten(tree)[1])
        value = value if tracked else released(value)
        return found, ((value, kept_aux(aux, tracked)) if has_aux else value)

    return wrapper


def with_aux(name: str, result: object) -> tuple[Any, Any]:
    """What a function gives, and what it gives besides."""
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def kept_aux(aux: object, tracked: bool) -> Any:
    """What a function gives besides, without a history unless that is wanted."""
    return aux if tracked else tree_map(lambda t: released(t) if isinstance(t, Tensor) else t, aux)


def connected(values: list[Tensor], xs: list[Tensor], tracked: bool) -> tuple[bool, bool]:
    """Whether results lead to a leaf other than those differentiated by; and whether anything does
    that they were made with."""
    shown = tracked or any(captured(v, xs) for v in values)
    return shown, (
        shown
        or any(has_history(t) for x in xs for t in inside(x))
        or any(captured(v, xs, deep=True) for v in values)
    )


def captured(value: Tensor, xs: list[Tensor], deep: bool = False) -> bool:
    """Whether a result leads to a leaf other than those differentiated by, itself or (if `deep`) through
    what was saved: the batches that tensors are examples of, and tangents, have their own histories.
    """
    own = {id(x) for x in xs}
    return any(not e.is_node and id(e) not in own for e in history(value, deep))


def history(value: Tensor, deep: bool = False) -> Iterator[Any]:
    """The nodes and leaves that a result leads to."""
    seen: set[int] = set()
    stack = [value._grad_edge or value] if value._requires_grad else []
    while stack:
        edge = stack.pop()
        edge = getattr(edge, "node", edge)  # of one result of several
        if edge is None or id(edge) in seen:
            continue
        seen.add(id(edge))
        yield edge
        if edge.is_node:
            stack += edge.edges
            for saved in edge.saved or ():
                if deep and isinstance(saved, Tensor):
                    stack += [t._grad_edge or t for t in inside(saved) if t._requires_grad]


def grad(func: Fn, argnums: Ints = 0, has_aux: bool = False) -> Any:
    """The gradient of a scalar function, as a function. Like `torch.func.grad`.

    >>> grad(grad(torch.sin))(torch.tensor(0.5)) + torch.tensor(0.5).sin()
    tensor(0.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Tensor, **kwargs: object) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def vjp(func: Fn, *primals: Tensor, has_aux: bool = False) -> Any:
    """(func(*primals), u ↦ uᵀJ). Like `torch.func.vjp`.

    >>> value, pull = vjp(lambda x: x ** 2, torch.tensor([1., 3.]))
    >>> pull(torch.ones(2))
    (tensor([2., 6.]),)
    """
    wanted = state.local.grad
    with enable_grad():
        tree, xs, tracked = lift(primals)
        with state.transforming(Tracked(primals, xs)):
            result = func(*tree)
        aux = None
        if has_aux:
            result, aux = with_aux("vjp(f, *primals)", result)
    outs, spec = tree_flatten(result)
    need_tensors("vjp(f, *primals)", outs)
    shown, more = connected(outs, xs, tracked)

    def pull(*cotangents: Tensor, retain_graph: bool = True, create_graph: Any = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        us, own = tree_flatten(given)
        if own != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {own}, primal output: {spec}"
            )
        here = state.local.grad
        kept = here and (shown or any(isinstance(u, Tensor) and u._requires_grad for u in us))
        again = here and (more or any(isinstance(u, Tensor) and has_history(u) for u in us))
        grads = where_wanted(outs, xs, us, again)
        return tree_unflatten(filled(grads, xs, kept, again), tree_flatten(tree)[1])

    seen = result if wanted and shown else tree_map(released, result)
    return (seen, pull, kept_aux(aux, wanted and shown)) if has_aux else (seen, pull)


def jvp(
    func: Fn,
    primals: tuple[Tensor, ...],
    tangents: tuple[Tensor, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """(func(*primals), J·tangents), in forward mode. Like `torch.func.jvp`.

    >>> jvp(torch.sin, (torch.tensor(0.),), (torch.tensor(2.),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. "
            "E.g. it should be valid to call f(*primals)."
        )
    values, spec = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python "
            "structure. For example, if primals is a tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {spec} and tangents with structure {other}"
        )
    for v, t in zip(values, directions):
        refuse_other_size(v, t)
    with Moving() as level, state.transforming(level):
        result = func(*tree_unflatten(level.duals(values, directions), spec))
    aux = None
    if has_aux:
        result, aux = result
    outs, form = tree_flatten(result)
    moved = []
    need_tensors("jvp(f, primals, tangents)", outs)
    for o in outs:
        t = level.get(o)
        if t is None and strict:
            raise RuntimeError(
                "jvp(f, primals, tangents): an output is independent of the inputs, "
                "which is not allowed with strict=True"
            )
        moved.append(zeros_like(o) if t is None else t)
    for o in outs:  # one of them may have been there twice
        if o._tangents:
            o._tangents = {k: v for k, v in o._tangents.items() if k is not level} or None
    if not state.local.grad:  # functions inside may have computed with gradients
        outs, moved = list(map(cut, outs)), list(map(cut, moved))
    pair = tree_unflatten(outs, form), tree_unflatten(moved, form)
    return (*pair, aux) if has_aux else pair


def need_tensors(name: str, outs: list[Any]) -> None:
    """Refuses the results of a function that are nothing, or no tensors."""
    if not outs or outs == [None]:
        raise RuntimeError(
            f"{name}: Expected f to be a function that has non-empty output (got output = {outs})"
        )
    for o in outs:
        if not isinstance(o, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(o)}"
            )


def basis(values: list[Tensor]) -> list[Tensor]:
    """For every value the unit vectors of all values together, (N, *shape) each."""
    total = sum(v.numel() for v in values)
    units, start = [], 0
    for v in values:
        size = v.numel()
        unit = eye(total, dtype=v.dtype, device=v.device).narrow(1, start, size)
        units.append(unit.reshape(total, *v.shape))
        start += size
    return units


def jacrev(
    func: Fn,
    argnums: Ints = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Any:
    """The Jacobian, row by row in reverse mode. Like `torch.func.jacrev`.

    >>> jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Tensor, **kwargs: object) -> Any:
        picked = chosen(args, argnums)
        result = vjp(lambda p: func(*replaced(args, argnums, p), **kwargs), picked, has_aux=has_aux)
        value, pull = result[:2]
        outs, spec = tree_flatten(value)
        units = basis(outs)
        rows = vmap(lambda *us: pull(tree_unflatten(us, spec))[0], chunk_size=chunk_size)(*units)
        inputs, in_spec = tree_flatten(picked)
        blocks = []
        for rows_of_input, x in zip(tree_flatten(rows)[0], inputs):
            parts = rows_of_input.split([o.numel() for o in outs], 0)
            blocks.append([p.view((*o.shape, *x.shape)) for p, o in zip(parts, outs)])
        per_output = [tree_unflatten([b[i] for b in blocks], in_spec) for i in range(len(outs))]
        jacobian = tree_unflatten(per_output, spec)
        return (jacobian, result[2]) if has_aux else jacobian

    return wrapper


def jacfwd(func: Fn, argnums: Ints = 0, has_aux: bool = False, *, randomness: str = "error") -> Any:
    """The Jacobian, column by column in forward mode. Like `torch.func.jacfwd`.

    >>> jacfwd(lambda x: x ** 2)(torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Tensor, **kwargs: object) -> Any:
        picked = chosen(args, argnums)
        inputs, in_spec = tree_flatten(picked)
        kept: list[Any] = []

        def push(*directions: Tensor) -> Any:
            result = jvp(
                lambda p: func(*replaced(args, argnums, p), **kwargs),
                (picked,),
                (tree_unflatten(directions, in_spec),),
                has_aux=has_aux,
            )
            kept[:] = result
            return result[1]

        columns = vmap(push, randomness=randomness)(*basis(inputs))
        value = kept[0]
        outs, spec = tree_flatten(value)
        per_output = []
        for column, o in zip(tree_flatten(columns)[0], outs):
            parts = column.movedim(0, -1).split([x.numel() for x in inputs], -1)
            per_output.append(
                tree_unflatten(
                    [p.reshape((*o.shape, *x.shape)) for p, x in zip(parts, inputs)], in_spec
                )
            )
        jacobian = tree_unflatten(per_output, spec)
        return (jacobian, kept[2]) if has_aux else jacobian

    return wrapper


def hessian(func: Fn, argnums: Ints = 0) -> Any:
    """The Hessian, forward over reverse. Like `torch.func.hessian`.

    >>> hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Fn, *primals: Tensor) -> Any:
    """(func(*primals), tangents ↦ J·tangents), with the value computed once."""
    value = func(*primals)

    def push(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return value, push
