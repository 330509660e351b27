"""Questions about tensors and types: whether all is close, what type two operands meet in."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from toytorch.backends.generic import every
from toytorch.core.arguments import TAKES
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import state, warned
from toytorch.facts.composed import called
from toytorch.facts.schema import wrong_argument
from toytorch.ops.creation import create
from toytorch.ops.define import on_tensors, public
from toytorch.ops.elementwise import compare


@public("allclose", method=True, reads="elements")
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: builtins.bool = False,
) -> builtins.bool:
    """Whether all |input - other| ≤ atol + rtol·|other|."""
    return builtins.bool(compare.isclose.function(input, other, rtol, atol, equal_nan).all())


@public("equal", method=True, reads="elements")
def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether shape and all elements are the same."""
    if not isinstance(other, Tensor):
        raise wrong_argument("equal", "other", 2, "Tensor", other)
    a, b = input._array, other._array
    watched = state.fast_path is not None and state.local.modes
    plain = a.__class__ is b.__class__ is np.ndarray and not watched
    if plain and a.shape == b.shape and input._dtype is other._dtype and not input._dtype.extended:
        return every(a == b)
    return input.shape == other.shape and builtins.bool(input.eq(other).all())


@public("is_nonzero", method=True, reads="elements")
def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the one element is not zero."""
    return builtins.bool(input)


@public("is_same_size", method=True)
def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether shapes are the same."""
    return input.shape == other.shape


@public("isreal", method=True)
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is zero."""
    return input.imag == 0 if input.dtype.is_complex else create.ones_like(input, dtype=types.bool)


# The operands in each of PyTorch's forms of `result_type`: their names, with their types.
OPERANDS = (
    {"tensor": "Tensor", "other": "Operand"}, {"tensor": "Tensor", "x2": "Operand"},
    {"scalar": "Scalar", "tensor": "Tensor"}, {"scalar1": "Scalar", "scalar2": "Scalar"},
)  # fmt: skip


@public("result_type", tensor_first=False)
def result_type(*operands: Any, **named: Any) -> types.dtype:
    """The type in which two operands meet, tensors or numbers.

    >>> result_type(torch.tensor([1]), 1.0), result_type(scalar=1.5, tensor=torch.tensor([1]))
    (torch.float32, torch.float32)
    """
    given = list(operands)
    for kinds in OPERANDS if named else ():
        words = [*kinds][len(given) :]
        values = given + [named.get(w) for w in words]
        if named.keys() == {*words} and all(TAKES[k](v) for k, v in zip(kinds.values(), values)):
            given, named = values, {}
            break
    if named or len(given) != 2 or not all(map(TAKES["Operand"], given)):
        got = ", ".join(
            [type(v).__name__ for v in given] + [f"{k}={v!r}" for k, v in named.items()]
        )
        raise TypeError(
            f"result_type() received an invalid combination of arguments - got ({got}), but "
            "expected one of:\n * (Tensor tensor, Tensor other)\n * (Number scalar, Tensor tensor)\n"
            " * (Tensor tensor, Number other)\n * (Number scalar1, Number scalar2)\n"
        )
    ranks: list[list[types.dtype]] = [[], [], []]
    for v in given:
        if isinstance(v, Tensor):
            ranks[0 if v.ndim else 1].append(v.dtype)
        else:
            ranks[2].append(types.of_scalar(v))
    return types.promote(*(tuple(r) for r in ranks))


@public("can_cast", tensor_first=False)
def can_cast(from_: types.dtype, to: types.dtype) -> builtins.bool:
    """Whether PyTorch's rules let a result of one type be written into another.

    >>> torch.can_cast(torch.float64, torch.int64), torch.can_cast(torch.float64, torch.float32)
    (False, True)
    """
    return from_.rank <= to.rank


@public("is_tensor", tensor_first=False)
def is_tensor(obj: Any) -> builtins.bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


@public("is_floating_point")
def is_floating_point(input: Tensor) -> builtins.bool:
    """Whether elements are real floating-point numbers."""
    return input.dtype.is_floating_point


@public("is_complex")
def is_complex(input: Tensor) -> builtins.bool:
    """Whether elements are complex."""
    return input.dtype.is_complex


@public("numel")
def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


@public("is_signed")
def is_signed(input: Tensor) -> builtins.bool:
    """Whether the type has negative numbers."""
    return np.dtype(input.dtype.numpy).kind not in "bu"


@public("is_conj", "is_neg", method=True)
def is_conj(input: Tensor) -> builtins.bool:
    """Whether a conjugate (or negative) is still to be computed: never, here."""
    return False


on_tensors(is_neg=is_conj)


@public("is_inference")
def is_inference(input: Tensor) -> builtins.bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


@public("get_device")
def get_device(input: Tensor) -> int:
    """The number of the tensor's GPU; -1 for the CPU."""
    return input.get_device()


# -- methods that few programs call -----------------------------------------------------------------


def _module_load(self: Tensor, other: Tensor, assign: builtins.bool = False) -> Any:
    """What `load_state_dict` puts in the place of this tensor: a copy for it, or the other itself."""
    return other.detach() if assign else self.detach().copy_(other)


def _resized(self: Tensor, *sizes: Any) -> Any:
    """The older form of `view`, of as many elements."""
    warned.at_call("non-inplace resize is deprecated")
    return self.contiguous().view(*sizes)


def _resized_as(self: Tensor, tensor: Tensor) -> Any:
    """The older form of `view_as`."""
    warned.at_call("non-inplace resize_as is deprecated")
    return self.contiguous().view(tensor.shape)


def _reinforce(self: Tensor, reward: object) -> None:
    """Removed from PyTorch."""
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead.")


def _not_here(name: str, why: str) -> Any:
    def refuse(self: Tensor, *args: object, **kwargs: object) -> Any:
        raise NotImplementedError(f"Tensor.{name}: {why}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Says that there are {why}."
    refuse.__dict__["lacks"] = (
        why  # by which programs can tell it from a method that does something
    )
    return refuse


def _gone(name: str, instead: str) -> Any:
    def refuse(self: Tensor, *args: object, **kwargs: object) -> Any:
        raise RuntimeError(
            "This function was deprecated since version 1.9 and is now removed. "
            f"`torch.Tensor.{name}` is deprecated in favor of `{instead}`."
        )

    return called(name, f"Removed from PyTorch: `{instead}` does it.", refuse)


QUANTIZED = "int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point"
METHODS: dict[str, Any] = {
    "module_load": _module_load,
    "resize": _resized,
    "resize_as": _resized_as,
    "reinforce": _reinforce,
    "const_data_ptr": Tensor.data_ptr,
    "dequantize": lambda self: self.float(),
    "to_padded_tensor": _not_here("to_padded_tensor", "no parts in a tensor that is not nested"),
    "to_mkldnn": _not_here("to_mkldnn", "no tensors of oneDNN in toytorch"),
    **{
        n: _not_here(n, "no devices but CPUs and CUDA's in toytorch")
        for n in ("xpu", "ipu", "mtia")
    },
    **{n: _not_here(n, "no quantized tensors in toytorch") for n in QUANTIZED.split()},
    "eig": _gone("eig", "torch.linalg.eig"),
    "lstsq": _gone("lstsq", "torch.linalg.lstsq"),
    "solve": _gone("solve", "torch.linalg.solve"),
    "symeig": _gone("symeig", "torch.linalg.eigh"),
}
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
