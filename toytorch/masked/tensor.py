"""Tensors that carry a mask: what is masked out takes no part, and has no value in results.

Like the classes of `nested`, they wrap plain tensors: `__torch_function__` computes on the data, and
the history for backward is that of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import toytorch as torch
from toytorch import overrides
from toytorch.core.op import registry
from toytorch.core.tensor import Tensor, new
from toytorch.facts import warned
from toytorch.facts.hints import Args, DType, Fn, Kwargs
from toytorch.facts.parts import of_part
from toytorch.ops.operators import SPECIAL

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please "
    "open a Github issue for features requests and see our documentation on the torch.masked module for "
    "further information about the project."
)
KINDS = overrides.names("float16 float32 float64 bool int8 int16 int32 int64")
REDUCTIONS = overrides.names("sum mean amin amax argmin argmax prod all norm var std")
# On data and mask alike, and on the data alone.
BOTH = overrides.names(
    "select transpose split t slice slice_backward select_backward index expand view _unsafe_view "
    "reshape unfold flatten permute unbind squeeze unsqueeze __getitem__ contiguous"
)
JOINED = overrides.names("cat stack vstack hstack dstack concat column_stack row_stack")
DATA = overrides.names("clone detach to float double half bool int long short char ones_like")
ASKED = overrides.names(
    "size dim stride numel is_contiguous is_floating_point is_complex element_size type get_device"
)


def is_masked_tensor(obj: object, /) -> bool:
    """Whether it is a tensor that carries a mask."""
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Tensor):
    """Data, and a mask that is True where they count. Like PyTorch's class of this name.

    Raises TypeError or ValueError unless the mask is of bool and of the data's size.

    >>> import warnings; warnings.simplefilter("ignore")
    >>> x = MaskedTensor(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True]))
    >>> x + 1, x.sum()
    (MaskedTensor(
      [  2.0000,       --,   4.0000]
    ), MaskedTensor(  4.0000, True))
    """

    _masked_data: Tensor
    _masked_mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        for name, t in (("data", data), ("mask", mask)):
            if is_masked_tensor(t) or not isinstance(t, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        warned.at_call(PROTOTYPE)
        if data.requires_grad:
            warned.at_call(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To "
                "avoid this, you can use data.detach().clone()"
            )
        check(data, mask)
        own = data.detach().clone()
        return _made(own.requires_grad_(True) if requires_grad else own, mask.clone())

    def __init__(self, *args: object, **kwargs: object) -> None: ...

    def get_data(self) -> Tensor:
        """The data, with what is under the mask."""
        data = self._masked_data
        return data.view_as(data) if data.layout is torch.strided else data

    def get_mask(self) -> Tensor:
        """True where data count."""
        return self._masked_mask

    def to_tensor(self, value: float) -> Tensor:
        """The data, with a number where they do not count."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    # -- shape and history, which are the data's ---------------------------------------------------

    shape = of_part("_masked_data.shape")
    ndim = of_part("_masked_data.ndim")
    layout = of_part("_masked_data.layout")
    is_leaf = of_part("_masked_data.is_leaf")
    grad_fn = of_part("_masked_data.grad_fn")

    requires_grad = of_part("_masked_data.requires_grad", "Whether gradients are wanted.", True)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Says whether gradients are wanted; in place."""
        self._masked_data.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Any:
        """What backward accumulated, under the same mask."""
        found = self._masked_data.grad
        return None if found is None else _made(found, self._masked_mask)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._masked_data.grad = value._masked_data if is_masked_tensor(value) else value

    def __len__(self) -> int:
        return len(self._masked_data)

    def __lt__(self, other: object) -> Any:
        return answer(torch.lt, (self, other), {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _made(self._masked_data.__deepcopy__(memo), self._masked_mask.clone())

    def __reduce_ex__(self, protocol: object) -> Any:
        return _made, (self._masked_data, self._masked_mask)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        data, mask = self._masked_data.detach(), self._masked_mask
        if data.layout is not torch.strided:
            data, mask = data.to_dense(), mask.to_dense()
        if not data.ndim:
            return f"MaskedTensor({_shown(data.item(), mask.item(), 0)}, {mask.item()})"
        return "MaskedTensor(\n" + _indented(_rows(data, mask)) + "\n)"

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    @classmethod
    def __torch_function__(
        cls, func: Fn, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        return answer(func, args, kwargs or {})


def check(data: Tensor, mask: Tensor) -> None:
    """Refuses data and a mask that do not go together."""
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if mask.dtype is not torch.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype.name not in KINDS:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")


def _made(data: Tensor, mask: Tensor) -> MaskedTensor:
    overrides.arm()
    made: MaskedTensor = new(MaskedTensor)
    made._array, made._dtype, made._storage = data._array, data._dtype, data._memory()
    made._masked_data, made._masked_mask = data, mask
    return made


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A leaf of copies of data and mask."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor that has the history of its data."""
    check(data, mask)
    return _made(data.clone(), mask.clone())


