"""`backward` and `grad`: what users call."""

from __future__ import annotations

from typing import Any

from numpy import ndarray, ones, prod

from toytorch.autograd import engine as engines
from toytorch.autograd.graph import GradientEdge
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.ops.creation.create import ones_like


def _tuple(value: Any) -> tuple[Any, ...]:
    """The values of one tensor or edge, or of several in any iterable."""
    one = (
        value is None or isinstance(value, (Tensor, GradientEdge)) or not hasattr(value, "__iter__")
    )
    return (value,) if one else tuple(value)


def _tensors(inputs: Any) -> list[Any]:
    """Inputs as tensors: edges by tensors whose gradients arrive there."""
    return [t.tensor() if isinstance(t, GradientEdge) else t for t in _tuple(inputs)]


def make_roots(tensors: Any, grads: Any, create_graph: bool = False) -> list[tuple[Any, Tensor]]:
    """Pairs of an edge and the gradient to start from."""
    roots = []
    grads = (None,) * len(tensors) if grads is None else _tuple(grads)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    for i, (tensor, grad) in enumerate(zip(tensors, grads)):
        if isinstance(tensor, GradientEdge):
            roots.append(root_at(tensor, grad))
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
        elif grad._array.shape != tensor._array.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} "
                f"and output[{i}] has a shape of {tensor.shape}."
            )
        elif grad.dtype.is_complex != tensor.dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to "
                f"have the same dtype. Mismatch in dtype: grad_output[{i}] has a "
                f"dtype of {grad.dtype} and output[{i}] has a dtype of "
                f"{tensor.dtype}."
            )
        if not tensor._requires_grad or tensor._ignores_grad:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn"
            )
        if grad is None:
            if tensor.dtype.is_complex:
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but"
                    f" got {tensor.dtype}"
                )
            if tensor._array.__class__ is ndarray and tensor.dtype.plain:
                grad = wrap(ones(tensor._array.shape, tensor._array.dtype), tensor.dtype)
            else:
                grad = ones_like(tensor)
        if grad.dtype is not tensor.dtype:
            grad = grad.to(tensor.dtype)
        roots.append((tensor._grad_edge or tensor, grad))
    return roots


def root_at(place: GradientEdge, grad: Tensor | None) -> tuple[Any, Tensor]:
    """The edge of a place in the graph, and the gradient to start from."""
    target = place.tensor()
    if grad is None:
        shape, dtype = place.node.meta
        if prod(shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        grad = wrap(ones(shape, dtype.numpy), dtype)
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

    >>> import toytorch as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> backward((3 * x).sum()); x.grad
    tensor([3., 3.])
    """
    if inputs is not None:
        inputs = _tensors(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for tensor in inputs:
            if not tensor._requires_grad:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
    if state.fast_path is state.SLOW:
        state.beside("backward() puts gradients into leaves")
    roots = make_roots(_tuple(tensors), grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    (engine or engines.default).backward(
        roots, keep_graph=keep, create_graph=create_graph, inputs=inputs
    )


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
) -> tuple[Any, ...]:
    """The gradients of outputs with respect to inputs, which are returned and stored nowhere.

    >>> import toytorch as torch
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
    inputs = _tensors(inputs)
    roots = make_roots(_tuple(outputs), grad_outputs, create_graph)
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
    results = []
    for i, tensor in enumerate(inputs):
        value = found.get(id(tensor))
        if value is None:
            if not allow_unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {i} appears to not have "
                    "been used in the graph. Set allow_unused=True if this is the "
                    "desired behavior."
                )
            if materialize_grads:
                value = tensor.new_zeros(tensor.shape)
                value._requires_grad = create_graph
        results.append(value)
    return tuple(results)


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
    backward(
        (self,),
        None if gradient is None else (gradient,),
        retain_graph,
        create_graph,
        inputs,
        engine=engine,
    )


Tensor.backward = _backward  # type: ignore[attr-defined]  # core knows no engine
