"""`backward` and `grad`: what users call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy import ndarray, ones, prod

from toytorch.autograd import engine as engines
from toytorch.autograd.graph import GradientEdge
from toytorch.backends import base
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.facts.composed import composed
from toytorch.facts.hints import DType, Sizes
from toytorch.facts.node import Node, Output
from toytorch.facts.size import Size
from toytorch.ops.creation.create import ones_like, zeros_like


def _tuple(value: Any) -> tuple[Any, ...]:
    """The values of one tensor or edge, or of several in any iterable."""
    one = (
        value is None or isinstance(value, (Tensor, GradientEdge)) or not hasattr(value, "__iter__")
    )
    return (value,) if one else tuple(value)


def _grads(value: Any) -> tuple[Any, ...]:
    """The same of gradients; what is neither a tensor nor several is Python's to refuse."""
    return (value,) if isinstance(value, Tensor) else tuple(value)


ONLY_INPUTS = (
    "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient "
    "for other parts of the graph, please use torch.autograd.backward."
)


def _places(inputs: Any, name: str) -> tuple[Any, ...]:
    """Where gradients are asked for. Read once: `parameters()` is an iterator."""
    if isinstance(inputs, Mapping) and type(inputs) is not dict:
        raise TypeError(
            f"`inputs` argument to `{name}()` must be a dict, not {type(inputs).__name__}. "
            "Other Mapping types are not supported."
        )
    places = _tuple(inputs.values() if type(inputs) is dict else inputs)
    if not places:
        raise RuntimeError(f"`inputs` argument to `{name}()` cannot be empty.")
    return places


def _tensors(inputs: Any) -> list[Any]:
    """Inputs as tensors: edges by tensors whose gradients arrive there."""
    return [t.tensor() if isinstance(t, GradientEdge) else t for t in _tuple(inputs)]


def make_roots(tensors: Any, grads: Any) -> list[tuple[Any, Tensor]]:
    """Pairs of an edge and the gradient to start from."""
    roots = []
    grads = (None,) * len(tensors) if grads is None else _grads(grads)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    for i, (tensor, grad) in enumerate(zip(tensors, grads)):
        if isinstance(tensor, GradientEdge):
            roots.append(root_at(i, tensor, grad))
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"element {i} of tensors must be a Tensor, not {type(tensor).__name__}")
        if grad is None:
            if tensor._requires_grad and tensor._array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
        elif not isinstance(grad, Tensor):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(grad).__name__}"
            )
        else:
            check_fits(i, grad, tensor._array.shape, tensor.dtype)
        if not tensor._requires_grad or tensor._ignores_grad:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn"
            )
        if grad is None:
            if tensor._dtype.is_complex:
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but"
                    f" got {tensor.dtype}"
                )
            array, simulation = tensor._array, None if state.profiler else base.simulation
            if array.__class__ is ndarray and tensor._dtype.plain:
                grad = wrap(ones(array.shape, array.dtype), tensor._dtype)
            elif simulation is not None and array.__class__ is simulation.array_type:
                with simulation.on(tensor.device):
                    made = simulation.plain("ones", ones, [array.shape, array.dtype], [])
                grad = wrap(made, tensor.dtype)
            else:
                grad = ones_like(tensor)
        if grad._dtype is not tensor._dtype:
            grad = grad.to(tensor.dtype)
        roots.append(root_of(tensor, grad))
    return roots


def root_of(tensor: Tensor, grad: Tensor) -> tuple[Any, Tensor]:
    """Where to start from, and with which gradient: the one that the node made a place for, though
    the tensor's `data` may have another shape since."""
    target = tensor._grad_edge or tensor
    if isinstance(target, (Node, Output)):
        meta = target.meta
        if meta.__class__ is tuple and meta[1] is not None:
            shape, kind = meta
            other = kind is not grad._dtype and kind.is_complex is grad._dtype.is_complex
            if other or shape != grad._array.shape:
                grad = engines.as_known(grad, meta)
    return target, grad


def check_fits(i: int, grad: Tensor, shape: Sizes, dtype: DType) -> None:
    """Refuses a gradient that is none of output number i."""
    if grad._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} "
            f"and output[{i}] has a shape of {Size(shape)}."
        )
    if grad.dtype.is_complex != dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to "
            f"have the same dtype. Mismatch in dtype: grad_output[{i}] has a "
            f"dtype of {grad.dtype} and output[{i}] has a dtype of {dtype}."
        )


