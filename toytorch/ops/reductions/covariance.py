"""Covariance and correlation of observations."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.ops.define import public
from toytorch.ops.elementwise.complex_numbers import complex


def _weights(values: Tensor, name: str, count: int, kind: str) -> None:
    if values.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got "
            f"{name} with {values.ndim} dimensions"
        )
    floating = values.dtype.is_floating_point
    if not (values.dtype.kind in "iu" if kind == "integral" else floating):
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with "
            f"{values.dtype.legacy} dtype"
        )
    if values.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are "
            f"observations in the input but got {values.numel()} != {count}"
        )
    if values.numel() and not values.is_meta and not bool((values >= 0).all()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


def _need_table(name: str, x: Tensor) -> None:
    if x.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with "
            f"{x.ndim} dimensions"
        )


@public("cov", method=True)
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariances of variables (rows) over observations (columns).

    fweights counts how often an observation was seen, aweights says how much it matters.

    >>> torch.cov(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x: Any = input
    _need_table("cov", x)
    if x.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = x.reshape(1, -1) if x.ndim < 2 else x
    n = x.shape[1]
    w: Any = None
    if fweights is not None:
        _weights(fweights, "fweights", n, "integral")
        w = fweights
    if aweights is not None:
        _weights(aweights, "aweights", n, "floating point")
        w = aweights if w is None else w * aweights
    if w is not None and float(w.sum()) == 0:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    total: Any = n if w is None else w.sum()
    mean = (x.sum(1, True) if w is None else (x * w).sum(1, True)) / total
    if w is None:
        degrees: Any = n - correction
    elif correction != 0 and aweights is not None:
        degrees = total - correction * (w * aweights).sum() / total
    else:
        degrees = total - correction
    if float(degrees) <= 0:
        warned.at_call(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than "
            "the number of observations."
        )
        degrees = 0 if isinstance(degrees, int) else degrees.clamp(min=0)
    centred = x - mean
    other = centred if w is None else centred * w
    made = centred @ other.mH
    made = made / degrees if not isinstance(degrees, int) or degrees else made / made.new_zeros(())
    return made.squeeze()


@public("corrcoef", method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Correlations of variables (rows): the covariance over both standard deviations.

    >>> torch.corrcoef(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _need_table("corrcoef", input)
    c: Any = cov(input)
    if c.ndim == 0:
        return c / c
    d = c.diag()
    d = (d.real if d.dtype.is_complex else d).sqrt()
    c = c / d.reshape(-1, 1) / d.reshape(1, -1)
    if c.dtype.is_complex:
        return complex(c.real.clip(-1, 1), c.imag.clip(-1, 1))
    return c.clip(-1, 1)
