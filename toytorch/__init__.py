"""toytorch: PyTorch rebuilt in Python, for reading and for use.

    >>> import toytorch as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> (x ** 2).sum().backward()
    >>> x.grad
    tensor([2., 4.])
"""

from __future__ import annotations

import importlib
import math
from typing import Any

from toytorch import backends, ops
from toytorch.backends import threads as _threads
from toytorch.core import dtype as _dtype
from toytorch.core.device import (channels_last, channels_last_3d, contiguous_format, device,
                                  layout, memory_format, preserve_format, sparse_coo, strided)
from toytorch.core.dtype import (bfloat16, cdouble, cfloat, complex64, complex128, double, dtype,
                                 finfo, float16, float32, float64, get_default_dtype, half, iinfo,
                                 int8, int16, int32, int64, long, promote_types, set_default_dtype,
                                 short, uint8)
from toytorch.core.op import registry as _registry
from toytorch.core.printing import get_printoptions, printoptions, set_printoptions
from toytorch.core.random import (Generator, default_generator, get_rng_state, initial_seed,
                                  manual_seed, seed, set_rng_state)
from toytorch.core.size import Size
from toytorch.core.storage import TypedStorage, UntypedStorage
from toytorch.core.tensor import Tensor

from toytorch.ops.define import PUBLIC as _PUBLIC
from toytorch.version import __version__

pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
int, float, bool = _dtype.int, _dtype.float, _dtype.bool
Tensor.__module__ = "torch"

PACKAGES = ("linalg_", "fft_", "special_")  # records of these names are functions there

# Every op record is a function of the package, unless a function below chooses between records.
for _name, _op in _registry.items():
    if _op.has_function and "." not in _name and not _name.startswith(PACKAGES):
        globals()[_name] = _op.function
globals().update({_name: _f for _name, _f in _PUBLIC.items() if "." not in _name})

from toytorch.ops.create import (as_tensor, asarray, empty, empty_strided, eye, from_numpy, full,
                                 get_default_device, ones, scalar_tensor, set_default_device,
                                 tensor, zeros)
from toytorch.ops.random import rand, randint, randn, randperm

for _name, _op in _registry.items():
    if _op.kind == "pointwise" and _op.has_inplace and len(_op.tensor_at) == 1:
        globals()[_name + "_"] = getattr(Tensor, _name + "_")  # relu_ and the like

from toytorch.autograd import (enable_grad, inference_mode, is_grad_enabled,
                               is_inference_mode_enabled, no_grad, set_grad_enabled)
from toytorch import (autograd, cuda, fft, func, linalg, masked, nn, optim, signal, sparse,
                      special, utils)
from toytorch import serialization
from toytorch import jit
from toytorch.jit import compile
from toytorch.serialization import load, save
from toytorch.utils.dlpack import from_dlpack, to_dlpack


def _legacy(kind: _dtype.dtype) -> Any:
    class Legacy(type):
        def __instancecheck__(cls, value: Any) -> Any:
            return isinstance(value, Tensor) and value.dtype is kind

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            from toytorch.core.tensor import make_legacy
            return make_legacy(Tensor, *args, type=kind, **kwargs)
    return Legacy(f"{kind.legacy}Tensor", (), {"dtype": kind, "__module__": "torch"})


for _kind in _dtype.ALL:
    globals()[f"{_kind.legacy}Tensor"] = _legacy(_kind)


def typename(obj: Any) -> str:
    """The legacy name of a tensor's type, or the qualified name of another object's class."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    cls = type(obj)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def get_num_threads() -> Any:
    """How many threads matrix products use."""
    return _threads.of_blas()


def set_num_threads(count: Any) -> None:
    """Sets how many threads matrix products use."""
    import builtins
    if not isinstance(count, builtins.int):
        raise TypeError(f"set_num_threads expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _threads.set_for_blas(count)


def __getattr__(name: str) -> Any:
    """Packages that are seldom needed are imported when first named."""
    if name in ("viz", "profiler", "vision", "trainer"):
        return importlib.import_module(f"toytorch.{name}")
    raise AttributeError(f"module 'torch' has no attribute '{name}' (toytorch {__version__})")
