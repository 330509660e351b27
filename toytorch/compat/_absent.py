"""Names that libraries import to ask `isinstance(x, DTensor)`, of parts that toytorch has not.

Nothing is an instance of such a class, and making one or calling one says what is missing. So a
library runs as far as it does not need the part. The modules below are found under PyTorch's name.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from types import ModuleType
from typing import Any, NoReturn

PROCESSES = "process groups: torch.distributed.is_available() says so"
QUANTIZED = "quantization: torch.autocast computes in half precision"
ONNX = "export to ONNX: torch.jit.save keeps a compiled module with its weights"
INDUCTOR = "inductor: torch.compile has a compiler of its own, which takes no settings"
PIPES = "pipes of data: torch.utils.data.IterableDataset and DataLoader do without"
GRAPHS = "graphs of whole programs with their derivatives: torch.jit.trace and torch.fx make others"

# module of PyTorch: what it needs, and the names that libraries ask of it
ABSENT: dict[str, tuple[str, str]] = {
    "torch": (
        "reader of archives for C++: torch.load and torch.save read and write them",
        "PyTorchFileReader PyTorchFileWriter",
    ),
    "torch.distributed": (
        PROCESSES,
        "ProcessGroup Store TCPStore FileStore HashStore PrefixStore Work Backend P2POp group "
        "GroupMember monitored_barrier all_gather_into_tensor reduce_scatter_tensor",
    ),
    "torch.distributed.tensor": (
        PROCESSES,
        "DTensor DeviceMesh Shard Replicate Partial Placement distribute_tensor distribute_module",
    ),
    "torch.distributed._tensor": (
        PROCESSES,
        "DTensor DeviceMesh Shard Replicate distribute_tensor",
    ),
    **{
        f"torch.distributed.{name}.experimental": (PROCESSES, "implicit_replication")
        for name in ("tensor", "_tensor")
    },
    "torch.distributed._composable": (PROCESSES, "replicate"),
    "torch.distributed._composable.fsdp": (
        PROCESSES,
        "FSDPModule fully_shard CPUOffloadPolicy MixedPrecisionPolicy OffloadPolicy",
    ),
    "torch.distributed.tensor.placement_types": (PROCESSES, "Placement Partial Replicate Shard"),
    "torch.distributed.tensor.parallel": (
        PROCESSES,
        "ColwiseParallel RowwiseParallel ParallelStyle SequenceParallel PrepareModuleInput "
        "PrepareModuleOutput parallelize_module loss_parallel",
    ),
    "torch.distributed.device_mesh": (PROCESSES, "DeviceMesh init_device_mesh"),
    "torch.distributed.optim": (
        PROCESSES,
        "ZeroRedundancyOptimizer DistributedOptimizer PostLocalSGDOptimizer",
    ),
    "torch.distributed.fsdp": (
        PROCESSES,
        "FullyShardedDataParallel FSDPModule fully_shard CPUOffload MixedPrecision "
        "BackwardPrefetch ShardingStrategy StateDictType FullStateDictConfig "
        "FullOptimStateDictConfig ShardedStateDictConfig ShardedOptimStateDictConfig "
        "OptimStateKeyType CPUOffloadPolicy MixedPrecisionPolicy",
    ),
    "torch.distributed.fsdp.fully_sharded_data_parallel": (
        PROCESSES,
        "FullyShardedDataParallel CPUOffload MixedPrecision BackwardPrefetch ShardingStrategy",
    ),
    "torch.distributed.fsdp.wrap": (
        PROCESSES,
        "ModuleWrapPolicy enable_wrap wrap transformer_auto_wrap_policy size_based_auto_wrap_policy",
    ),
    "torch.distributed.fsdp.sharded_grad_scaler": (PROCESSES, "ShardedGradScaler"),
    "torch.distributed.rpc": (PROCESSES, "RRef init_rpc rpc_sync rpc_async remote shutdown"),
    "torch.distributed.checkpoint": (
        PROCESSES,
        "FileSystemReader FileSystemWriter save load save_state_dict load_state_dict",
    ),
    "torch.distributed.checkpoint.state_dict": (
        PROCESSES,
        "get_state_dict set_state_dict get_optimizer_state_dict set_optimizer_state_dict",
    ),
    "torch.distributed.autograd": (PROCESSES, "DistAutogradContext context get_gradients"),
    "torch.distributed.nn": (PROCESSES, ""),
    "torch.distributed.nn.functional": (PROCESSES, "all_gather all_reduce reduce_scatter"),
    "torch.utils.data.datapipes": (PIPES, ""),
    "torch.utils.data.datapipes.iter": (PIPES, "IterableWrapper Mapper Shuffler"),
    "torch.utils.data.datapipes.iter.combinatorics": (PIPES, "ShufflerIterDataPipe"),
    "torch.utils.data.datapipes.datapipe": (PIPES, "IterDataPipe MapDataPipe"),
    "torch.onnx": (
        ONNX,
        "export ONNXProgram OnnxExporterError OperatorExportTypes TensorProtoDataType TrainingMode",
    ),
    "torch.onnx.operators": (ONNX, "shape_as_tensor reshape_from_tensor_shape"),
    "torch.onnx.symbolic_helper": (ONNX, "quantized_args"),
    **{f"torch.onnx.symbolic_opset{n}": (ONNX, "") for n in (9, 11, 12)},
    "torch.ao": (QUANTIZED, ""),
    "torch.ao.nn": (QUANTIZED, ""),
    "torch.ao.nn.quantized": (
        QUANTIZED,
        "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d DeQuantize "
        "Dropout ELU Embedding EmbeddingBag FXFloatFunctional GroupNorm Hardswish InstanceNorm1d "
        "InstanceNorm2d LayerNorm LeakyReLU Linear LSTM MultiheadAttention PReLU QFunctional Quantize "
        "ReLU6 Sigmoid Softmax dynamic functional",
    ),
    **{
        f"torch.{module}": (
            QUANTIZED,
            "DeQuantStub QuantStub FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver "
            "ObserverBase PerChannelMinMaxObserver QConfig QuantWrapper convert default_qconfig "
            "fuse_modules get_default_qconfig prepare prepare_qat quantize_dynamic",
        )
        for module in ("ao.quantization", "quantization")
    },
    **{
        f"torch.{package}.{module}": (QUANTIZED, names)
        for package in ("ao.quantization", "quantization")
        for module, names in {
            "observer": "HistogramObserver MinMaxObserver ObserverBase PerChannelMinMaxObserver",
            "qconfig": "QConfig",
            "fake_quantize": "FakeQuantize FakeQuantizeBase",
        }.items()
    },
    "torch._custom_ops": (
        "operators of one's own by their older names: torch.library.custom_op makes them",
        "custom_op impl impl_abstract impl_backward impl_save_for_backward",
    ),
    "torch._subclasses": (
        "tensors without data: torch.device('meta') has those",
        "FakeTensor FakeTensorMode",
    ),
    "torch._subclasses.fake_tensor": (
        "tensors without data: torch.device('meta') has those",
        "FakeTensor FakeTensorMode",
    ),
    "torch._subclasses.functional_tensor": (GRAPHS, "FunctionalTensor FunctionalTensorMode"),
    "torch._inductor": (INDUCTOR, ""),
    "torch._inductor.config": (INDUCTOR, ""),
    "torch.fx.experimental": (GRAPHS, ""),
    "torch.fx.experimental.proxy_tensor": (GRAPHS, "ProxyTorchDispatchMode make_fx"),
}


class Absent(type):
    """The class of a name with nothing behind it."""

    needs: str

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"{cls.__module__}.{cls.__name__}: toytorch has no {cls.needs}")


def parse_args(*kinds: str) -> Any:
    """Decorates a translation to ONNX, which nobody calls."""
    return lambda function: function


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: object, opset_version: int
) -> None:
    """Tells an exporter that is not there how to translate an operator."""


MADE: dict[str, ModuleType] = {}
# modules with what can be done without the part, which are loaded when somebody asks
WRITTEN = {"torch.distributed.checkpoint.state_dict": "toytorch.compat._state_dicts"}
ANSWERS: dict[str, dict[str, Any]] = {  # what can be said without the part
    "torch.distributed.rpc": {"is_available": lambda: False},
    "torch.onnx": {
        "is_in_onnx_export": lambda: False,
        "register_custom_op_symbolic": register_custom_op_symbolic,
    },
    "torch.onnx.symbolic_helper": {"parse_args": parse_args},
    "torch._subclasses.fake_tensor": {
        "is_fake": lambda x: False,
        "unset_fake_temporarily": contextlib.nullcontext,
    },
    "torch.fx.experimental.proxy_tensor": {"get_proxy_mode": lambda: None},
}


def attribute(module: str, name: str) -> Any:
    """A name of the table, as a class or a module; raises AttributeError for others."""
    needs, names = ABSENT[module]
    if f"{module}.{name}" in ABSENT:
        return module_of(f"{module}.{name}")
    if name not in names.split():
        raise AttributeError(
            f"module '{module}' has no attribute '{name}': toytorch has no {needs}"
        )
    body: dict[str, Any] = {"__module__": module, "needs": needs, "__doc__": f"Needs {needs}."}
    if name in ("group", "GroupMember"):
        body["WORLD"] = None  # no processes have met
    return Absent(name, (), body)


def module_of(name: str) -> ModuleType:
    """The module of a name of the table, made at the first call."""
    if name not in MADE:
        made = ModuleType(name, f"Names of PyTorch's that need {ABSENT[name][0]}.")
        made.__path__ = []  # further modules of the table may stand below it
        for each in ABSENT[name][1].split():
            setattr(made, each, attribute(name, each))
        if name in WRITTEN:
            written = importlib.import_module(WRITTEN[name])
            vars(made).update((each, getattr(written, each)) for each in written.__all__)
        vars(made).update(ANSWERS.get(name, {}), __getattr__=functools.partial(attribute, name))
        MADE[name] = made
    return MADE[name]
