"""toytorch: PyTorch rebuilt in Python, for reading and for use.

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
from toytorch.facts import dtype as _dtype
from toytorch.facts.device import *
from toytorch.facts.dtype import *
from toytorch.core.op import registry as _registry
from toytorch.core.printing import get_printoptions, printoptions, set_printoptions
from toytorch.core.random import *
from toytorch.facts.package import NAMES as _NAMES
from toytorch.facts.package import findable as _findable
from toytorch.facts.size import Size
from toytorch.core import subclasses as _subclasses
from toytorch.core.storages import LEGACY, TypedStorage, UntypedStorage
from toytorch.core.tensor import Tensor
from toytorch.core.tensor import finish as _finish

from toytorch.ops.define import PUBLIC as _PUBLIC
from toytorch import version
from toytorch.torch_version import __version__

__path__.append(f"{__path__[0]}/compat")  # modules that only other libraries ask for

pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
int, float, bool = _dtype.int, _dtype.float, _dtype.bool
Tensor.__module__ = "torch"
_finish()

PACKAGES = ("linalg_", "fft_", "special_")  # records of these names are functions there

# Every op record is a function of the package, unless a function below chooses between records.
for _name, _op in _registry.items():
    if _op.has_function and "." not in _name and not _name.startswith(PACKAGES):
        globals()[_name] = _op.function
globals().update({_name: _f for _name, _f in _PUBLIC.items() if "." not in _name})
from toytorch.ops.creation.asarray import asarray
from toytorch.ops.creation.from_data import *
from toytorch.ops.creation.create import *
from toytorch.ops.creation.dlpack import from_dlpack, to_dlpack
from toytorch.ops.creation.random import rand, randint, randn, randperm

for _name, _op in _registry.items():
    if _op.kind == "pointwise" and _op.has_inplace and len(_op.tensor_at) == 1:
        globals()[_name + "_"] = getattr(Tensor, _name + "_")  # relu_ and the like

from toytorch.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from toytorch import amp, autograd, random
from toytorch.random import thread_safe_generator
from toytorch.amp import (
    autocast,
    clear_autocast_cache,
    get_autocast_dtype,
    GradScaler,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from toytorch.amp.older import (
    get_autocast_cpu_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cpu_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_gpu_dtype,
)
from toytorch.autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from toytorch.settings import *

_findable(globals(), __name__)


def _legacy(kind: _dtype.dtype) -> Any:
    class Legacy(type):
        def __new__(cls, name: str, bases: tuple[Any, ...], space: dict[str, Any]) -> Any:
            if bases:
                raise TypeError(f"type 'torch.{bases[0].__name__}' is not an acceptable base type")
            return super().__new__(cls, name, bases, space)

        def __instancecheck__(cls, value: Any) -> Any:
            return isinstance(value, Tensor) and value.dtype is kind

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            from toytorch.core.older_constructor import make_legacy  # when it is asked for

            return make_legacy(Tensor, *args, type=kind, **kwargs)

    return Legacy(f"{kind.legacy}Tensor", (), {"dtype": kind, "__module__": "torch"})


for _kind in _dtype.ALL:
    globals()[f"{_kind.legacy}Tensor"] = _legacy(_kind)
globals().update({_class.__name__: _class for _class in LEGACY})
Storage = globals()["FloatStorage"]


def typename(obj: Any) -> str:
    """The legacy name of a tensor's type, or the qualified name of a class or of an object's class."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    module = getattr(named, "__module__", "") or ""
    name = getattr(named, "__qualname__", None) or named.__name__
    return str(name) if module in ("", "builtins") else f"{module}.{name}"


def _overrides() -> None:
    importlib.import_module("toytorch.overrides").arm()


def _dispatched() -> object:
    return importlib.import_module("toytorch.utils.dispatched").Classes()


_subclasses.appeared = _overrides
_subclasses.answering = _dispatched

