"""Further names of modules that toytorch has, which copies of PyTorch's own code import.

Optimizers, metrics and data sets that started as a copy of a file of PyTorch's still import its
helpers: `from torch.optim.optimizer import required`. They are found under PyTorch's name only
(`toytorch.alias`), and do here what they do there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import toytorch
from toytorch.autograd.function import Function
from toytorch.autograd.modes import is_grad_enabled, no_grad, set_grad_enabled
from toytorch.compat._pickled import PICKLED
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.composed import called
from toytorch.facts.device import device, layout
from toytorch.facts.dtype import dtype, no_kernel
from toytorch.facts.hints import Device
from toytorch.ops.creation.from_data import tensor
from toytorch.ops.elementwise.complex_numbers import view_as_real
from toytorch.ops.sparse.create import sparse_coo_tensor

if TYPE_CHECKING:
    from toytorch.core.random import Generator
    from toytorch.optim.optimizer import Optimizer

# -- torch.optim.optimizer -------------------------------------------------------------------------


class _RequiredParameter:
    """The default of an option that has to be given."""

    def __repr__(self) -> str:
        return "<required parameter>"


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that records its arithmetic where the option `differentiable` asks for that."""

    @functools.wraps(func)
    def step(self: Optimizer, *args: object, **kwargs: object) -> Any:
        before = is_grad_enabled()
        try:
            set_grad_enabled(self.defaults["differentiable"])
            return func(self, *args, **kwargs)
        finally:
            set_grad_enabled(before)

    return step


def _get_value(x: object) -> object:
    """The number in a tensor; numbers are what they are."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: object) -> object:
    """What it is given, outside of PyTorch's compiler."""
    return x


