"""One call for many tensors: `torch._foreach_add_(parameters, gradients, alpha=-0.1)` and the like.

The list in the name is all that they add: each tensor goes through the ordinary function. The other
operand is one number, or a list with one number or tensor for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.composed import called
from toytorch.facts.hints import DType, Fn
from toytorch.facts.schema import wrong_argument
from toytorch.ops.define import PUBLIC

ONE = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
TWO = ("add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow")
NAMES = {"maximum": "clamp_min", "minimum": "clamp_max"}  # of the methods that take numbers too


def each(name: str, value: Any, count: int) -> list[Any]:
    """The operand for each of `count` tensors."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise RuntimeError(
            f"Tensor lists must have the same number of tensors, got {count} and {len(value)}"
        )
    return list(value)


def lists(name: str, self: Sequence[Tensor]) -> int:
    """How many tensors there are; PyTorch refuses none."""
    if not isinstance(self, (list, tuple)) or not all(isinstance(t, Tensor) for t in self):
        raise wrong_argument(name, "self", 1, "tuple of Tensors", self)
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return len(self)


def make(name: str, method: str, operands: int) -> Fn:
    """The function over lists for a method with some operands."""

    def function(self: Sequence[Tensor], *args: object, **kwargs: object) -> Any:
        count = lists(name, self)
        rows = [each(name, a, count) for a in args[:operands]]
        rest = {} if len(args) <= operands else {"value": args[operands]}
        found = (
            getattr(t, method)(
                *(row[i] for row in rows),
                **{k: each(name, v, count)[i] for k, v in {**rest, **kwargs}.items()},
            )
            for i, t in enumerate(self)
        )
        return list(found) if name.endswith("_") else tuple(found)

    return called(name, f"`Tensor.{method}` for every tensor of a list.", function)


def norm(self: Sequence[Tensor], ord: int = 2, dtype: DType | None = None) -> tuple[Tensor, ...]:
    """The norm of every tensor of a list."""
    lists("_foreach_norm", self)
    found = PUBLIC["linalg.norm"]
    return tuple(found(t.flatten(), ord, dtype=dtype) for t in self)


def powsum(
    self: Sequence[Tensor], ord: float = 2, dtype: DType | None = None
) -> tuple[Tensor, ...]:
    """Σ |x|^ord of every tensor of a list: its norm before the root."""
    lists("_foreach_powsum", self)
    return tuple(t.to(dtype or t.dtype).abs().pow(ord).sum() for t in self)


def zero_(self: Sequence[Tensor]) -> list[Tensor]:
    """Zeros in every tensor of a list."""
    lists("_foreach_zero_", self)
    return [t.zero_() for t in self]


def copy_(
    self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False
) -> list[Tensor]:
    """Writes the tensors of another list."""
    return [
        t.copy_(new)
        for t, new in zip(self, each("_foreach_copy_", src, lists("_foreach_copy_", self)))
    ]


COUNTS = {**dict.fromkeys(ONE, 0), **dict.fromkeys(TWO, 1), "lerp": 2, "addcmul": 2, "addcdiv": 2}
for _method, _count in COUNTS.items():
    for _tail in ("", "_"):
        _name = f"_foreach_{_method}{_tail}"
        PUBLIC[_name] = make(_name, NAMES.get(_method, _method) + _tail, _count)
for _method, _count in {"max": 0, "clone": 0, "mm": 1}.items():  # which have no form in place
    PUBLIC[f"_foreach_{_method}"] = make(f"_foreach_{_method}", _method, _count)
PUBLIC.update(
    _foreach_norm=norm, _foreach_powsum=powsum, _foreach_zero_=zero_, _foreach_copy_=copy_
)
