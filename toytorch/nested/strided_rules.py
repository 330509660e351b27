"""What functions do with strided nested tensors: part by part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import toytorch as torch
from toytorch import overrides
from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Args, Fn, Ints, Kwargs
from toytorch.facts.size import wrap_dim
from toytorch.nested.strided import NO_SIZES, StridedNested
from toytorch.ops.operators import SPECIAL
from toytorch.overrides import names

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
IN_PLACE = frozenset(
    names("zero_ fill_ uniform_ normal_ share_memory_ masked_fill_ bernoulli_ copy_")
)


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule, `f(func, first argument, …)`, under names of functions."""

    def register(made: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, made))
        return made

    return register


def answer(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """What a function makes of arguments among which are nested tensors."""
    name = str(getattr(func, "__name__", ""))
    if name == "__get__":
        attribute = next(n for n in overrides.SHOWN if vars(Tensor).get(n) is func.__self__)
        return StridedNested([getattr(p, attribute) for p in args[0].parts], args[0])
    if name in RULES:
        if not args and "input" in kwargs:
            args = (kwargs.pop("input"),)
        return RULES[name](func, *args, **kwargs)
    op = func.__globals__.get("op") or registry.get(name.rstrip("_"))
    if name in IN_PLACE or (op is not None and op.kind == "pointwise" and name[:2] != "__"):
        return by_parts(func, name, args, kwargs)
    if name in SPECIAL:
        return overrides.body_of(func)(*args, **kwargs)
    raise NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend. toytorch's "
        "nested tensors of layout torch.strided have no rule for it: take unbind(), or torch.jagged"
    )


def nested_of(args: Any) -> StridedNested:
    """The first nested tensor among arguments."""
    return next(a for a in args if isinstance(a, StridedNested))


def of_parts(func: Fn, first: StridedNested, args: Args, kwargs: Kwargs) -> list[Any]:
    """A function of each part of nested operands, with all others as they are."""

    def part(a: object, i: int) -> Any:
        return a.parts[i] if isinstance(a, StridedNested) else a

    return [
        func(*(part(a, i) for a in args), **{k: part(v, i) for k, v in kwargs.items()})
        for i in range(len(first.parts))
    ]


def by_parts(func: Fn, name: str, args: Args, kwargs: Kwargs) -> Any:
    """A function of each part, and of the parts of other nested operands."""
    given = [*args, *kwargs.values()]
    first = nested_of(given)
    for a in given:
        if isinstance(a, StridedNested):
            if [p.shape for p in a.parts] != [p.shape for p in first.parts]:
                raise RuntimeError(
                    f"{name.rstrip('_')} does not support broadcasting when given a NestedTensor"
                )
        elif isinstance(a, Tensor) and a.dim():
            side = "self and non-nested other" if a is not args[0] else "other and non-nested self"
            raise RuntimeError(
                f"Expected both self and other to be nested, but got a nested {side}"
            )
    made = of_parts(func, first, args, kwargs)
    if (made and made[0] is first.parts[0]) or (name.endswith("_") and name[:2] != "__"):
        return first
    return StridedNested(made, first)


def each(func: Fn, *args: object, **kwargs: object) -> StridedNested:
    """A function of each part, with dense operands as they are."""
    first = nested_of((*args, *kwargs.values()))
    made = of_parts(func, first, args, kwargs)
    if all(new is old for new, old in zip(made, first.parts)):
        return first  # a conversion to what it is already
    return StridedNested(made, first)


rule(
    *names(
        "detach to float double half bfloat16 int long short char byte bool cpu cuda dropout "
        "zeros_like ones_like empty_like full_like rand_like randn_like pin_memory embedding "
        "masked_fill where rms_norm native_dropout"
    )
)(each)


@rule("clone", "contiguous")
def clone(func: Fn, input: StridedNested, memory_format: object = None) -> StridedNested:
    """A copy in which parts lie in rows."""
    if func.__name__ == "contiguous" and input.is_contiguous():
        return input
    form = memory_format or torch.preserve_format
    if func.__name__ == "contiguous":
        form = torch.contiguous_format
    return StridedNested([p.clone(memory_format=form) for p in input.parts], input)