def _default_to_fused_or_foreach(
    params: Sequence[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether (one kernel for all, lists at a time) is the default: on GPUs only."""
    if differentiable:
        return False, False
    here = all(
        p is None or ((type(p) is Tensor or p.__class__.__name__ == "Parameter") and p.is_cuda)
        for p in params
    )
    fused = use_fused and all(p is None or p.is_floating_point() for p in params) and here
    return fused, not fused and here


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The kinds of devices on which a step can be captured as a graph."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Makes pairs of real numbers of complex ones, in the lists themselves."""
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = view_as_real(p)
            for each in state_and_grads:
                each[i] = view_as_real(each[i])


# -- torch.hub -------------------------------------------------------------------------------------


def _get_torch_home() -> str:
    """The folder below which programs keep what they fetch: $TORCH_HOME, or in the user's cache."""
    cache = os.getenv("XDG_CACHE_HOME", str(Path("~") / ".cache"))
    return str(Path(os.getenv("TORCH_HOME", str(Path(cache) / "torch"))).expanduser())


def tqdm(*args: object, **kwargs: object) -> Any:
    """A progress bar of the package tqdm; what it goes over, without a bar, where that is missing."""
    try:
        found = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return args[0] if args else contextlib.nullcontext(_NoBar())
    return found(*args, **kwargs)


class _NoBar:
    """What is told of progress where nothing shows it."""

    def update(self, n: float = 1) -> None:
        """Tells nobody."""


# -- torch.utils.checkpoint ------------------------------------------------------------------------


def get_device_states(*args: object) -> tuple[list[int], list[Tensor]]:
    """(numbers of the GPUs that arguments lie on, the states of their generators)."""
    from toytorch import cuda  # loaded when first asked for

    found = sorted({t.get_device() for t in args if isinstance(t, Tensor) and t.is_cuda})
    return found, [cuda.get_rng_state(number) for number in found]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Gives generators of GPUs back the states that `get_device_states` told."""
    from toytorch import cuda  # loaded when first asked for

    for number, state in zip(devices, states):
        cuda.set_rng_state(state, number)


# -- torch.nn.init ---------------------------------------------------------------------------------


def _no_grad(name: str) -> Callable[..., Tensor]:
    def fill(tensor: Tensor, *args: float, generator: Generator | None = None) -> Tensor:
        options = {} if generator is None else {"generator": generator}
        with no_grad():
            filled: Tensor = getattr(tensor, name)(*args, **options)
        return filled

    return called(f"_no_grad_{name}", f"`Tensor.{name}` without a record for gradients.", fill)


# -- torch, torch.sparse, torch.jit, torch._utils --------------------------------------------------


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes, as a tensor of int64."""
    return tensor(list(self.shape), dtype=types.int64)


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False, out: Tensor | None = None
) -> Tensor:
    """Where each of `size` rows starts among entries in the order of their rows, and the last ends."""
    if input.is_floating_point() or input.is_complex():
        name = "convert_indices_from_coo_to_csr_cpu"
        raise no_kernel(name, input.dtype.numpy)  # as PyTorch, which has one for whole numbers only
    if input.ndim > 1:
        raise RuntimeError(
            f"Input is supposed to be a vector, but got {input.ndim} dimensional tensor."
        )
    rows = toytorch.arange(size + 1, dtype=input.dtype, device=input.device)
    return toytorch.searchsorted(input, rows, out_int32=out_int32, out=out)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor,
    col_indices: Tensor,
    *,
    out_int32: bool = False,
    transpose: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The places of entries, a column each, of which is told where each row starts and the columns."""
    *lead, ends = crow_indices.shape
    starts = toytorch.arange(col_indices.numel(), device=crow_indices.device)
    counts = crow_indices.diff().reshape(-1)
    at = toytorch.arange(counts.numel(), device=counts.device).repeat_interleave(counts)
    rows = [at % (ends - 1), col_indices.reshape(-1)]
    batch = toytorch.unravel_index(starts // col_indices.shape[-1], tuple(lead)) if lead else ()
    kind = types.int32 if out_int32 else types.int64
    return toytorch.stack([*batch, *rows[:: -1 if transpose else 1]], out=out).to(kind)


class _SparseKind(type):
    """The class of the older constructors of sparse tensors."""

    kind: dtype

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.is_sparse and value.dtype is cls.kind

    def __call__(cls, *args: Any, device: Device = None) -> Any:
        options: dict[str, Any] = {"dtype": cls.kind, "device": device}
        if args and isinstance(args[0], Tensor):
            return sparse_coo_tensor(*args, **options)
        if len(args) == 1 and isinstance(args[0], (tuple, list)):  # torch.Size is a tuple
            args = tuple(args[0])
        size = args or (0,)
        empty = tensor([], dtype=types.int64).reshape(len(size), 0)
        return sparse_coo_tensor(empty, tensor([], dtype=cls.kind), size, **options)


def sparse_kind(name: str, kind: dtype) -> type:
    """`torch.sparse.FloatTensor` and its like: a constructor, and a class to ask about."""
    made = _SparseKind(f"{name}Tensor", (), {"kind": kind, "__module__": "torch.sparse"})
    made.__doc__ = (
        f"Sparse tensors of {kind}, as they once were made: of indices, values and sizes."
    )
    return made


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is compiled from its source where a trace runs, so that its branches stay."""
    from toytorch import jit  # loaded when first asked for

    @functools.wraps(fn)
    def wrapper(*args: object, **kwargs: object) -> Any:
        if not jit.is_tracing():
            return fn(*args, **kwargs)
        return jit.script(vars(wrapper)["__original_fn"])(*args, **kwargs)

    vars(wrapper).update(__original_fn=fn, __script_if_tracing_wrapper=True)
    return wrapper


def _get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> Any:
    """The graph of a call, with the state of modules as inputs behind the arguments, and its result."""
    from toytorch.facts import state  # loaded when first asked for
    from toytorch.facts.pytree import tree_leaves
    from toytorch.jit import ir, tracer, types
    from toytorch.jit.trace import output_value, outputs_of

    args = args if isinstance(args, tuple) else (args,)
    recorder = tracer.Tracer(ir.Graph("forward"), seen=True)
    recorder.captured = []  # tensors that are no arguments become inputs
    for leaf in tree_leaves(args):
        recorder.bind(leaf, recorder.graph.add_input(types.of_tensor(leaf)))
    try:
        with state.watching(recorder):
            result = f(*args, **(kwargs or {}))
            outputs = outputs_of(result, strict)[0]
            recorder.graph.outputs = [output_value(recorder, v) for v in outputs]
    finally:
        recorder.end()
    inputs = (*tree_leaves(args), *recorder.captured)
    return (recorder.graph, result, inputs) if return_inputs else (recorder.graph, result)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns where no gradient would come through a checkpoint."""
    if not any(v.requires_grad for v in inputs if isinstance(v, toytorch.Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors without their histories, which ask for gradients as those did; all else as it is."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        v.detach().requires_grad_(v.requires_grad) if isinstance(v, toytorch.Tensor) else v
        for v in inputs
    )


def _get_device_index(device_: Device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a GPU; with `optional` that of the current one for what has no number."""
    if isinstance(device_, int):
        return device_
    where = device(device_) if isinstance(device_, str) else device_
    if isinstance(where, device):
        if where.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {where}")
        if where.index is not None:
            return where.index
        if where.type == "cpu":
            return -1
    if not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device_}"
        )
    from toytorch import cuda  # loaded when first asked for

    return int(cuda.current_device())


