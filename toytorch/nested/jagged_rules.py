"""What functions do with jagged nested tensors: computed on the values, the result wrapped.

`answer` asks in this order: a rule that stands here under the function's name; for a pointwise
record the rule of all pointwise ops; for a function that is composed of others, its own body, whose
parts ask in turn. Anything else is refused, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import toytorch as torch
from toytorch import overrides
from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.size import Size, wrap_dim
from toytorch.nested.jagged import NestedTensor, from_padded, jagged_from_list, like, to_padded
from toytorch.ops.operators import SPECIAL
from toytorch.overrides import names
from toytorch.symbolic import RaggedSize

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
# Composed of functions that ask: their bodies run, as those of operators do.
COMPOSED = frozenset(names("divide floor_divide true_divide square type_as softmin"))
CONTIGUOUS = "contiguous jagged layout NestedTensor"


def rule(*names: str, only: str = "") -> Callable[[Rule], Rule]:
    """Registers a rule, `f(func, first argument, …)`, under names of functions.

    `only` is PyTorch's schema of a rule for values that are contiguous and ragged in dimension 1.
    """

    def register(made: Rule) -> Rule:
        for name in names:
            RULES[name] = checked(made, only) if only else made
        return made

    return register


def checked(made: Rule, schema: str) -> Rule:
    """A rule that refuses nested tensors with room between parts, or ragged elsewhere."""
    first = schema.partition("(")[2]

    def asked(func: Fn, input: object, *args: object, **kwargs: object) -> Any:
        if (
            not isinstance(input, NestedTensor)
            or input._lengths is not None
            or input._ragged_idx != 1
        ):
            raise ValueError(
                f"NestedTensor {schema}: expected {first.partition(':')[0]} to be a {CONTIGUOUS}"
            )
        return made(func, input, *args, **kwargs)

    return asked


def answer(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """What a function makes of arguments among which are nested tensors."""
    name = name_of(func)
    if name == "__get__":
        return shown(func.__self__, args[0])
    if name in RULES:
        if not args and "input" in kwargs:
            args = (kwargs.pop("input"),)
        return RULES[name](func, *args, **kwargs)
    op = func.__globals__.get("op") or registry.get(name.rstrip("_"))
    if op is not None and op.kind == "pointwise" and name[:2] != "__":
        return pointwise(func, op.name, args, kwargs)
    if name in COMPOSED or name in SPECIAL:
        return overrides.body_of(func)(*args, **kwargs)
    # PyTorch refuses what it has no rule for by this class and this name.
    raise NotImplementedError(
        f"aten.{name}.default: nested tensors of layout torch.jagged have no rule for it; take "
        "unbind() or values()"
    )


def shown(attribute: property, nested: NestedTensor) -> Any:
    """An attribute that is a tensor, such as `x.mT`."""
    name = next(n for n in overrides.SHOWN if vars(Tensor).get(n) is attribute)
    if name in ("T", "H"):
        return nested.permute(*range(nested.dim() - 1, -1, -1))
    if name in ("mT", "mH"):
        return nested.transpose(-2, -1)
    return like(nested, getattr(nested._values, name))


# -- pointwise ----------------------------------------------------------------------------------


def agree(a: NestedTensor, size: Sequence[Any]) -> bool:
    """Whether sizes up to the ragged one are those of a nested tensor; -1 stands for any."""
    mine = a._size[: a._ragged_idx + 1]
    return len(size) >= len(mine) and all(s == m or s == -1 for m, s in zip(mine, size))


def pointwise(func: Fn, name: str, args: Args, kwargs: Kwargs) -> Any:
    """An op of single elements: on the values, to which dense operands are fitted."""
    given = [*args, *kwargs.values()]
    if any(isinstance(a, RaggedSize) for a in given):
        wrong = next(a for a in given if isinstance(a, RaggedSize))
        raise RuntimeError(f"NestedTensor {name}.Tensor: invalid argument {wrong}")
    tensors = [a for a in given if isinstance(a, Tensor)]
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    in_place = func.__name__.endswith("_")
    if in_place and not isinstance(args[0], NestedTensor):
        raise RuntimeError(
            f"{name}_(): a dense tensor cannot take the values of a nested one in place"
        )

    def fitted(t: object) -> Any:
        if not isinstance(t, Tensor):
            return t
        if isinstance(t, NestedTensor):
            if agree(first, t._size):
                return t._values
            raise mismatch(name, args[0]._size, args[1]._size)
        return dense(first, t, name, args)

    made = func(*map(fitted, args), **{k: fitted(v) for k, v in kwargs.items()})
    if in_place or made is first._values:
        return first
    if isinstance(made, tuple):
        return each_nested(first, made)
    return like(first, made)


def name_of(func: object) -> str:
    """The name of a function."""
    return str(getattr(func, "__name__", ""))


def mismatch(name: str, a: object, b: object) -> RuntimeError:
    """The refusal of operands whose ragged sizes differ."""
    return RuntimeError(
        f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {a} and {b}"
    )


def dense(nested: NestedTensor, t: Tensor, name: str, args: Args) -> Tensor:
    """A dense operand as values that lie beside those of a nested tensor."""
    if t.dim() > nested.dim():
        raise NotImplementedError(  # as in PyTorch
            f"NYI: broadcasting NT with T with larger dim: {nested.dim()} and {t.dim()}"
        )
    squeezed = t
    while squeezed.dim() and squeezed.shape[0] == 1:
        squeezed = squeezed.squeeze(0)
    if nested.dim() >= squeezed.dim() + 2:
        return squeezed
    if t.dim() != nested.dim() or t.shape[0] != len(nested):
        raise mismatch(name, args[0].shape, args[1].shape)
    dim = nested._ragged_idx
    length = nested._maybe_max_seqlen or int(nested._values.shape[dim - 1])
    sizes = [length if i == dim else n for i, n in enumerate(t.shape)]
    return from_padded(t.expand(sizes), nested)._values


def values_of(a: Any) -> Any:
    """The values of a nested tensor; anything else as it is."""
    return a._values if isinstance(a, NestedTensor) else a


def through(func: Fn, *args: object, **kwargs: object) -> Any:
    """A function of the values, and of what else it is given; results of it are nested."""
    first = next(a for a in (*args, *kwargs.values()) if isinstance(a, NestedTensor))

    made = func(*map(values_of, args), **{k: values_of(v) for k, v in kwargs.items()})
    if isinstance(made, tuple):
        return each_nested(first, made)
    return like(first, made) if isinstance(made, Tensor) else made


def each_nested(first: NestedTensor, made: Any) -> Any:
    """Several results, each nested."""
    nested = [like(first, t) for t in made]
    return type(made)(*nested) if hasattr(made, "_fields") else tuple(nested)


rule(
    *names(
        "detach alpha_dropout feature_dropout feature_alpha_dropout dropout1d dropout2d "
        "dropout3d bernoulli isreal bitwise_not native_norm conj resolve_conj resolve_neg "
        "masked_fill_ one_hot frexp embedding fill"
    )
)(through)
rule("dropout", only="native_dropout_default(self: jt, float: any, train: any?)")(through)
rule("linear", only="linear_default(input: jt, weight: t, bias: t?)")(through)
rule(
    "conv1d", "conv2d", "conv3d",
    only="convolution_default(input: jt, weight: t, bias: t?, stride: any, padding: any, "
    "dilation: any, transposed: any, output_padding: any, groups: any)",
)(through)  # fmt: skip


# -- types, copies and what is made alike --------------------------------------------------------


@rule(
    "to", *names("float double half bfloat16 int long short char byte bool cfloat cdouble cpu cuda")
)
@rule("pin_memory", "type_as")
def converted(func: Fn, input: Tensor, *args: object, **kwargs: object) -> Any:
    """Values of another type or on another device, where the lengths go with them."""
    if not isinstance(input, NestedTensor):  # dense.to(nested)
        return func(input, *map(values_of, args), **kwargs)
    kwargs.pop("layout", None)
    values = func(input._values, *map(values_of, args), **kwargs)
    return input if values is input._values else on_device(input, values)


def on_device(input: NestedTensor, values: Tensor) -> NestedTensor:
    """Other values with the lengths of a nested tensor, which follow to their device."""
    if values.device == input.device:
        return like(input, values)
    from toytorch.nested.jagged import ragged_size, share_size  # seldom needed

    offsets = input._offsets.to(values.device)
    lengths = None if input._lengths is None else input._lengths.to(values.device)
    source = input._offsets if input._lengths is None else input._lengths
    share_size(offsets if lengths is None else lengths, ragged_size(source))
    ragged, cache = input._ragged_idx, input._metadata_cache
    return NestedTensor(values, offsets, lengths=lengths, _ragged_idx=ragged, _metadata_cache=cache)


@rule(*(f"{n}_like" for n in names("empty ones zeros full rand randn randint")))
def made_like(func: Fn, input: NestedTensor, *args: object, **kwargs: object) -> NestedTensor:
    """A new nested tensor of the same lengths."""
    kwargs.pop("layout", None)
    return on_device(input, func(input._values, *args, **kwargs))


@rule("new_empty", "new_zeros", "new_ones", "new_full")
def new_(func: Fn, input: NestedTensor, size: object, *args: object, **kwargs: object) -> Any:
    """A number of the type of a nested tensor."""
    if size not in ((), []):
        raise RuntimeError("new_empty() not supported for NJT with shape != ()")
    return func(input._values, size, *args, **kwargs)


@rule("clone", "contiguous")
def clone(func: Fn, input: NestedTensor, memory_format: object = None) -> NestedTensor:
    """A copy; one that is contiguous leaves no room between parts."""
    if name_of(func) == "contiguous" and input.is_contiguous():
        return input
    wanted = memory_format or (None if name_of(func) == "clone" else torch.contiguous_format)
    if input._lengths is not None and wanted is torch.contiguous_format:
        assert input._ragged_idx == 1, "NJT with ragged_idx != 1 not supported for contiguous clone"
        return jagged_from_list(input.unbind(), None)[0]
    return like(input, input._values.clone(memory_format=wanted or torch.preserve_format))


@rule("zero_", "fill_", "uniform_", "normal_", "random_", "exponential_", "bernoulli_", "apply_")
@rule("share_memory_", "dropout_")
def in_place(func: Fn, input: NestedTensor, *args: object, **kwargs: object) -> NestedTensor:
    """New values in the place of the old ones."""
    func(input._values, *args, **kwargs)
    return input


@rule("copy_")
def copy_(func: Fn, input: object, src: object, non_blocking: bool = False) -> Any:
    """The values of another nested tensor whose parts have the same sizes."""
    if not isinstance(input, NestedTensor) or not isinstance(src, NestedTensor):
        raise RuntimeError("copy_() between a nested and a dense tensor is not supported")
    if input._size != src._size:
        mine, others = input.unbind(), src.unbind()
        if [p.shape for p in mine] != [p.shape for p in others]:
            raise RuntimeError(
                "copy_(): expected compatible input and src shapes, but got: "
                f"{input.shape} and {src.shape}"
            )
        for part, other in zip(mine, others):
            part.copy_(other)
        return input
    func(input._values, src._values)
    return input


# -- queries -------------------------------------------------------------------------------------


@rule("numel", "is_contiguous", "values", "size", "dim", "stride", "lengths", "offsets")
def asked(func: Fn, input: NestedTensor, *args: object, **kwargs: object) -> Any:
    """What the class itself answers."""
    return getattr(input, name_of(func))(*args, **kwargs)


@rule("masked_fill")
def masked_fill(func: Fn, *args: object, **kwargs: object) -> Any:
    """One number where a nested mask is True."""
    return pointwise(func, "masked_fill", args, kwargs)


@rule(
    *names(
        "is_floating_point is_complex is_signed element_size get_device is_pinned is_shared type "
        "is_inference item __bool__ storage_offset is_conj is_neg _is_view untyped_storage storage"
    )
)
def of_values(func: Fn, input: NestedTensor, *args: object, **kwargs: object) -> Any:
    """What the values answer."""
    if name_of(func) == "type" and (args or kwargs):
        return like(input, func(input._values, *args, **kwargs))
    return func(input._values, *args, **kwargs)


@rule("tolist", "numpy")
def no_list(func: Fn, input: NestedTensor, *args: object, **kwargs: object) -> Any:
    """Refused: parts differ in size."""
    kind = ", got NestedTensor" if name_of(func) == "tolist" else "."
    raise RuntimeError(f".{name_of(func)}() is not supported for tensor subclasses{kind}")


@rule("is_same_size")
def is_same_size(func: Fn, input: NestedTensor, other: NestedTensor) -> bool:
    """Whether both have the same sizes and the same offsets."""
    return input._size == other._size


@rule("equal")
def equal(func: Fn, input: object, other: object) -> bool:
    """Whether both have the same parts."""
    if not isinstance(input, NestedTensor) or not isinstance(other, NestedTensor):
        return False
    mine, others = input.unbind(), other.unbind()
    return len(mine) == len(others) and all(map(torch.equal, mine, others))


@rule("backward")
def backward(
    func: Fn, input: NestedTensor, gradient: object = None, *args: object, **kwargs: object
) -> None:
    """Gradients of the leaves, from a nested gradient of this tensor."""
    func(input._values, values_of(gradient), *args, **kwargs)


@rule("grad")
def grad(
    func: Fn, outputs: object, inputs: object, grad_outputs: object = None, **kwargs: object
) -> Any:
    """`torch.autograd.grad` where some of the tensors are nested."""

    def listed(ts: Any) -> Any:
        return ts if isinstance(ts, (list, tuple)) else (ts,)

    def inner(ts: object) -> Any:
        return ts if ts is None else tuple(map(values_of, listed(ts)))

    found = func(inner(outputs), inner(inputs), inner(grad_outputs), **kwargs)
    return tuple(
        like(p, g) if isinstance(p, NestedTensor) and g is not None else g
        for p, g in zip(listed(inputs), found)
    )


@rule("masked_select")
def masked_select(func: Fn, input: NestedTensor, mask: NestedTensor) -> NestedTensor:
    """Of each part, the elements where a mask is True."""
    if input.ndim > 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if input.shape != mask.shape:
        raise RuntimeError(
            f"Mask with shape {mask.shape} is not compatible with input's shape {input.shape}"
        )
    before = torch.nn.functional.pad(mask._values.cumsum(0), (1, 0))
    kept = input._values.masked_select(mask._values)
    return NestedTensor(kept, before[input._offsets])


# -- products ------------------------------------------------------------------------------------


def by_padding(a: Any, b: Any) -> NestedTensor:
    """A product with a dense stack of B matrices."""
    nested = a if isinstance(a, NestedTensor) else b
    known = nested._maybe_max_seqlen
    length = int(nested._values.shape[nested._ragged_idx - 1]) if known is None else known
    full = to_padded(nested, 0.0, length)
    return from_padded(full @ b if nested is a else a @ full, nested)


@rule("matmul", "__matmul__", "__rmatmul__")
def matmul(func: Fn, input: Any, other: Any) -> Any:
    """Products of the last two dimensions, none of which is ragged but where it is summed over."""
    a, b = (other, input) if name_of(func) == "__rmatmul__" else (input, other)
    if not isinstance(b, NestedTensor):
        inside = a._ragged_idx < a.dim() - 1
        if a.dim() >= 3 and a.dim() == b.dim() and inside:
            return by_padding(a, b)
        if b.dim() == 2 and a.dim() > 2 and inside:
            return like(a, a._values @ b)
    elif not isinstance(a, NestedTensor):
        if b.dim() >= 3 and b.dim() == a.dim() and b._ragged_idx >= 2:
            return by_padding(a, b)
        if a.dim() == 2 and b.dim() > 2 and b._ragged_idx >= 2:
            return like(b, a @ b._values)
    elif a.dim() > 3 and b.dim() > 3 and agree(a, b._size):
        return like(a, a._values @ b._values)
    elif (
        a.dim() == b.dim() == 3
        and (a._ragged_idx, b._ragged_idx) == (2, 1)
        and a._size[2] == b._size[1]
    ):
        return torch.stack([x @ y for x, y in zip(a.unbind(), b.unbind())])
    first = a._size if isinstance(a, NestedTensor) else tuple(a.shape)
    raise RuntimeError(f"matmul(): not supported between inputs of shapes {first} and {b.shape}")


@rule("bmm")
def bmm(func: Fn, input: Any, mat2: Any) -> Any:
    """A product of stacks of matrices."""
    for name, t in (("input", input), ("mat2", mat2)):
        if t.dim() != 3:
            raise ValueError(f"bmm(): {name} must be 3D")
    return torch.matmul(input, mat2)


@rule("scaled_dot_product_attention")
def attention(func: Fn, *args: Any, **kwargs: Any) -> Any:
    """Attention within each part (see `nested.attention`)."""
    from toytorch.nested.attention import jagged_attention  # seldom needed

    return jagged_attention(func, *args, **kwargs)


# -- norms and softmax ---------------------------------------------------------------------------


@rule("softmax", "log_softmax", "_softmax", "_log_softmax", "special_softmax")
def softmax(
    func: Fn, input: NestedTensor, dim: object, *args: object, **kwargs: object
) -> NestedTensor:
    """Along a dimension, or along each part."""
    kwargs.pop("_stacklevel", None)
    name = name_of(func).strip("_")
    if isinstance(dim, tuple):
        raise RuntimeError(
            f"{name}(): not supported for dimensions of type 'tuple' for NestedTensor"
        )
    at = wrap_dim(dim, input.dim())
    if at == 0:
        raise RuntimeError(
            f"{name}(): not supported when reducing across the batch dimension for NestedTensor"
        )
    if at != input._ragged_idx:
        return like(input, func(input._values, at - 1, *args, **kwargs))
    if name == "log_softmax":
        raise RuntimeError(
            "log_softmax(): not supported when reducing along the ragged dimension for NestedTensor"
        )
    if at > 1:
        raise RuntimeError(
            "softmax(): not supported when reducing along the ragged dimension for ragged_idx > 1 "
            "for NestedTensor"
        )
    if input._lengths is not None:
        raise RuntimeError(
            "softmax(): not supported where lengths is not None if reducing across the ragged "
            "dimension for NestedTensor"
        )
    full = to_padded(input, -math.inf, input._get_max_seqlen())
    return from_padded(func(full, at, *args, **kwargs), input)


@rule("layer_norm")
def layer_norm(
    func: Fn,
    input: NestedTensor,
    normalized_shape: Sequence[Any],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> NestedTensor:
    """Each row, or each part, with mean 0 and variance 1."""
    if input.dim() <= 2:
        raise RuntimeError(
            "layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions"
        )
    if len(normalized_shape) == input.dim():
        raise RuntimeError(
            "layer_norm(): not supported when normalizing over the batch dimension for NestedTensor"
        )
    if not any(isinstance(n, RaggedSize) for n in normalized_shape):
        return like(input, func(input._values, normalized_shape, weight, bias, eps))
    if input._lengths is not None:
        raise RuntimeError(
            "layer_norm(): not supported where lengths is not None if operating on the ragged "
            "dimension for NestedTensor"
        )
    inside = tuple(range(1, input.dim()))
    counts = input._offsets.diff().view(-1, *[1] * len(inside)) * math.prod(input._values.shape[1:])
    full = to_padded(input, 0.0, input._get_max_seqlen())
    mask = to_padded(like(input, torch.ones_like(input._values)), 0.0, full.shape[1])
    centred = (full - full.sum(inside, keepdim=True) / counts) * mask
    spread = (centred.square().sum(inside, keepdim=True) / counts + eps).sqrt()
    return from_padded(centred / spread, input)


@rule("rms_norm")
def rms_norm(
    func: Fn, input: NestedTensor, normalized_shape: Sequence[Any], *more: object, **kw: object
) -> Any:
    """Each row divided by the root of its mean square."""
    if len(normalized_shape) > input.dim() - input._ragged_idx - 1:
        raise ValueError(
            "rms_norm(): Normalization over the ragged dim not supported for nested tensors"
        )
    return like(input, func(input._values, normalized_shape, *more, **kw))


# -- several tensors -----------------------------------------------------------------------------


@rule("broadcast_tensors")
def broadcast_tensors(func: Fn, *given: Any) -> tuple[Any, ...]:
    """All with the shape of the nested ones."""
    tensors = given[0] if isinstance(given[0], (list, tuple)) else given
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    made = []
    for t in tensors:
        if isinstance(t, NestedTensor):
            made.append(t)
        elif t.dim() < first.dim():
            made.append(like(first, t.broadcast_to(first._values.shape)))
        else:
            raise ValueError(
                "broadcast_tensors(): broadcasting nested tensors with dense tensors of equal or "
                "higher dim is not currently supported"
            )
    return tuple(made)


@rule("where")
def where(
    func: Fn, condition: object, input: object = None, other: object = None, **kwargs: object
) -> Any:
    """Elements of one or the other."""
    parts = [condition, kwargs.get("self", input), other]
    tensors = [p if isinstance(p, Tensor) else torch.tensor(p) for p in parts]
    a, b, c = torch.broadcast_tensors(*tensors)
    return like(a, func(a._values, b._values, c._values))


def shape_of(size: Sequence[Any]) -> Size:
    """Sizes that were given as one sequence or singly."""
    one = len(size) == 1 and isinstance(size[0], (tuple, list))
    return Size(size[0] if one else size)


def _load() -> None:
    """The further rules, which stand in files of their own."""
    from toytorch.nested import jagged_reductions, jagged_shaping  # noqa: F401  # loading them enters their rules


_load()