@rule("unbind")
def unbind(func: Fn, input: StridedNested, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts."""
    if dim != 0:
        raise RuntimeError(
            f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead."
        )
    return tuple(p.view_as(p) for p in input.parts)


@rule("__iter__", "__len__", "flatten", "cat", "concat")
def no_sizes(func: Fn, *args: object, **kwargs: object) -> Any:
    """Refused, as in PyTorch, which asks for sizes here."""
    raise RuntimeError(NO_SIZES.format("sizes"))


@rule("tolist", "numpy")
def no_array(func: Fn, *args: object, **kwargs: object) -> Any:
    """Refused: parts differ in size."""
    raise RuntimeError(NO_SIZES.format("strides" if func.__name__ == "tolist" else "sizes"))


@rule("item", "__bool__")
def one_element(func: Fn, input: StridedNested) -> Any:
    """The one element."""
    return func(input.values())


@rule(*names("numel is_contiguous size dim stride values to_padded_tensor"))
def asked(func: Fn, input: StridedNested, *args: object, **kwargs: object) -> Any:
    """What the class itself answers."""
    return getattr(input, func.__name__)(*args, **kwargs)


@rule(
    *names(
        "is_floating_point is_complex is_signed element_size get_device is_pinned type storage_offset "
        "is_shared"
    )
)
def of_first(func: Fn, input: StridedNested, *args: object, **kwargs: object) -> Any:
    """What all parts answer alike."""
    return func(input.parts[0], *args, **kwargs)


@rule("equal")
def equal(func: Fn, input: object, other: object) -> bool:
    """Whether both have the same parts."""
    if not isinstance(input, StridedNested) or not isinstance(other, StridedNested):
        return False
    return len(input.parts) == len(other.parts) and all(map(torch.equal, input.parts, other.parts))


@rule("backward")
def backward(func: Fn, input: StridedNested, gradient: Any = None, *args: Any, **kw: Any) -> None:
    """Gradients of the leaves, from a nested gradient of this tensor."""
    torch.autograd.backward(input.parts, None if gradient is None else gradient.parts, *args, **kw)


@rule("grad")
def grad(
    func: Fn, outputs: object, inputs: object, grad_outputs: object = None, **kwargs: object
) -> Any:
    """`torch.autograd.grad` where some of the tensors are nested."""

    def listed(ts: object) -> list[Any]:
        return list(ts) if isinstance(ts, (list, tuple)) else [ts]

    def flat(ts: object) -> list[Any]:
        return [p for t in listed(ts) for p in (t.parts if isinstance(t, StridedNested) else [t])]

    given = None if grad_outputs is None else flat(grad_outputs)
    found = iter(func(flat(outputs), flat(inputs), given, **kwargs))
    return tuple(
        StridedNested([next(found) for _ in t.parts])
        if isinstance(t, StridedNested)
        else next(found)
        for t in listed(inputs)
    )


# -- products, norms, sums -----------------------------------------------------------------------


@rule("linear")
def linear(
    func: Fn, input: StridedNested, weight: Tensor, bias: Tensor | None = None
) -> StridedNested:
    """A layer on each part."""
    widths = [p.shape[-1] for p in input.parts]
    if len(set(widths)) > 1:
        raise RuntimeError(
            "Expected all tensors in nested tensor to have the same trailing dimension, instead "
            f"last dimension equals: {'|'.join(f' {n}' for n in widths)}"
        )
    return each(func, input, weight, bias)


@rule("matmul", "__matmul__")
def matmul(func: Fn, input: Tensor, other: Tensor) -> StridedNested:
    """One product a part."""
    if not isinstance(input, StridedNested) or not isinstance(other, StridedNested):
        said = "self and non-nested other"
        if not isinstance(input, StridedNested):
            said = "other and non-nested self"
        raise RuntimeError(f"Expected both to be nested, but got a nested {said}")
    return each(torch.matmul, input, other)


@rule("bmm")
def bmm(func: Fn, input: Tensor, mat2: Tensor) -> StridedNested:
    """One product a part; one operand may be dense."""
    pair = (t.parts if isinstance(t, StridedNested) else t.unbind() for t in (input, mat2))
    return StridedNested([a @ b for a, b in zip(*pair)])


@rule("softmax", "_softmax", "special_softmax")
def softmax(
    func: Fn, input: StridedNested, dim: int, *args: object, **kwargs: object
) -> StridedNested:
    """Along a dimension of each part."""
    kwargs.pop("_stacklevel", None)
    at = wrap_dim(dim, input.dim())
    if at == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return each(lambda p: func(p, at - 1, *args, **kwargs), input)


@rule("layer_norm")
def layer_norm(
    func: Fn,
    input: StridedNested,
    shape: object,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> StridedNested:
    """Each row with mean 0 and variance 1."""
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    return each(func, input, shape, weight, bias, eps)


@rule("sum")
def total(
    func: Fn, input: StridedNested, dim: object = None, keepdim: bool = False, **kwargs: object
) -> StridedNested:
    """Over the last dimension."""
    if dim is None:
        raise NotImplementedError(  # as in PyTorch, which sums over the last dimension only
            "Could not run 'aten::sum' with arguments from the 'NestedTensorCPU' backend: say dim=-1"
        )
    (one,) = dim if isinstance(dim, (tuple, list)) else (dim,)
    at = wrap_dim(one, input.dim())
    if at != input.dim() - 1:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now got dimension "
            f"{at} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return each(lambda p: func(p, -1, True, **kwargs), input)


@rule("scaled_dot_product_attention")
def attention(
    func: Fn, query: Any, key: Any, value: Any, *args: object, **kw: object
) -> StridedNested:
    """Attention within each part."""
    return StridedNested(
        [
            func(q[None], k[None], v[None], *args, **kw)[0]
            for q, k, v in zip(query.parts, key.parts, value.parts)
        ]
    )


# -- views ---------------------------------------------------------------------------------------


@rule("transpose", "swapaxes", "swapdims")
def transpose(func: Fn, input: StridedNested, dim0: int, dim1: int) -> StridedNested:
    """Two dimensions of each part in each other's place."""
    a, b = wrap_dim(dim0, input.dim()), wrap_dim(dim1, input.dim())
    if 0 in (a, b):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return each(lambda p: p.transpose(a - 1, b - 1), input)


@rule("view", "reshape")
def view(func: Fn, input: StridedNested, *size: object) -> StridedNested:
    """Parts in other dimensions; -1 in a place where they differ keeps their own size."""
    wanted = list(size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size)
    made = []
    for p in input.parts:
        inner = [p.shape[i] if n == -1 and i < p.dim() else n for i, n in enumerate(wanted[1:])]
        made.append(func(p, inner))
    return StridedNested(made, input)


@rule("unsqueeze")
def unsqueeze(func: Fn, input: StridedNested, dim: int) -> StridedNested:
    """With a dimension of size 1."""
    at = wrap_dim(dim, input.dim() + 1)
    if at == 0:
        raise RuntimeError(
            "unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the "
            "moment if you need this feature, please open an issue on github describing your use "
            "case."
        )
    return each(lambda p: p.unsqueeze(at - 1), input)


@rule("squeeze")
def squeeze(func: Fn, input: StridedNested, dim: int) -> StridedNested:
    """Without a dimension of size 1."""
    at = wrap_dim(dim, input.dim())
    return each(lambda p: p.squeeze(at - 1), input)


@rule("narrow")
def narrow(func: Fn, input: StridedNested, dim: int, start: int, length: int) -> StridedNested:
    """Some of the parts."""
    if dim != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    return StridedNested(input.parts[start : start + length], input)


@rule("select")
def select(func: Fn, input: StridedNested, dim: int, index: int) -> Any:
    """A part, or one element of a dimension of all parts."""
    at = wrap_dim(dim, input.dim())
    if at:
        return each(lambda p: p.select(at - 1, index), input)
    count = len(input.parts)
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
    return input.parts[index].view_as(input.parts[index])


@rule("__getitem__")
def getitem(func: Fn, input: StridedNested, index: object) -> Any:
    """A part, or what is in it."""
    first, *rest = index if isinstance(index, tuple) else (index,)
    if not isinstance(first, int):
        raise NotImplementedError(  # as in PyTorch
            "Could not run 'aten::slice.Tensor' with arguments from the 'NestedTensorCPU' backend: take "
            "parts by number, or unbind()"
        )
    part = input.select(0, first)
    return part[tuple(rest)] if rest else part


@rule("chunk")
def chunk(func: Fn, input: StridedNested, chunks: int, dim: int = 0) -> Any:
    """Pieces of the last dimension."""
    if wrap_dim(dim, input.dim()) != input.dim() - 1:
        raise RuntimeError(
            "Chunk for nested tensors is currently only supported for the last dimension."
        )
    return tuple(
        StridedNested(ps, input) for ps in zip(*(p.chunk(chunks, -1) for p in input.parts))
    )


@rule("split", "split_with_sizes")
def split(func: Fn, input: StridedNested, split_size: Ints, dim: int = 0) -> Any:
    """Pieces of given sizes of the last dimension."""
    if isinstance(split_size, int):
        raise RuntimeError(NO_SIZES.format("sizes"))
    if wrap_dim(dim, input.dim()) != input.dim() - 1:
        raise RuntimeError(
            "split_with_sizes for nested tensors is currently only supported for the last dimension."
        )
    return tuple(
        StridedNested(ps, input) for ps in zip(*(p.split(split_size, -1) for p in input.parts))
    )
