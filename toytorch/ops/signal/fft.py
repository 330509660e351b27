"""Discrete Fourier transforms, X[k] = Σ x[j]·e^{-2πi·jk/n}, of complex, real and Hermitian signals.

Three records do all of them, as in PyTorch: complex to complex, real to (half of a) complex
spectrum, and back from half a spectrum to real. `normalization` is 0 for none, 1 for 1/√n and
2 for 1/n.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core.memory_order import copied, dense_strides, with_layout
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.core.write import refuse_grad
from toytorch.facts import dtype as types
from toytorch.facts.composed import operands
from toytorch.facts.hints import Array, ArrayModule, Shape, Sizes
from toytorch.facts.size import wrap_dim, wrap_dims
from toytorch.ops.creation.create import put_out
from toytorch.ops.define import general, public
from toytorch.ops.elementwise.arithmetic import conj_physical
from toytorch.ops.nn.pad import constant_pad_nd

NORMS = {True: ("backward", "ortho", "forward"), False: ("forward", "ortho", "backward")}


def _norm(normalization: int, forward: bool) -> str:
    """NumPy's name for a normalization (NumPy divides by n in the inverse by itself)."""
    return NORMS[forward][normalization]


def _c2c(xp: ArrayModule, a: Array, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    dims = wrap_dims(tuple(dim), a.ndim)
    if not dims:
        return copied(a)
    made, norm = a, _norm(normalization, forward)
    for d in reversed(dims):
        made = _along(xp, "fft" if forward else "ifft", made, a.shape[d], d, norm)
    return _laid(made, a, by_stride(a, dims))


def _along(xp: ArrayModule, way: str, a: Array, n: int, d: int, norm: str) -> Any:
    """A transform of n places along one dimension, by its name in `xp.fft`."""
    made = attempt(xp, "fourier", way, a, n, d, norm)
    return getattr(xp.fft, way)(a, n, d, norm) if made is None else made


def by_stride(a: Array, dims: Sequence[int]) -> list[int]:
    """Dimensions with the largest steps first."""
    return sorted(dims, key=lambda d: -a.strides[d]) if len(dims) > 1 else list(dims)


def _laid(made: Array, a: Array, dims: Sequence[int]) -> Any:
    """The result as PyTorch's library leaves it: what is transformed lies innermost."""
    if a.__class__ is not np.ndarray or made.ndim == 1:
        return made
    rest = by_stride(a, [d for d in range(a.ndim) if d not in dims])
    return with_layout(made, dense_strides(made.shape, [*rest, *dims], made.itemsize))


fft_c2c: Op = general(
    "_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
    _c2c,
    forms="function out",
    holomorphic=False,
    d_self=lambda g, dim, normalization, forward: fft_c2c.function(
        g, dim, normalization, not forward
    ),
    doc="The transform of a complex signal, or its inverse.",
)


def _r2c(xp: ArrayModule, a: Array, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    dims, norm = wrap_dims(tuple(dim), a.ndim), _norm(normalization, True)
    *rest, last = dims
    made = _along(xp, "rfft" if onesided else "fft", a, a.shape[last], last, norm)
    for d in reversed(rest):
        made = _along(xp, "fft", made, a.shape[d], d, norm)
    return _laid(made, a, [*by_stride(a, rest), last])


def _r2c_gradient(
    g: Tensor, self: Tensor, dim: Sequence[int], normalization: int, onesided: bool
) -> Any:
    # The adjoint of a transform without normalization is the inverse one without it; the half of
    # the spectrum that was left out had no influence, so zeros stand for it.
    if onesided:
        last = dim[-1]
        g = resized(g, (last,), (self.shape[last],))
    return fft_c2c.function(g, dim, normalization, False).real


fft_r2c = general(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    _r2c,
    forms="function out",
    holomorphic=False,
    d_self=_r2c_gradient,
    doc="The transform of a real signal, of which one half says all.",
)


def _c2r(
    xp: ArrayModule, a: Array, dim: Sequence[int], normalization: int, last_dim_size: int
) -> Any:
    *rest, last = wrap_dims(tuple(dim), a.ndim)
    made, norm = a, _norm(normalization, False)
    for d in rest:
        made = _along(xp, "ifft", made, a.shape[d], d, norm)
    made = _along(xp, "irfft", made, last_dim_size, last, norm)
    if rest:  # all but the last are transformed before
        a = _laid(xp.empty_like(a), a, by_stride(a, rest))
    return _laid(made, a, [last])


def _c2r_gradient(
    g: Tensor, self_shape: Sizes, dim: Sequence[int], normalization: int, last_dim_size: int
) -> Any:
    # All but the first (and, for even sizes, the middle) frequency stand for their mirror too.
    made = fft_r2c.function(g, dim, normalization, True)
    last = dim[-1]
    double = last_dim_size - self_shape[last]
    if double > 0:
        weight = g.new_ones(self_shape[last])
        weight[1 : 1 + double] = 2
        shape = [1] * made.ndim
        shape[last] = -1
        made = made * weight.reshape(shape)
    return made


fft_c2r = general(
    "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
    _c2r,
    forms="function out",
    holomorphic=False,
    d_self=_c2r_gradient,
    doc="The real signal of half a spectrum.",
)

# -- arguments ------------------------------------------------------------------------------------


def promoted(x: Tensor, need_complex: bool) -> Any:
    """The signal as floating-point (or complex) numbers."""
    (x,) = operands("float32", x)
    kind = x._dtype
    if kind.rank < 2:
        kind = types.get_default_dtype()
    if kind.itemsize == 2:
        raise RuntimeError(f"Unsupported dtype {kind.legacy}")
    if need_complex and not kind.is_complex:
        kind = kind.to_complex()
    return x if x._dtype is kind else x.to(kind)


def resized(x: Tensor, dims: Sequence[int], sizes: Shape) -> Any:
    """The signal cut off, or filled up with zeros, at the end of its dimensions."""
    pad = [0] * (2 * x.ndim)
    for d, n in zip(dims, sizes):
        now = x._array.shape[d]
        if n < now:
            x = x.narrow(d, 0, n)
        elif n > now:
            pad[2 * (x.ndim - d) - 1] = n - now
    return constant_pad_nd.function(x, pad, 0) if any(pad) else x


def normalization(norm: str | None, forward: bool) -> int:
    """0, 1 or 2 for "backward", "ortho" or "forward" of a transform in this direction."""
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    if norm == "ortho":
        return 1
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def one_dim(x: Tensor, n: int | None, dim: int) -> tuple[int, int]:
    """The dimension and the size of a transform along one dimension."""
    shape = x._array.shape
    d = wrap_dim(dim, len(shape), wrap_scalar=False)
    size = shape[d] if n is None else n
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return d, size


def many_dims(
    x: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, half: bool = False
) -> tuple[list[int], list[int]]:
    """The dimensions and the sizes of a transform along several."""
    if isinstance(dim, int):
        dim = (dim,)
    if isinstance(s, int):
        s = (s,)
    if dim is not None:
        if dim and not x.ndim:
            wrap_dim(dim[0], 0, wrap_scalar=False)  # which is refused
        wrapped = [d % x.ndim if -x.ndim <= d < x.ndim else wrap_dims(d, x.ndim)[0] for d in dim]
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dim):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        dims = wrapped
    elif s is not None:
        if len(s) > x.ndim:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions."
            )
        dims = list(range(x.ndim - len(s), x.ndim))
    else:
        dims = list(range(x.ndim))
    sizes = [x.shape[d] for d in dims]
    if s is not None:
        sizes = [now if n == -1 else n for now, n in zip(sizes, s)]
    if half and dims and (s is None or s[-1] == -1):
        sizes[-1] = 2 * (x.shape[dims[-1]] - 1)
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, sizes


