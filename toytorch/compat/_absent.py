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

# What is needed; below it modules of PyTorch, and the names that libraries ask of them.
TABLE = """
reader of archives for C++: torch.load and torch.save read and write them
    torch: PyTorchFileReader PyTorchFileWriter
process groups: torch.distributed.is_available() says so
    torch.distributed: ProcessGroup Store TCPStore FileStore HashStore PrefixStore Work Backend \
        P2POp group GroupMember monitored_barrier all_gather_into_tensor reduce_scatter_tensor
    torch.distributed.tensor: DTensor DeviceMesh Shard Replicate Partial Placement \
        distribute_tensor distribute_module
    torch.distributed._tensor: DTensor DeviceMesh Shard Replicate distribute_tensor
    torch.distributed.tensor.experimental torch.distributed._tensor.experimental: \
        implicit_replication
    torch.distributed._composable: replicate
    torch.distributed._composable.fsdp: FSDPModule fully_shard CPUOffloadPolicy \
        MixedPrecisionPolicy OffloadPolicy
    torch.distributed.tensor.placement_types: Placement Partial Replicate Shard
    torch.distributed.tensor.parallel: ColwiseParallel RowwiseParallel ParallelStyle \
        SequenceParallel PrepareModuleInput PrepareModuleOutput parallelize_module loss_parallel
    torch.distributed.device_mesh: DeviceMesh init_device_mesh
    torch.distributed.optim: ZeroRedundancyOptimizer DistributedOptimizer PostLocalSGDOptimizer
    torch.distributed.fsdp: FullyShardedDataParallel FSDPModule fully_shard CPUOffload \
        MixedPrecision BackwardPrefetch ShardingStrategy StateDictType FullStateDictConfig \
        FullOptimStateDictConfig ShardedStateDictConfig ShardedOptimStateDictConfig OptimStateKeyType \
        CPUOffloadPolicy MixedPrecisionPolicy
    torch.distributed.fsdp.fully_sharded_data_parallel: FullyShardedDataParallel CPUOffload \
        MixedPrecision BackwardPrefetch ShardingStrategy
    torch.distributed.fsdp.wrap: ModuleWrapPolicy enable_wrap wrap transformer_auto_wrap_policy \
        size_based_auto_wrap_policy
    torch.distributed.fsdp.sharded_grad_scaler: ShardedGradScaler
    torch.distributed.rpc: RRef init_rpc rpc_sync rpc_async remote shutdown
    torch.distributed.checkpoint: FileSystemReader FileSystemWriter save load save_state_dict \
        load_state_dict
    torch.distributed.checkpoint.state_dict: get_state_dict set_state_dict \
        get_optimizer_state_dict set_optimizer_state_dict
    torch.distributed.autograd: DistAutogradContext context get_gradients
    torch.distributed.nn:
    torch.distributed.nn.functional: all_gather all_reduce reduce_scatter
pipes of data: torch.utils.data.IterableDataset and DataLoader do without
    torch.utils.data.datapipes:
    torch.utils.data.datapipes.iter: IterableWrapper Mapper Shuffler
    torch.utils.data.datapipes.iter.combinatorics: ShufflerIterDataPipe
    torch.utils.data.datapipes.datapipe: IterDataPipe MapDataPipe
export to ONNX: torch.jit.save keeps a compiled module with its weights
    torch.onnx: export ONNXProgram OnnxExporterError OperatorExportTypes TensorProtoDataType \
        TrainingMode
    torch.onnx.operators: shape_as_tensor reshape_from_tensor_shape
    torch.onnx.symbolic_helper: quantized_args
    torch.onnx.symbolic_opset9 torch.onnx.symbolic_opset11 torch.onnx.symbolic_opset12:
quantization: torch.autocast computes in half precision
    torch.ao torch.ao.nn:
    torch.ao.nn.quantized: BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d \
        ConvTranspose2d DeQuantize Dropout ELU Embedding EmbeddingBag FXFloatFunctional GroupNorm \
        Hardswish InstanceNorm1d InstanceNorm2d LayerNorm LeakyReLU Linear LSTM MultiheadAttention \
        PReLU QFunctional Quantize ReLU6 Sigmoid Softmax dynamic functional
    torch.ao.quantization torch.quantization: DeQuantStub QuantStub FakeQuantize FakeQuantizeBase \
        HistogramObserver MinMaxObserver ObserverBase PerChannelMinMaxObserver QConfig QuantWrapper \
        convert default_qconfig fuse_modules get_default_qconfig prepare prepare_qat quantize_dynamic
    torch.ao.quantization.observer torch.quantization.observer: HistogramObserver MinMaxObserver \
        ObserverBase PerChannelMinMaxObserver
    torch.ao.quantization.qconfig torch.quantization.qconfig: QConfig
    torch.ao.quantization.fake_quantize torch.quantization.fake_quantize: FakeQuantize \
        FakeQuantizeBase
operators of one's own by their older names: torch.library.custom_op makes them
    torch._custom_ops: custom_op impl impl_abstract impl_backward impl_save_for_backward
tensors without data: torch.device('meta') has those
    torch._subclasses torch._subclasses.fake_tensor: FakeTensor FakeTensorMode
graphs of whole programs with their derivatives: torch.jit.trace and torch.fx make others
    torch._subclasses.functional_tensor: FunctionalTensor FunctionalTensorMode
inductor: torch.compile has a compiler of its own, which takes no settings
    torch._inductor torch._inductor.config:
"""
ABSENT: dict[str, tuple[str, str]] = {}  # module: what it needs, and those names
_needs = ""
for _line in TABLE.strip().splitlines():
    if _line[0] == " ":
        _modules, _, _names = _line.partition(":")
        ABSENT |= dict.fromkeys(_modules.split(), (_needs, " ".join(_names.split())))
    else:
        _needs = _line


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