# Modules, and which of their names are imported when first named: a program that only adds tensors
# waits for none of them.
_LATER = """
_C: AnyType BoolType ComplexType DeviceObjType FloatType IntType NoneType NumberType StorageBase \
    StringType TensorType Type
_lobpcg: lobpcg
accelerator: get_device_module
compat._checks: _assert_async _check _check_index _check_is_size _check_not_implemented \
    _check_tensor_all _check_tensor_all_with _check_type _check_value _check_with is_storage
compat._names: alpha_dropout_ autocast_decrement_nesting autocast_increment_nesting \
    ccol_indices_copy col_indices_copy cond crow_indices_copy dequantize eig feature_alpha_dropout_ \
    feature_dropout_ has_lapack has_mkl has_openmp has_spectral indices_copy init_num_threads \
    legacy_contiguous_format lstsq matrix_rank native_channel_shuffle row_indices_copy \
    set_anomaly_enabled solve symeig values_copy while_loop
compat._native_attention: _masked_softmax _native_multi_head_attention \
    _transform_bias_rescale_qkv
compat._streams: Event Stream
core.subclasses: DisableTorchFunction DisableTorchFunctionSubclass
facts.trace: AcceleratorError OutOfMemoryError
func: vmap
futures: Future
jit: ScriptFunction ScriptModule compile fork wait
nn.c_forms: adaptive_max_pool1d addmv_ binary_cross_entropy_with_logits cosine_embedding_loss \
    ctc_loss frobenius_norm hinge_embedding_loss is_distributed is_vulkan_available kl_div \
    margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d max_pool3d nuclear_norm \
    poisson_nll_loss triplet_margin_loss
nn.functional: avg_pool1d
nn.rnn_forms: gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
nn.utils.weight_norm: norm_except_dim
ops.creation.sobol: _sobol_engine_draw _sobol_engine_ff_ _sobol_engine_initialize_state_ \
    _sobol_engine_scramble_
ops.sparse.compressed_create: sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor \
    sparse_csc_tensor sparse_csr_tensor
ops.sparse.older: hsmm hspmm native_norm smm sspaddmm
serialization: load save
symbolic: SymBool SymFloat SymInt sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt \
    sym_sum
"""
LATER = {
    name: line.partition(":")[0]
    for line in _LATER.splitlines()
    for name in line.partition(":")[2].split()
}
LATER_PACKAGES = (
    "__config__ __future__ _C _VF _dynamo _functorch _jit_internal _lobpcg _logging _ops _tensor "
    "_tensor_str _utils _vmap_internals accelerator compiler cpu cuda distributed distributions "
    "fft func functional futures fx hub jit library linalg masked mps multiprocessing nested nn "
    "optim overrides profiler quasirandom return_types serialization signal sparse special storage "
    "testing trainer types utils vision viz xpu"
).split()
# Names alone, in compat/_absent.py.
ABSENT = ("_inductor", "onnx", "PyTorchFileReader", "PyTorchFileWriter")
LACKING = {  # what PyTorch has and toytorch has not, and what to do instead
    "ao": "quantization; torch.autocast computes in half precision",
    "export": "export of programs; torch.jit.trace and torch.jit.script make graphs",
    "monitor": "counters of events; torch.profiler tells where time goes",
    "mtia": "devices but CPUs and CUDA's",
    "onnx": "export to ONNX; torch.jit.save keeps a compiled module with its weights",
    "package": "archives of code and models; torch.jit.save keeps a compiled module with its weights",
    "quantization": "quantization; torch.autocast computes in half precision",
}


def _assert(condition: object, message: object) -> Any:
    """`assert` as a function, of which an object that writes down what is done to it may be told."""
    if hasattr(type(condition), "__torch_function__") and not isinstance(condition, Tensor):
        asking = importlib.import_module("toytorch.overrides")
        return asking.handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message


_assert.__dict__["asserts"] = True  # compiled code says of it what it says of `assert`


def __getattr__(name: str) -> Any:
    """Finds what is imported when first named."""
    if name in LATER_PACKAGES:
        return importlib.import_module(f"toytorch.{name}")
    if name in LATER:
        found = getattr(importlib.import_module(f"toytorch.{LATER[name]}"), name)
        globals()[name] = found
        return found
    if name in ABSENT and "torch" in _NAMES:  # programs that say `import torch`
        absent = importlib.import_module("toytorch.compat._absent")
        is_module = name == "onnx"
        return absent.module_of(f"torch.{name}") if is_module else absent.attribute("torch", name)
    if name in LACKING:
        raise AttributeError(
            f"module 'torch' has no attribute '{name}': toytorch {version.own} "
            f"has no {LACKING[name]}"
        )
    lacks = importlib.import_module("toytorch.compat._names").lacks(name) if name[0] != "_" else ""
    said = f": toytorch {version.own} has no {lacks}" if lacks else f" (toytorch {version.own})"
    raise AttributeError(f"module 'torch' has no attribute '{name}'{said}")


def __dir__() -> list[str]:
    return sorted({*globals(), *LATER, *LATER_PACKAGES})