def root_at(i: int, place: GradientEdge, grad: Tensor | None) -> tuple[Any, Tensor]:
    """The edge of a place in the graph, and the gradient to start from."""
    shape, dtype = place.meta
    if grad is not None:
        check_fits(i, grad, tuple(shape), dtype)
    else:
        if prod(shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        grad = wrap(ones(shape, dtype.numpy), dtype)
    target = place.tensor()
    return target._grad_edge or target, grad


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    *,
    engine: engines.Engine | None = None,
) -> None:
    """Adds the gradients of tensors to the leaves they were computed from.

    Each leaf x gets Σ (∂tensor/∂x)ᵀ·grad. Like `torch.autograd.backward`; `engine` is an argument for
    another engine.

    >>> x = torch.ones(2, requires_grad=True)
    >>> backward((3 * x).sum()); x.grad
    tensor([3., 3.])
    """
    if inputs is not None:
        inputs = _tensors(_places(inputs, "backward"))
    if state.fast_path is state.SLOW:
        state.beside("backward() puts gradients into leaves")
    roots = make_roots(_tuple(tensors), grad_tensors)
    for tensor in inputs or ():
        tensor.retain_grad()  # of a non-leaf, in later passes, too; refuses what requires none
    if create_graph:
        from toytorch.facts import warned  # seldom needed

        warned.once(warned.CYCLE)
    keep = create_graph if retain_graph is None else retain_graph
    (engine or engines.default).backward(
        roots, keep_graph=keep, create_graph=create_graph, inputs=inputs
    )


@composed(returns="Tensor?[]")
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    engine: engines.Engine | None = None,
) -> Any:
    """The gradients of outputs with respect to inputs, which are returned and stored nowhere: in a
    tuple, or of a dict of inputs in one.

    >>> x = torch.tensor(3., requires_grad=True)
    >>> g, = grad(x ** 3, x, create_graph=True)
    >>> grad(g, x)
    (tensor(18.),)
    """
    if allow_unused is None:
        allow_unused = materialize_grads
    elif not allow_unused and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads="
            "True, but got: allow_unused=False."
        )
    if type(inputs) is dict:
        made = grad(
            outputs, list(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
            allow_unused, is_grads_batched, materialize_grads, engine=engine,
        )  # fmt: skip
        return dict(zip(inputs, made))
    places = _places(inputs, "grad")
    inputs = _tensors(places)
    if not only_inputs:
        from toytorch.facts import warned  # seldom needed

        warned.at_call(ONLY_INPUTS, FutureWarning)
    if is_grads_batched:
        more = retain_graph, create_graph, materialize_grads
        return batched(_tuple(outputs), inputs, _tuple(grad_outputs), allow_unused, *more)
    roots = make_roots(_tuple(outputs), grad_outputs)
    for tensor in inputs:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"grad() expects inputs that are Tensors, but got {type(tensor).__name__}"
            )
        if not tensor._requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    keep = create_graph if retain_graph is None else retain_graph
    found = (engine or engines.default).backward(
        roots, keep_graph=keep, create_graph=create_graph, inputs=list(inputs), capture=True
    )
    results = [found.get(id(tensor)) for tensor in inputs]
    for i, value in enumerate(results):
        if value is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the "
                "graph. Set allow_unused=True if this is the desired behavior."
            )
        if value is None and materialize_grads:
            if isinstance(places[i], GradientEdge):
                raise RuntimeError(
                    "materialize_grads cannot be used when the given input is a GradientEdge"
                )
            results[i] = value = zeros_like(inputs[i])
            value._requires_grad = create_graph
    return tuple(results)


def batched(
    outputs: tuple[Any, ...],
    inputs: list[Tensor],
    grads: tuple[Any, ...],
    allow_unused: bool,
    retain_graph: bool | None,
    create_graph: bool,
    materialize: bool,
) -> tuple[Any, ...]:
    """`grad` of a batch of cotangents, in one pass: the first dimension of each is the batch."""
    from toytorch.autograd.vmap import vmap  # seldom needed

    for i, (output, g) in enumerate(zip(outputs, grads)):
        if isinstance(output, Tensor) and isinstance(g, Tensor) and g.shape[1:] != output.shape:
            raise RuntimeError(
                f"If `is_grads_batched=True`, we interpret the first dimension of each "
                "grad_output as the batch dimension. The sizes of the remaining dimensions are "
                "expected to match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {Size(g.shape[1:])} and output[{i}] has a shape of "
                f"{output.shape}. If you only want some tensors in `grad_output` to be considered "
                "batched, consider using vmap."
            )
    if all(g is None for g in grads):
        make_roots(outputs, None)  # says what is missing
    reached: list[bool] = []

    def pull(*cotangents: Any) -> tuple[Any, ...]:
        options: Any = {"allow_unused": allow_unused, "materialize_grads": materialize}
        found = grad(outputs, inputs, cotangents, retain_graph, create_graph, **options)
        reached[:] = [g is not None for g in found]
        return tuple(g for g in found if g is not None)

    made = iter(vmap(pull, in_dims=tuple(None if g is None else 0 for g in grads))(*grads))
    return tuple(next(made) if there else None for there in reached)


def _backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    *,
    engine: engines.Engine | None = None,
) -> None:
    """Adds the gradients of this tensor to the leaves it was computed from."""
    given = None if gradient is None else (gradient,)
    backward((self,), given, retain_graph, create_graph, inputs, engine=engine)


_backward.__qualname__ = "Tensor.backward"
Tensor.backward = _backward  # type: ignore[attr-defined]  # core knows no engine
