"""Where PyTorch keeps what toytorch keeps in another file.

Files of models name classes by PyTorch's places, programs print them (`toytorch.alias`), and
`from torch.nn.modules.activation import MultiheadAttention` looks for one there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

MOVED = """
facts.device            torch                          device layout memory_format
facts.dtype             torch                          dtype finfo iinfo
facts.size              torch                          Size
core.random            torch                          Generator
core.storages           torch.storage                  TypedStorage UntypedStorage
facts.node              torch.autograd.graph           Node
facts.saved             torch._C._autograd             SavedTensor
facts.node              torch.utils.hooks              RemovableHandle
facts.pytree            torch.utils._pytree            TreeSpec
autograd.anomaly       torch.autograd.anomaly_mode    detect_anomaly set_detect_anomaly
autograd.modes         torch.autograd.grad_mode       enable_grad inference_mode no_grad
autograd.modes         torch.autograd.grad_mode       set_grad_enabled
amp.casting            torch.amp.autocast_mode        autocast custom_bwd custom_fwd
amp.casting            torch.amp.autocast_mode        is_autocast_available
cuda.amp               torch.cuda.amp.autocast_mode   autocast custom_bwd custom_fwd
cuda.amp               torch.cuda.amp.grad_scaler     GradScaler
compat._further        torch.cuda._utils              _get_device_index
cuda.amp               torch.cuda.amp.common          amp_definitely_not_available
cpu.amp                torch.cpu.amp.autocast_mode    autocast
cpu.amp                torch.cpu.amp.grad_scaler      GradScaler
ops.sparse.create     torch.sparse                   check_sparse_tensor_invariants
profiler.records       torch.autograd.profiler        record_function
profiler.schedules     torch.profiler.profiler        ProfilerAction
profiler.session       torch.profiler.profiler        profile
utils.benchmark.compare      torch.utils.benchmark.utils.compare  Colorize Compare
utils.benchmark.fuzzer       torch.utils.benchmark.utils.fuzzer   FuzzedParameter FuzzedTensor Fuzzer
utils.benchmark.fuzzer       torch.utils.benchmark.utils.fuzzer   ParameterAlias
utils.benchmark.measurement  torch.utils.benchmark.utils.common   Measurement TaskSpec ordered_unique
utils.benchmark.measurement  torch.utils.benchmark.utils.common   select_unit set_torch_threads
utils.benchmark.measurement  torch.utils.benchmark.utils.common   trim_sigfig unit_to_english
utils.benchmark.timing       torch.utils.benchmark.utils.timer    Language Timer timer
utils.data.sampler     torch.utils.data.distributed   DistributedSampler
jit.function           torch.jit                      ScriptFunction
jit.module             torch.jit._script              RecursiveScriptModule ScriptModule
jit.module             torch.jit._trace               TopLevelTracedModule TracedModule
jit.failures           torch.jit                      Error
jit.script.public      torch.jit                      CompilationUnit
jit.script.errors      torch.jit.frontend             FrontendError NotSupportedError
jit.script.errors      torch.jit.frontend             UnsupportedNodeError
jit.trace              torch.jit._trace               TracingCheckError
jit.tracer             torch.jit._trace               TracerWarning

distributions.transforms.base         torch.distributions.transforms  ComposeTransform
distributions.transforms.base         torch.distributions.transforms  IndependentTransform Transform
distributions.transforms.base         torch.distributions.transforms  _InverseTransform
distributions.transforms.elementwise  torch.distributions.transforms  AbsTransform AffineTransform
distributions.transforms.elementwise  torch.distributions.transforms  CumulativeDistributionTransform
distributions.transforms.elementwise  torch.distributions.transforms  ExpTransform PowerTransform
distributions.transforms.elementwise  torch.distributions.transforms  SigmoidTransform
distributions.transforms.elementwise  torch.distributions.transforms  SoftplusTransform TanhTransform
distributions.transforms.parts        torch.distributions.transforms  CatTransform StackTransform
distributions.transforms.vectors      torch.distributions.transforms  CorrCholeskyTransform
distributions.transforms.vectors      torch.distributions.transforms  LowerCholeskyTransform
distributions.transforms.vectors      torch.distributions.transforms  PositiveDefiniteTransform
distributions.transforms.vectors      torch.distributions.transforms  ReshapeTransform SoftmaxTransform
distributions.transforms.vectors      torch.distributions.transforms  StickBreakingTransform

cuda.comm               torch.nn.parallel.comm         broadcast broadcast_coalesced gather
cuda.comm               torch.nn.parallel.comm         reduce_add reduce_add_coalesced scatter
masked.tensor           torch.masked.maskedtensor.core      MaskedTensor is_masked_tensor
masked.tensor           torch.masked.maskedtensor.creation  as_masked_tensor masked_tensor
nn.utils.init           torch.nn.utils.memory_format   convert_conv2d_weight_memory_format
nn.utils.init           torch.nn.utils.memory_format   convert_conv3d_weight_memory_format

