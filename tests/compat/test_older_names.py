"""Names that programs import from where PyTorch keeps them, and that do what PyTorch's do."""

from __future__ import annotations

import importlib
from collections import OrderedDict
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side, attempt, differences, told

SIDES = [pytest.param(ORACLE, id="PyTorch"), pytest.param(SUBJECT, id="toytorch")]

PLACES = {
    "amp": "autocast GradScaler custom_fwd custom_bwd",
    "autograd.grad_mode": "no_grad enable_grad set_grad_enabled",
    "backends.cuda": "sdp_kernel flash_sdp_enabled enable_math_sdp",
    "cpu.amp": "autocast",
    "cuda.amp": "autocast GradScaler custom_fwd custom_bwd",
    "distributed": "init_process_group destroy_process_group all_reduce barrier get_rank",
    "functional": "einsum norm split stft Tensor",
    "hub": "load load_state_dict_from_url",
    "nn.attention": "SDPBackend sdpa_kernel",
    "nn.common_types": "_size_1_t _size_2_t _size_3_t _size_any_t",
    "nn.init": "_calculate_fan_in_and_fan_out _calculate_correct_fan",
    "nn.modules.activation": "MultiheadAttention Softmax LogSoftmax GLU ReLU",
    "nn.modules.batchnorm": "_BatchNorm",
    "nn.modules.container": "ParameterDict ParameterList Sequential",
    "nn.modules.conv": "_ConvNd LazyConv2d LazyConvTranspose1d Conv2d",
    "nn.modules.loss": "_Loss HingeEmbeddingLoss TripletMarginLoss MSELoss",
    "nn.modules.rnn": "RNNBase LSTM LSTMCell RNNCellBase",
    "nn.modules.transformer": "_get_clones _get_activation_fn TransformerEncoderLayer",
    "nn.modules.utils": "_pair _single _triple _ntuple",
    "nn.parallel": "DataParallel DistributedDataParallel data_parallel",
    "optim.lr_scheduler": "LambdaLR _LRScheduler ReduceLROnPlateau",
    "testing": "assert_close make_tensor assert_allclose",
    "types": "Device Number _int _size Tensor",
    "utils.data.distributed": "DistributedSampler",
    "utils.hooks": "RemovableHandle",
    "utils.model_zoo": "load_url",
    "version": "cuda hip debug",
}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("place", PLACES)
def test_places(side: Side, place: str) -> None:
    module = importlib.import_module(f"{side.root.__name__}.{place}")
    assert [n for n in PLACES[place].split() if not hasattr(module, n)] == []


BUFFER = bytearray(range(16))
CALLS = [
    lambda t: t.frombuffer(BUFFER, dtype=t.int32),
    lambda t: t.frombuffer(BUFFER, dtype=t.float32, count=2, offset=4, requires_grad=True),
    lambda t: t.frombuffer(BUFFER, dtype=t.bfloat16),
    lambda t: t.frombuffer(BUFFER, dtype=t.int32, count=5),
    lambda t: t.frombuffer(BUFFER, dtype=t.int32, offset=3),
    lambda t: t.frombuffer(BUFFER, dtype=t.int32, count=0),
    lambda t: t.frombuffer(BUFFER, dtype=t.int32, offset=16),
    lambda t: t.frombuffer(BUFFER, dtype=t.int32, offset=-1),
    lambda t: t.frombuffer(b"", dtype=t.int32),
    lambda t: t.frombuffer(3, dtype=t.int32),
    lambda t: t.ones(2, 2).new([1, 2]),
    lambda t: t.ones(2, 2).double().new([[1, 2]]),
    lambda t: t.ones(2).int().new([1, 2]),
    lambda t: t.ones(2).new(),
    lambda t: t.ones(2).new(3, 4).zero_(),
    lambda t: t.ones(2).new(t.Size([2, 1])).zero_(),
    lambda t: t.max_pool2d(t.arange(16.0).reshape(1, 4, 4), 2),
    lambda t: t.max_pool1d(t.arange(8.0).reshape(1, 8), 2),
    lambda t: t.avg_pool1d(t.arange(8.0).reshape(1, 8), 2),
    lambda t: t.linalg.matmul(t.eye(2), t.ones(2)),
    lambda t: t._foreach_add(pair(t), pair(t)),
    lambda t: t._foreach_add(pair(t), 2),
    lambda t: t._foreach_add(pair(t), [1.0, 2.0]),
    lambda t: t._foreach_add(pair(t), pair(t), alpha=3),
    lambda t: t._foreach_mul(pair(t), 0.5),
    lambda t: t._foreach_div(pair(t), [2.0, 4.0]),
    lambda t: t._foreach_sqrt(pair(t)),
    lambda t: t._foreach_norm(pair(t)),
    lambda t: (t._foreach_max(pair(t)), t._foreach_clone(pair(t))),
    lambda t: (t._foreach_powsum(pair(t), 3), t._foreach_powsum(pair(t), dtype=t.float64)),
    lambda t: t._foreach_mm([t.ones(2, 3)], [t.ones(3, 2) * 2]),
    lambda t: t._foreach_norm(pair(t), 1),
    lambda t: t._foreach_maximum(pair(t), 1.5),
    lambda t: t._foreach_minimum(pair(t), pair(t)),
    lambda t: t._foreach_lerp(pair(t), t._foreach_neg(pair(t)), 0.25),
    lambda t: t._foreach_addcmul(pair(t), pair(t), pair(t), 2.0),
    lambda t: t._foreach_addcdiv(pair(t), pair(t), pair(t), [1.0, 3.0]),
    lambda t: in_place(t, "_foreach_mul_", 3.0),
    lambda t: in_place(t, "_foreach_add_", pair(t), alpha=-1),
    lambda t: in_place(t, "_foreach_zero_"),
    lambda t: in_place(t, "_foreach_copy_", [t.zeros(2), t.ones(3)]),
    lambda t: in_place(t, "_foreach_clamp_min_", 1.2),
    lambda t: t._foreach_add([], []),
    lambda t: t._foreach_add(pair(t), pair(t)[:1]),
    lambda t: t._assert(False, "wrong"),
    lambda t: t.nn.modules.transformer._get_activation_fn("tanh"),
    lambda t: t.nn.parallel.DistributedDataParallel(t.nn.Linear(1, 1)),
]


