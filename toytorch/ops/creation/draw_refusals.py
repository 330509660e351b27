"""The types that kernels of random numbers take, and how they refuse the others.

A kernel is called by the name that PyTorch's message gives it.
"""

from __future__ import annotations

import functools

import numpy as np

from toytorch.core.write import c_name
from toytorch.facts import dtype as types

WIDE = frozenset({"float32", "float64"})
REAL = WIDE | {"float16", "bfloat16"}
COMPLEX = frozenset({"complex32", "complex64", "complex128"})
WHOLE = frozenset({"uint8", "int8", "int16", "int32", "int64"})
NARROWER = {"bool", "uint16", "uint32", "uint64"} | WHOLE | COMPLEX  # no floats
TAKEN = {
    "random_kernel_cpu": REAL | WHOLE | {"bool"},
    "random_from_to": REAL | WHOLE | {"bool", "uint16", "uint32", "uint64"},
    "bernoulli_scalar_cpu_": REAL | WHOLE | {"bool"},
    "bernoulli_tensor_cpu_self_": REAL | WHOLE | {"bool"}, "bernoulli_tensor_cpu_p_": REAL,
    "geometric_cpu": REAL | WHOLE, "randperm": REAL | WHOLE, "check_uniform_bounds": REAL | COMPLEX,
    "normal_kernel_cpu": REAL | COMPLEX, "log_normal_cpu": REAL, "exponential_cpu": REAL,
    "cauchy_cpu": REAL, "poisson_cpu": REAL, "binomial_cpu": WIDE, "gamma_cpu": WIDE,
    "dirichlet": WIDE, "rrelu_with_noise_out_cpu": WIDE | {"bfloat16"},
}  # fmt: skip


@functools.lru_cache(256)
def refuse(kernel: str, kind: np.dtype[np.generic]) -> None:
    """Raises PyTorch's error where the kernel does not know the type.

    >>> refuse("poisson_cpu", np.dtype("int64"))
    Traceback (most recent call last):
    NotImplementedError: "poisson_cpu" not implemented for 'Long'
    """
    if kind.name not in TAKEN[kernel]:
        legacy = types.from_numpy_dtype(kind).legacy
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{legacy}'")


@functools.lru_cache(256)
def refuse_steps(distribution: str, type: np.dtype[np.generic]) -> None:
    """Refuses to fill what is no float with numbers of a continuous distribution."""
    if type.name in NARROWER:
        kind = types.from_numpy_dtype(type)
        said = c_name(kind) if distribution == "Cauchy" else kind.legacy
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be "
            f"a floating point but you specified {said}"
        )
    refuse(f"{distribution.lower()}_cpu", type)
