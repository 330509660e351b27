"""Names of PyTorch's compiled part that programs and libraries use, over what this package has.

`isinstance(x, torch._C.TensorBase)`, `torch._C._get_privateuse1_backend_name()` and the like. A name
that is not here raises AttributeError: there is nothing behind it.
"""

from __future__ import annotations

import enum
import types as _python
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

from toytorch.amp.casting import is_autocast_enabled, set_autocast_enabled
from toytorch.autograd.forward_ad import Level
from toytorch.autograd.graph import AccumulateGrad
from toytorch.autograd.modes import is_grad_enabled, is_inference_mode_enabled
from toytorch.autograd.vmap import Batch
from toytorch.core.barriers import DelayedError, UndefinedGrad
from toytorch.core.random import Generator
from toytorch.core.storages import UntypedStorage
from toytorch.core.subclasses import (
    DisableTorchDispatch as _DisableTorchDispatch,  # handlers name it
)
from toytorch.core.subclasses import DisableTorchFunction, DisableTorchFunctionSubclass, asking
from toytorch.core.subclasses import (
    disabled_torch_dispatch_impl as _disabled_torch_dispatch_impl,  # classes name it
)
from toytorch.core.subclasses import (
    disabled_torch_function_impl as _disabled_torch_function_impl,  # classes name it
)
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.device import device, layout, memory_format
from toytorch.facts.dtype import dtype
from toytorch.facts.saved import SavedTensor
from toytorch.facts.size import Size
from toytorch.jit import types
from toytorch.jit.freeze import frozen_module
from toytorch.jit.function import ScriptFunction
from toytorch.jit.ir import Graph, Node, Pass, Value
from toytorch.jit.module import Inside, ScriptModule
from toytorch.jit.passes.batch_mm import batch_matrix_products
from toytorch.jit.passes.constant import propagate_constants
from toytorch.jit.passes.cse import eliminate_common_subexpressions
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.passes.folding import remove_dropout
from toytorch.jit.passes.inline import inline
from toytorch.jit.passes.peephole import peephole
from toytorch.jit.passes.unroll import unroll
from toytorch.jit.tracer import running
from toytorch.ops.creation.create import get_default_device

has_lapack = True
has_mkl = has_openmp = has_cuda = has_mps = has_xpu = False
has_mkldnn = _has_mkldnn = has_spectral = False


class _Face(type):
    """The class of what other classes are instances of, and nothing can be made of."""

    kinds: tuple[type, ...]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.kinds)

    def __subclasscheck__(cls, kind: type) -> bool:
        return type.__subclasscheck__(cls, kind) or issubclass(kind, cls.kinds)


class TensorBase(metaclass=_Face):
    """The class below Tensor, in PyTorch: every tensor is an instance of it."""

    kinds = (Tensor,)

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        raise RuntimeError("Cannot create a TensorBase directly: make a Tensor")

    def __init_subclass__(cls) -> None:
        raise RuntimeError("Cannot subclass _TensorBase directly")


_TensorBase = TensorBase
_TensorMeta = type(Tensor)


class _StorageFace(type):
    def __instancecheck__(cls, value: object) -> bool:
        own: bool = type.__instancecheck__(cls, value)
        return own or (cls is StorageBase and isinstance(value, UntypedStorage))

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is StorageBase:
            raise RuntimeError(
                "Cannot directly construct StorageBase; subclass it and then construct that"
            )
        return super().__call__(*args, **kwargs)


class StorageBase(UntypedStorage, metaclass=_StorageFace):
    """The class below UntypedStorage, in PyTorch: every storage is an instance of it."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args if args and isinstance(args[0], int) else ())


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self._ref = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._ref() is None


def _warn() -> None:
    """Warns, for tests of warnings."""
    warnings.warn("Test message for TORCH_WARN", UserWarning, stacklevel=2)


def _warn_deprecation() -> None:
    """Warns, for tests of warnings."""
    warnings.warn("Test message for TORCH_WARN_DEPRECATION", DeprecationWarning, stacklevel=2)


def _get_privateuse1_backend_name() -> str:
    """What a further kind of device, which is not there, would be called."""
    return "privateuseone"


def _get_tracing_state() -> Any:
    """What writes the thread's calls down; None where nothing does."""
    return running()