def pair(torch: Any) -> list[Any]:
    return [torch.tensor([1.0, 2.0]), torch.tensor([0.5, 1.5, 2.5])]


def in_place(torch: Any, name: str, *args: Any, **kwargs: Any) -> list[Any]:
    changed = pair(torch)
    given = getattr(torch, name)(changed, *args, **kwargs)
    assert all(a is b for a, b in zip(given, changed))
    return changed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_calls(call: Any) -> None:
    (wanted, refused), (found, error) = (attempt(call, s.root) for s in (ORACLE, SUBJECT))
    if refused is not None:
        assert told(error) == told(refused)
        return
    assert error is None, told(error)
    assert differences(wanted, found) == []


@pytest.mark.parametrize("side", SIDES)
def test_kinds_of_attention_are_switched_in_a_context(side: Side) -> None:
    torch = side.root
    from_attention = torch.nn.attention
    kind = from_attention.SDPBackend
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.math_sdp_enabled()
    with from_attention.sdpa_kernel([kind.MATH]):
        assert torch.backends.cuda.math_sdp_enabled()
        assert not torch.backends.cuda.flash_sdp_enabled()
        with from_attention.sdpa_kernel(kind.FLASH_ATTENTION):
            assert not torch.backends.cuda.math_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(False)
    assert not torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(True)
    with pytest.raises(AssertionError, match="Backend must be"), from_attention.sdpa_kernel(3):
        pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("side", SIDES)
def test_older_settings_of_autocast(side: Side) -> None:
    torch = side.root
    assert torch.get_autocast_cpu_dtype() is torch.bfloat16
    assert torch.get_autocast_gpu_dtype() is torch.float16
    with torch.autocast("cpu"):
        assert torch.is_autocast_cpu_enabled()
    torch.set_autocast_cpu_enabled(False)
    assert not torch.is_autocast_cpu_enabled() and not torch.is_anomaly_enabled()


@pytest.mark.parametrize("side", SIDES)
def test_hooks_on_what_modules_get(side: Side) -> None:
    nn, seen = side.root.nn, []
    tables = nn.modules.module
    handles = [
        tables.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)),
        tables.register_module_buffer_registration_hook(lambda m, name, b: seen.append(name)),
        tables.register_module_module_registration_hook(lambda m, name, c: seen.append(name)),
    ]
    nn.Sequential(nn.BatchNorm1d(2))
    for handle in handles:
        handle.remove()
    nn.Linear(2, 2)
    assert seen == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked", "0"]


@pytest.mark.parametrize("side", SIDES)
def test_tables_of_hooks_can_be_replaced(side: Side) -> None:
    nn, seen = side.root.nn, []
    tables = nn.modules.module
    handle = tables.register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__))
    assert len(tables._global_forward_hooks) == 1 and len(handle.hooks_dict_ref()) == 1
    nn.ReLU()(side.root.ones(2))
    tables._global_forward_hooks = OrderedDict()
    nn.ReLU()(side.root.ones(2))
    assert seen == ["ReLU"]
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda m, grads_in, grads_out: ())
    with pytest.raises(RuntimeError, match="got 0, but expected 1"):
        layer(side.root.ones(1, 2, requires_grad=True)).sum().backward()


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook:FutureWarning")
@pytest.mark.parametrize("side", SIDES)
def test_the_older_backward_hook_of_all_modules(side: Side) -> None:
    nn, seen = side.root.nn, []
    tables = nn.modules.module
    handle = tables.register_module_backward_hook(lambda m, *grads: seen.append(type(m).__name__))
    layer = nn.Sigmoid()  # PyTorch does not keep it alive for its hooks
    layer(side.root.ones(2, requires_grad=True)).sum().backward()
    handle.remove()
    layer(side.root.ones(2, requires_grad=True)).sum().backward()
    assert seen == ["Sigmoid"]