# -- one dimension --------------------------------------------------------------------------------


def _c2c_one(x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    real = not x.dtype.is_complex
    x = promoted(x, not real)
    d, size = one_dim(x, n, dim)
    if real:
        made = fft_r2c.function(
            resized(x, (d,), (size,)), (d,), normalization(norm, forward), False
        )
        return made if forward else made.conj()
    return fft_c2c.function(resized(x, (d,), (size,)), (d,), normalization(norm, forward), forward)


def need_kind(out: Tensor | None, is_complex: bool, name: str) -> None:
    """Refuses an out= that is not complex, or not floating."""
    if out is not None and out.dtype.rank != 2 + is_complex:
        kind = "complex" if is_complex else "floating point"
        raise RuntimeError(f"{name} expects a {kind} output tensor, but got {out.dtype.legacy}")


def into(out: Tensor | None, made: Tensor, name: str) -> Tensor:
    """The result, in `out` if that is given: complex if the result is, else floating."""
    need_kind(out, made.dtype.is_complex, name)
    if out is not None:
        node = type(made._grad_edge).__name__
        if node.startswith("Conj"):  # of real numbers, whose conjugate PyTorch writes there
            return cast(Tensor, conj_physical.function(made.conj(), out=out))
        kind = "c2r" if not made.dtype.is_complex else "r2c" if "R2C" in node else "c2c"
        refuse_grad(f"_fft_{kind}", (made,), out)
    return put_out(made, out)


def _refuse_complex(x: Tensor, name: str) -> None:
    if x._dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype.legacy}")