def _log_api_usage_once(event: str) -> None:
    """Tells nobody."""


def _is_torch_function_mode_enabled() -> bool:
    """Whether a TorchFunctionMode is in force."""
    return bool(asking.modes)


def _are_functorch_transforms_active() -> bool:
    """Whether `vmap` runs, or a derivative forward."""
    return any(isinstance(mode, (Batch, Level)) for mode in state.local.modes)


class DispatchKey(enum.IntEnum):
    """What PyTorch chooses a kernel by, as far as libraries name it; the numbers mean nothing."""

    Autograd, AutocastCPU, AutocastMPS, AutocastXPU, AutocastHPU, AutocastCUDA = range(6)
    CPU, CUDA, Meta = range(6, 9)


class DispatchKeySet:
    """Several keys."""

    def __init__(self, key: DispatchKey | frozenset[DispatchKey]) -> None:
        self.keys = key if isinstance(key, frozenset) else frozenset((key,))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys | other.keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether a key is one of them."""
        return key in self.keys

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(k.name for k in sorted(self.keys))})"


class _ExcludeDispatchKeyGuard:
    """A context without what some keys stand for: casting, that is, as nothing else has a key here."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._kinds = [
            k.name.removeprefix("Autocast").lower() for k in keys.keys if "Autocast" in k.name
        ]

    def __enter__(self) -> None:
        self._before = {kind: is_autocast_enabled(kind) for kind in self._kinds}
        for kind in self._kinds:
            set_autocast_enabled(kind, False)

    def __exit__(self, *error: object) -> None:
        for kind, enabled in self._before.items():
            set_autocast_enabled(kind, enabled)


def _get_default_device() -> str:
    """Where new tensors go."""
    return str(get_default_device())


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs; -1 where none does."""
    current = state.local.backward_pass
    return -1 if current is None else current.number


def _saved_tensors_hooks_is_enabled() -> bool:
    return state.local.no_saved_hooks is None


def _get_current_graph_task_keep_graph() -> bool:
    current = state.local.backward_pass
    return True if current is None else current.keep_graph


_autograd = _python.SimpleNamespace(
    _saved_tensors_hooks_is_enabled=_saved_tensors_hooks_is_enabled,
    _get_current_graph_task_keep_graph=_get_current_graph_task_keep_graph,
    SavedTensor=SavedTensor,
)
_functions = _python.SimpleNamespace(
    AccumulateGrad=AccumulateGrad, DelayedError=DelayedError, UndefinedGrad=UndefinedGrad
)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """(device, dtype, non_blocking, memory format) of the arguments of `to`."""
    place = kind = None
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        place, kind = rest[0].device, rest[0].dtype
        rest.pop(0)
    elif rest and isinstance(rest[0], dtype):
        kind = rest.pop(0)
    elif rest:
        place = device(rest.pop(0))
        if rest and isinstance(rest[0], dtype):
            kind = rest.pop(0)
    place = device(kwargs["device"]) if kwargs.get("device") is not None else place
    kind = kwargs.get("dtype") or kind
    waits = bool(kwargs.get("non_blocking", rest[0] if rest else False))
    return place, kind, waits, kwargs.get("memory_format")


_nn = _python.SimpleNamespace(_parse_to=_parse_to)

# -- graphs: passes that PyTorch runs on a graph in place -------------------------------------------


def _in_place(graph: Graph, made: Graph) -> None:
    """Puts what a pass made into the graph it was made of."""
    for name in ("inputs", "nodes", "outputs", *Graph.__slots__):
        setattr(graph, name, getattr(made, name))


def _pass(function: Pass) -> Any:
    def run(graph: Graph, *options: object) -> None:
        _in_place(graph, function(graph))

    run.__doc__ = function.__doc__
    return run


_jit_pass_inline = _pass(inline)
_jit_pass_dce = _pass(eliminate_dead_code)
_jit_pass_cse = _pass(eliminate_common_subexpressions)
_jit_pass_constant_propagation = _pass(propagate_constants)
_jit_pass_constant_propagation_immutable_types = _jit_pass_constant_propagation
_jit_pass_peephole = _pass(peephole)
_jit_pass_loop_unrolling = _pass(unroll)
_jit_pass_batch_mm = _pass(batch_matrix_products)


def _jit_pass_remove_dropout(module: Inside) -> None:
    """Takes dropout out of a compiled module's methods."""
    for method in module.module._methods.values():
        _in_place(method.graph, remove_dropout(inline(method.graph)))