nn.modules.attention             torch.nn.modules.activation  MultiheadAttention
nn.modules.softmax               torch.nn.modules.activation  GLU LogSoftmax Softmax Softmax2d
nn.modules.softmax               torch.nn.modules.activation  Softmin
nn.modules.container_parameters  torch.nn.modules.container   ParameterDict ParameterList
nn.modules.lazy_conv             torch.nn.modules.conv        LazyConv1d LazyConv2d LazyConv3d
nn.modules.lazy_conv             torch.nn.modules.conv        LazyConvTranspose1d
nn.modules.lazy_conv             torch.nn.modules.conv        LazyConvTranspose2d
nn.modules.lazy_conv             torch.nn.modules.conv        LazyConvTranspose3d
nn.modules.loss_linear           torch.nn.modules.loss        LinearCrossEntropyLoss
nn.modules.loss_margin           torch.nn.modules.loss        CosineEmbeddingLoss
nn.modules.loss_margin           torch.nn.modules.loss        HingeEmbeddingLoss MarginRankingLoss
nn.modules.loss_margin           torch.nn.modules.loss        MultiLabelMarginLoss
nn.modules.loss_margin           torch.nn.modules.loss        MultiLabelSoftMarginLoss
nn.modules.loss_margin           torch.nn.modules.loss        MultiMarginLoss SoftMarginLoss
nn.modules.loss_margin           torch.nn.modules.loss        TripletMarginLoss
nn.modules.loss_margin           torch.nn.modules.loss        TripletMarginWithDistanceLoss
nn.modules.rnn_cells             torch.nn.modules.rnn         GRUCell LSTMCell RNNCell RNNCellBase
nn.utils.prune_methods           torch.nn.utils.prune         BasePruningMethod CustomFromMask
nn.utils.prune_methods           torch.nn.utils.prune         Identity L1Unstructured LnStructured
nn.utils.prune_methods           torch.nn.utils.prune         PruningContainer RandomStructured
nn.utils.prune_methods           torch.nn.utils.prune         RandomUnstructured

nested.jagged  torch.nested._internal.nested_tensor  NestedTensor _rebuild_njt jagged_from_list
nested.jagged  torch.nested._internal.nested_tensor  jagged_from_tensor_and_lengths
nested.jagged  torch.nested._internal.nested_tensor  nested_view_from_values_offsets
nested.jagged  torch.nested._internal.nested_tensor  nested_view_from_values_offsets_lengths

optim.adafactor          torch.optim               Adafactor
optim.adam               torch.optim.adamw         AdamW
optim.adam_variants      torch.optim.adamax        Adamax
optim.adam_variants      torch.optim.nadam         NAdam
optim.adam_variants      torch.optim.radam         RAdam
optim.adam_variants      torch.optim.sparse_adam   SparseAdam
optim.adaptive           torch.optim.adadelta      Adadelta
optim.adaptive           torch.optim.adagrad       Adagrad
optim.adaptive           torch.optim.rmsprop       RMSprop
optim.classic            torch.optim.asgd          ASGD
optim.classic            torch.optim.rprop         Rprop
optim.muon               torch.optim               Muon
optim.schedules.base     torch.optim.lr_scheduler  LRScheduler
optim.schedules.compose  torch.optim.lr_scheduler  ChainedScheduler SequentialLR
optim.schedules.cosine   torch.optim.lr_scheduler  CosineAnnealingLR CosineAnnealingWarmRestarts
optim.schedules.cycle    torch.optim.lr_scheduler  CyclicLR OneCycleLR
optim.schedules.plain    torch.optim.lr_scheduler  ConstantLR ExponentialLR LambdaLR LinearLR
optim.schedules.plain    torch.optim.lr_scheduler  MultiStepLR MultiplicativeLR PolynomialLR StepLR
optim.schedules.plateau  torch.optim.lr_scheduler  ReduceLROnPlateau
"""

PYTORCH_MODULES: dict[str, str] = {}  # PyTorch's module of each: {"facts.size.Size": "torch"}
OUR_MODULES: dict[str, str] = {}  # toytorch's: {"torch.Size": "toytorch.facts.size"}
for _ours, _theirs, *_names in filter(None, map(str.split, MOVED.splitlines())):
    for _name in _names:
        PYTORCH_MODULES[f"{_ours}.{_name}"] = _theirs
        OUR_MODULES[f"{_theirs}.{_name}"] = f"toytorch.{_ours}"


def pytorch_module(module: str, name: str) -> str:
    """The module of PyTorch that has what a module of toytorch calls by a name.

    >>> pytorch_module("toytorch.nn.modules.softmax", "GLU"), pytorch_module("toytorch.nn.modules.conv", "Conv1d")
    ('torch.nn.modules.activation', 'torch.nn.modules.conv')
    """
    rest = module.partition(".")[2]
    return PYTORCH_MODULES.get(f"{rest}.{name.partition('.')[0]}") or f"torch.{rest}".rstrip(".")


def finder(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that PyTorch keeps more in than toytorch."""
    theirs = "torch." + module.partition(".")[2]

    def find(name: str) -> Any:
        place = OUR_MODULES.get(f"{theirs}.{name}")
        if f"{theirs}.{name}" in PLACES:
            return importlib.import_module(f"{theirs}.{name}")
        if place is None:
            raise AttributeError(f"module '{theirs}' has no attribute '{name}'")
        return getattr(importlib.import_module(place), name)

    return find


PLACES = frozenset(PYTORCH_MODULES.values()) - {"torch._C._autograd"}  # an attribute there
PLACES |= {p.rpartition(".")[0] for p in PLACES} - {"torch"}  # packages of such modules


def module_of_moved(theirs: str) -> ModuleType:
    """A module that PyTorch has and toytorch has not, of names that stand in other files here.

    >>> module_of_moved("torch.optim.adagrad").Adagrad.__name__
    'Adagrad'
    """
    made = ModuleType(theirs, f"What PyTorch keeps in {theirs}.")
    made.__path__ = []  # further modules may be found below it
    names = [n.rpartition(".")[2] for n in OUR_MODULES if n.rpartition(".")[0] == theirs]
    vars(made).update(__getattr__=finder(theirs), __dir__=lambda: names, __all__=names)
    return made