# -- printing ------------------------------------------------------------------------------------


def _shown(value: object, counts: bool, width: int) -> str:
    if not counts:
        return "--".rjust(width)
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _rows(data: Tensor, mask: Tensor) -> str:
    if data.ndim > 1:
        parts = [_indented(_rows(d, m)) for d, m in zip(data, mask)]
        return "[\n" + ",\n".join(parts) + "\n]"
    values, counts = data.tolist(), mask.tolist()
    texts = [_shown(v, True, 0) for v in values]
    width = max((len(t) if c else 8 for t, c in zip(texts, counts)), default=8)
    return "[" + ", ".join(t if c else "--".rjust(width) for t, c in zip(texts, counts)) + "]"


# -- functions -----------------------------------------------------------------------------------


def answer(func: Fn, args: Args, kwargs: Kwargs) -> Any:
    """What a function makes of arguments among which are masked tensors."""
    name = str(getattr(func, "__name__", ""))
    if not args and "input" in kwargs:
        args = (kwargs.pop("input"),)
    if name == "__get__":
        return both(func, args[0])
    if name in JOINED:
        parts, *rest = args or (kwargs.pop("tensors"),)
        masks = [p._masked_mask if is_masked_tensor(p) else p for p in parts]
        data, mask = func(list(map(data_of, parts)), *rest, **kwargs), func(masks, *rest, **kwargs)
        check(data, mask)
        return _made(data, mask)
    first = next(a for a in (*args, *kwargs.values()) if is_masked_tensor(a))
    if name == "backward":
        return func(*map(data_of, args), **kwargs)
    if name == "grad":
        return gradients(func, *args, **kwargs)
    if name in REDUCTIONS:
        return reduced(name, *args, **kwargs)
    if name in ("softmax", "log_softmax", "_softmax"):
        return softmax(name.strip("_"), *args, **kwargs)
    if name == "where":
        return where(func, *args, **kwargs)
    if name == "contiguous" and first._masked_data.is_contiguous():
        return first
    if name in BOTH:
        return both(lambda t: func(t, *args[1:], **kwargs), args[0])
    if name in DATA:
        return _made(func(first._masked_data, *args[1:], **kwargs), first._masked_mask)
    if name in ASKED:
        return func(first._masked_data, *args[1:], **kwargs)
    if name in ("to_dense", "to_sparse", "to_sparse_coo", "to_sparse_csr"):
        return layouts(name, first)
    if name in ("item", "tolist"):
        return func(first._masked_data)
    op = func.__globals__.get("op") or registry.get(name.rstrip("_"))
    if op is not None and op.kind == "pointwise" and name[:2] != "__":
        return pointwise(func, name, args, kwargs)
    if name in SPECIAL:
        return overrides.body_of(func)(*args, **kwargs)
    raise TypeError(
        f"no implementation found for 'torch.{name}' on types that implement __torch_function__: "
        "[MaskedTensor]"
    )