def _freeze_module(
    module: Inside,
    preservedAttrs: Sequence[str] = (),
    freeze_interfaces: bool = True,
    preserveParameters: bool = False,
) -> Inside:
    """`torch.jit.freeze` without the folding of layers into each other."""
    return frozen_module(module.module, list(preservedAttrs), False, preserveParameters)._c


class _Switch:
    """A setting of PyTorch's compiler that changes nothing here: it is kept, and told."""

    def __init__(self, value: object) -> None:
        self.value = value

    def set(self, value: object) -> Any:
        """Keeps a value; returns the one before."""
        before, self.value = self.value, value
        return before

    def get(self) -> Any:
        """The value."""
        return self.value


_profiling, _optimize, _texpr = _Switch(True), _Switch(True), _Switch(True)
_fuse_cpu, _fuse_gpu, _autocast, _mkldnn = (_Switch(True) for _ in range(4))
_group_inlining, _must_use_llvm, _mobile = _Switch(True), _Switch(False), _Switch(False)
_jit_set_profiling_executor, _jit_set_profiling_mode = _profiling.set, _profiling.set
_get_graph_executor_optimize, _set_graph_executor_optimize = _optimize.get, _optimize.set
_jit_set_texpr_fuser_enabled, _jit_texpr_fuser_enabled = _texpr.set, _texpr.get
_jit_override_can_fuse_on_cpu, _jit_can_fuse_on_cpu = _fuse_cpu.set, _fuse_cpu.get
_jit_override_can_fuse_on_gpu, _jit_can_fuse_on_gpu = _fuse_gpu.set, _fuse_gpu.get
_jit_set_autocast_mode = _autocast.set
_set_mkldnn_enabled, _get_mkldnn_enabled = _mkldnn.set, _mkldnn.get
_debug_set_fusion_group_inlining = _group_inlining.set
_debug_get_fusion_group_inlining = _group_inlining.get
_jit_set_te_must_use_llvm_cpu = _must_use_llvm.set
_jit_get_te_must_use_llvm_cpu = _must_use_llvm.get


# -- the types of values in a graph --------------------------------------------------------------


class _Kind:
    """The name of a simple type: `StringType.get()` is the type."""

    def __init__(self, found: types.Type) -> None:
        self.found = found

    def get(self) -> types.Type:
        """The type."""
        return self.found

    __call__ = get


def _is_tracing() -> bool:
    """Whether this thread is being traced."""
    return running() is not None


TensorType, StringType, IntType = _Kind(types.TENSOR), _Kind(types.STR), _Kind(types.INT)
FloatType, BoolType, NoneType = _Kind(types.FLOAT), _Kind(types.BOOL), _Kind(types.NONE)
ComplexType, NumberType, AnyType = _Kind(types.COMPLEX), _Kind(types.NUMBER), _Kind(types.ANY)
DeviceObjType = _Kind(types.DEVICE)
JitType = Type = types.Type


def ListType(element: types.Type) -> types.List:
    """List[element]."""
    if element is None:
        raise RuntimeError("Can not create ListType with None type")
    return types.List(element)


def OptionalType(element: types.Type) -> types.Optional:
    """Optional[element]."""
    return types.Optional(element)


def TupleType(elements: Sequence[types.Type]) -> types.Tuple:
    """Tuple[elements]."""
    return types.Tuple(tuple(elements))


def DictType(key: types.Type, value: types.Type) -> types.Dict:
    """Dict[key, value]."""
    return types.Dict(key, value)


__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator", "Graph", "Node",
    "ScriptFunction", "ScriptModule", "Size", "StorageBase", "TensorBase", "Value", "device",
    "dtype", "is_grad_enabled", "is_inference_mode_enabled", "layout", "memory_format",
]  # fmt: skip