class InplaceFunction(Function):
    """The older base class of functions that may write to their input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class SourceChangeWarning(Warning):
    """The source of a saved module is not what it was."""


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage on the device that a file, or a program that loads it, says."""
    where = device(location)
    if where.type == "cpu":
        return storage
    if where.type != "cuda":
        raise RuntimeError(
            f"don't know how to restore data location of {toytorch.typename(storage)} (tagged with "
            f"{location})"
        )
    return storage.cuda(where.index or 0)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """A tensor's parts along a dimension in another order."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return tensor.index_select(dim, permutation)


def _checked() -> None:
    """Starts GPUs, or says that there are none."""
    from toytorch import cuda  # loaded when first asked for

    cuda.init()


def _form(name: str) -> Callable[..., None]:
    """A step of an optimizer as a function, which is made when it is called first."""

    def step(*args: object, **kwargs: object) -> None:
        forms = importlib.import_module("toytorch.optim._functional")
        getattr(forms, name)(*args, **kwargs)

    return called(name, f"`torch.optim._functional.{name}`.", step)


def _of_functional() -> dict[str, Any]:
    """Names of `torch.nn.functional`, which copies of PyTorch's attention and losses call."""
    from toytorch import overrides  # loaded with the module
    from toytorch.nn import _reduction
    from toytorch.nn.functional import attention as a
    from toytorch.nn.functional.normalize import _verify_batch_size
    from toytorch.nn.modules.utils import _pair, _single, _triple

    found = (
        overrides.handle_torch_function, overrides.has_torch_function, overrides.has_torch_function_unary,
        overrides.has_torch_function_variadic,
        a._canonical_mask, a._in_projection, a._in_projection_packed, a._mha_shape_check,
        a._none_or_dtype, _pair, _single, _triple, _verify_batch_size,
    )  # fmt: skip
    return {"_Reduction": _reduction, **{f.__name__: f for f in found}}


def _of_init() -> dict[str, Any]:
    """Names of `torch.nn.init`."""
    from toytorch.nn.init import trunc_normal_  # loaded with the module

    found = map(_no_grad, ("uniform_", "normal_", "fill_", "zero_"))
    return {"_no_grad_trunc_normal_": trunc_normal_, **{f.__name__: f for f in found}}


ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

# module of PyTorch: names that it has beside those of toytorch's module, or a function that gives them
FURTHER: dict[str, Any] = {
    "torch": {
        "torch": toytorch,
        **{f.__name__: f for f in (
            _shape_as_tensor, _convert_indices_from_coo_to_csr, _convert_indices_from_csr_to_coo)},
    },
    "torch.optim.optimizer": {
        "required": _RequiredParameter(),
        "_RequiredParameter": _RequiredParameter,
        "ParamsT": ParamsT,
        **{f.__name__: f for f in (
            _use_grad_for_differentiable, _get_value, _stack_if_compiling,
            _default_to_fused_or_foreach, _get_capturable_supported_devices, _view_as_real)},
    },
    "torch.hub": {
        "_get_torch_home": _get_torch_home,
        "HASH_REGEX": re.compile(r"-([a-f0-9]*)\."),
        "urlparse": urlparse,
        "tqdm": tqdm,
    },
    "torch.utils.model_zoo": {"tqdm": tqdm},
    "torch.serialization": {
        "DEFAULT_PROTOCOL": 2,
        "SourceChangeWarning": SourceChangeWarning,
        "default_restore_location": default_restore_location,
        "MAP_LOCATION": Callable[[Any, str], Any] | device | str | dict[str, str] | None,
    },
    "torch.utils.checkpoint": {
        "check_backward_validity": check_backward_validity, "detach_variable": detach_variable,
        "get_device_states": get_device_states, "set_device_states": set_device_states,
    },
    "torch.nn.init": _of_init,
    "torch.nn.functional": _of_functional,
    "torch.nn.modules.module": {"_EXTRA_STATE_KEY_SUFFIX": "_extra_state"},
    "torch.nn.modules.rnn": {"apply_permutation": apply_permutation},
    "torch.autograd.function": {"InplaceFunction": InplaceFunction},
    **{
        f"torch.optim.{name}": {name: _form(name)}
        for name in ("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam",
                     "rmsprop", "rprop", "sgd")
    },
    "torch.utils.data._utils.collate": {"np_str_obj_array_pattern": re.compile(r"[SaUO]")},
    "torch.utils.data.dataloader": {"_collate_fn_t": Callable[[list[Any]], Any]},
    "torch.sparse": {
        f"{name}Tensor": sparse_kind(name, kind)
        for name, kind in {
            "Float": types.float32, "Double": types.float64, "Half": types.float16,
            "BFloat16": types.bfloat16, "Long": types.int64, "Int": types.int32,
            "Short": types.int16, "Char": types.int8, "Byte": types.uint8,
        }.items()
    },
    "torch.jit": {
        "_get_trace_graph": _get_trace_graph,
        "script_if_tracing": script_if_tracing,
        "_script_if_tracing": script_if_tracing,
    },
    # what has the functions that PyTorch writes in C; pickles take them from it by `getattr`
    "torch._C": {
        "_VariableFunctions": toytorch, "_VariableFunctionsClass": toytorch,
        "_set_grad_enabled": set_grad_enabled,
    },
    "torch._utils": {"_get_device_index": _get_device_index},
    "torch.types": {"_dtype": dtype, "_layout": layout},
    "torch.cuda": {"_initialized": False, "_lazy_init": _checked},
}  # fmt: skip
for _module, _functions in PICKLED.items():
    FURTHER.setdefault(_module, {}).update({f.__name__: f for f in _functions})


def names_of(module: str) -> dict[str, Any]:
    """The further names of a module, which has been imported."""
    found = FURTHER.get(module, {})
    return found() if callable(found) else found