def data_of(value: Any) -> Any:
    """A masked tensor's data; of a list or a tuple, each one's; anything else as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(data_of, value))
    return value._masked_data if is_masked_tensor(value) else value


def gradients(func: Fn, outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """`torch.autograd.grad`: the gradient of a masked input has its mask."""
    found = func(data_of(outputs), data_of(inputs), *map(data_of, args), **kwargs)
    asked = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
    return tuple(
        _made(g, x._masked_mask) if is_masked_tensor(x) and g is not None else g
        for x, g in zip(asked, found)
    )


def both(function: Callable[[Tensor], Any], masked: MaskedTensor) -> Any:
    """A function of data and mask alike."""
    data, mask = function(masked._masked_data), function(masked._masked_mask)
    if isinstance(data, (tuple, list)):
        return type(data)(map(_made, data, mask))
    return _made(data, mask)


def pointwise(func: Fn, name: str, args: Args, kwargs: Kwargs) -> MaskedTensor:
    """An op of single elements; where there are two masks they must be one."""
    masked = [a for a in args if is_masked_tensor(a)]
    mask = masked[0]._masked_mask
    for other in masked[1:]:
        if not same_mask(other._masked_mask, mask):
            raise ValueError(
                "Input masks must match. If you need support for this, please open an issue on Github."
            )
    data = func(*map(data_of, args), **kwargs)
    if name.endswith("_"):
        return masked[0]
    return _made(data, mask if mask.shape == data.shape else mask.expand_as(data))


def same_mask(one: Tensor, other: Tensor) -> bool:
    """Whether two masks agree; those of sparse data, too."""
    if one is other:
        return True
    if one.layout is not torch.strided and one.layout is other.layout:
        one, other = one.to_dense(), other.to_dense()
    return one.shape == other.shape and torch.equal(one, other)


def reduced(
    name: str,
    input: MaskedTensor,
    dim: object = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> MaskedTensor:
    """Over what counts; where nothing does, the result is masked out."""
    data, mask = input._masked_data, input._masked_mask
    if dim is None and data.layout is not torch.strided:
        data, mask = data.values(), mask.values()
    options: dict[str, Any] = {} if name.startswith("arg") or dtype is None else {"dtype": dtype}
    if name == "all":
        full = data.masked_fill(~mask, True)
        found = full.all() if dim is None else full.all(dim, keepdim)
    elif dim is None:
        found = getattr(torch.masked, name)(data, mask=mask, **_order(name), **options)
    else:
        found = getattr(torch.masked, name)(
            data, **_order(name), dim=dim, keepdim=keepdim, mask=mask, **options
        )
    if dim is None:
        return _made(found, mask.any())
    return _made(found, mask.any(dim, keepdim) if isinstance(dim, int) else mask.amax(dim, keepdim))


def _order(name: str) -> dict[str, Any]:
    return {"ord": 2.0} if name == "norm" else {"unbiased": True} if name in ("var", "std") else {}


def softmax(
    name: str, input: MaskedTensor, dim: int, *more: object, **kwargs: object
) -> MaskedTensor:
    """Along a dimension, over what counts."""
    made = getattr(torch.masked, name)(input._masked_data, dim, mask=input._masked_mask)
    return _made(made, input._masked_mask)


def where(func: Fn, condition: Tensor, input: Any, other: Any) -> MaskedTensor:
    """Elements of one or the other, with their masks."""
    pair = [
        t if is_masked_tensor(t) else _made(t, torch.ones_like(t, dtype=torch.bool))
        for t in (input, other)
    ]
    data = func(condition, *(t._masked_data for t in pair))
    return _made(data, func(condition, *(t._masked_mask for t in pair)))


def layouts(name: str, input: MaskedTensor) -> MaskedTensor:
    """In another layout: sparse ones hold what counts."""
    if name == "to_dense":
        return both(lambda t: t.to_dense(), input)
    if name == "to_sparse_csr":
        mask = input._masked_mask.to_sparse_csr()
    else:
        mask = input._masked_mask.to_sparse().coalesce()
    return _made(input._masked_data.sparse_mask(mask), mask)