def _r2c_one(name: str, x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    _refuse_complex(x, name)
    x = promoted(x, False)
    d, size = one_dim(x, n, dim)
    x = x if n is None else resized(x, (d,), (size,))
    made = fft_r2c.function(x, (d,), normalization(norm, forward), True)
    return made if forward else made.conj()


def _c2r_one(x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    x = promoted(x, True)
    d, _ = one_dim(x, None if n is None else max(n, 1), dim)
    size = 2 * (x.shape[d] - 1) if n is None else n
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    x = x if n is None else resized(x, (d,), (size // 2 + 1,))
    x = x.conj() if forward else x
    return fft_c2r.function(x, (d,), normalization(norm, forward), size)


def _along_one(name: str, transform: Any, doc: str, out_is_complex: bool) -> Any:
    """A transform along one dimension, of which an out= is looked at before all else, unless it and
    the input are complex."""

    def function(
        input: Tensor,
        n: int | None = None,
        dim: int = -1,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        if out is None:
            return transform(input, n, dim, norm)
        if not (out_is_complex and input.is_complex()):
            need_kind(out, out_is_complex, name)
        return into(out, transform(input, n, dim, norm), name)

    return public(f"fft.{name}", doc=doc)(function)


fft = _along_one(
    "fft",
    functools.partial(_c2c_one, forward=True),
    """Fourier transform along a dimension, cut off or filled with zeros to n places.

    >>> torch.fft.fft(torch.tensor([1., 0., 0., 0.])).real
    tensor([1., 1., 1., 1.])
    """,
    True,
)
ifft = _along_one(
    "ifft",
    functools.partial(_c2c_one, forward=False),
    "The inverse of `fft`, 1/n·Σ X[k]·e^{2πi·jk/n}.",
    True,
)
rfft = _along_one(
    "rfft",
    functools.partial(_r2c_one, "rfft", forward=True),
    """The first half, n//2 + 1 places, of the transform of a real signal.

    >>> torch.fft.rfft(torch.ones(4)).real
    tensor([4., 0., 0.])
    """,
    True,
)
irfft = _along_one(
    "irfft",
    functools.partial(_c2r_one, forward=False),
    "The inverse of `rfft`: the real signal of half a spectrum, of n = 2·(size - 1) places.",
    False,
)
hfft = _along_one(
    "hfft",
    functools.partial(_c2r_one, forward=True),
    "The real transform of a Hermitian signal, given by its first half.",
    False,
)
ihfft = _along_one(
    "ihfft",
    functools.partial(_r2c_one, "ihfft", forward=False),
    "The inverse of `hfft`: half of a Hermitian signal.",
    True,
)


# -- several dimensions ---------------------------------------------------------------------------


def _c2c_many(
    x: Tensor,
    s: tuple[int, ...] | None,
    dim: tuple[int, ...] | None,
    norm: str | None,
    forward: bool,
) -> Any:
    dims, sizes = many_dims(x, s, dim)
    x = promoted(x, True)
    return fft_c2c.function(resized(x, dims, sizes), dims, normalization(norm, forward), forward)


def _r2c_many(
    name: str, x: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Any:
    _refuse_complex(x, name)
    dims, sizes = many_dims(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = promoted(x, False)
    return fft_r2c.function(resized(x, dims, sizes), dims, normalization(norm, True), True)


def _half(name: str, x: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None) -> Any:
    dims, sizes = many_dims(x, s, dim, True)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = promoted(x, True)
    return resized(x, dims, [*sizes[:-1], sizes[-1] // 2 + 1]), dims, sizes[-1]


def _c2r_many(
    name: str, x: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Any:
    x, dims, last = _half(name, x, s, dim)
    return fft_c2r.function(x, dims, normalization(norm, False), last)


def _hfft_many(
    name: str, x: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Any:
    x, dims, last = _half(name, x, s, dim)
    way = normalization(norm, True)
    if len(dims) > 1:
        x = fft_c2c.function(x, dims[:-1], way, True)
    return fft_c2r.function(x.conj(), dims[-1:], way, last)


def _ihfft_many(
    name: str, x: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Any:
    dims, sizes = many_dims(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    way = normalization(norm, False)
    _refuse_complex(x, name)
    x = promoted(x, False)
    made = fft_r2c.function(resized(x, dims, sizes), dims[-1:], way, True).conj()
    return fft_c2c.function(made, dims[:-1], way, False) if len(dims) > 1 else made


def _family(name: str, transform: Any, doc: str) -> Any:
    """The forms for two and for any number of dimensions of one transform."""
    told = "fftn" if name == "ifft" else f"{name}n"

    def over_many(
        input: Tensor,
        s: tuple[int, ...] | None = None,
        dim: tuple[int, ...] | None = None,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        return into(out, transform(f"{name}n", input, s, dim, norm), told)

    def over_two(
        input: Tensor,
        s: tuple[int, ...] | None = None,
        dim: tuple[int, ...] = (-2, -1),
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        return into(out, transform(f"{name}2", input, s, dim, norm), told)

    for f, suffix, dims in ((over_many, "n", "several"), (over_two, "2", "two")):
        f.__name__ = f.__qualname__ = name + suffix
        f.__doc__ = f"{doc} over {dims} dimensions."
        public(f"fft.{name}{suffix}")(f)
    return over_two, over_many


fft2, fftn = _family(
    "fft", lambda name, x, s, dim, norm: _c2c_many(x, s, dim, norm, True), "Fourier transform"
)
ifft2, ifftn = _family(
    "ifft",
    lambda name, x, s, dim, norm: _c2c_many(x, s, dim, norm, False),
    "Inverse Fourier transform",
)
rfft2, rfftn = _family("rfft", _r2c_many, "Transform of a real signal, half in the last dimension,")
irfft2, irfftn = _family("irfft", _c2r_many, "Real signal of half a spectrum")
hfft2, hfftn = _family("hfft", _hfft_many, "Real transform of a Hermitian signal")
ihfft2, ihfftn = _family("ihfft", _ihfft_many, "Half of a Hermitian signal from its real transform")
