"""Switches of the whole program, random states and small modules answer as PyTorch's do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side, attempt, told

SIDES = [pytest.param(ORACLE, id="PyTorch"), pytest.param(SUBJECT, id="toytorch")]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    """Settings hold for the whole process: each test leaves them as they were."""
    before = [(s.root, s.root.get_num_threads()) for s in (ORACLE, SUBJECT)]
    yield
    for torch, threads in before:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")
        torch.set_default_dtype(torch.float32)
        torch.set_warn_always(False)


@pytest.mark.parametrize("side", SIDES)
def test_determinism(side: Side) -> None:
    torch = side.root
    assert not torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert torch.get_deterministic_debug_mode() == 1
    torch.set_deterministic_debug_mode("error")
    assert torch.get_deterministic_debug_mode() == 2
    torch.set_deterministic_debug_mode(0)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("side", SIDES)
def test_precision_threads_and_warnings(side: Side) -> None:
    torch = side.root
    for name in ("medium", "high", "highest"):
        torch.set_float32_matmul_precision(name)
        assert torch.get_float32_matmul_precision() == name
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    assert torch.get_num_interop_threads() >= 1
    torch.set_warn_always(True)
    assert torch.is_warn_always_enabled()
    with torch.backends.cudnn.flags(deterministic=True, benchmark=False):
        assert torch.backends.cudnn.deterministic and not torch.backends.cudnn.benchmark
    assert torch.set_flush_denormal(False) in (True, False)


@pytest.mark.parametrize("side", SIDES)
def test_default_types(side: Side) -> None:
    torch = side.root
    torch.set_default_dtype(torch.float64)
    assert torch.get_default_dtype() is torch.float64 and torch.ones(1).dtype is torch.float64
    torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(1).dtype is torch.float32
    torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.get_default_dtype() is torch.float64


@pytest.mark.parametrize(
    "call",
    [
        lambda torch: torch.set_num_threads(0),
        lambda torch: torch.set_num_threads("4"),
        lambda torch: torch.set_num_interop_threads(-1),
        lambda torch: torch.set_deterministic_debug_mode("loud"),
        lambda torch: torch.set_deterministic_debug_mode(7),
        lambda torch: torch.set_deterministic_debug_mode(1.5),
        lambda torch: torch.set_default_dtype(torch.int32),
        lambda torch: torch.set_default_tensor_type(torch.IntTensor),
        lambda torch: torch.set_default_tensor_type("torch.NoTensor"),
        lambda torch: torch.distributed.get_rank(),
        lambda torch: torch.nn.DataParallel(torch.nn.Linear(2, 2), device_ids=[0])(torch.ones(3)),
        lambda torch: torch.ones(3).pin_memory(),
    ],
)
def test_refusals_in_the_same_words(call: Any) -> None:
    if ORACLE.root.cuda.is_available() or SUBJECT.root.cuda.is_available():
        pytest.skip("some of these are about a GPU that is not there")
    ours, theirs = (attempt(call, s.root)[1] for s in (SUBJECT, ORACLE))
    assert theirs is not None
    assert told(ours) == told(theirs)


def test_a_precision_that_is_none() -> None:
    """PyTorch warns where the setter has no effect; so does toytorch."""
    found = []
    for side in (ORACLE, SUBJECT):
        with pytest.warns() as caught:
            error = attempt_loudly(side.root.set_float32_matmul_precision, "low")
        found.append((told(error), [str(w.message).split("(Triggered")[0].strip() for w in caught]))
    assert found[1] == found[0]


def attempt_loudly(f: Any, *args: Any) -> Exception | None:
    try:
        f(*args)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("side", SIDES)
def test_forked_random_numbers(side: Side) -> None:
    torch = side.root
    torch.manual_seed(3)
    with torch.random.fork_rng():
        inside = torch.rand(3)
        torch.manual_seed(9)
    assert torch.equal(inside, torch.rand(3))
    before = torch.get_rng_state()
    with torch.random.fork_rng(enabled=False):
        torch.rand(2)
    assert not torch.equal(before, torch.random.get_rng_state())
    with torch.random.fork_rng(devices=[]):
        torch.rand(1)
    torch.random.set_rng_state(before)
    first = torch.rand(2)
    torch.set_rng_state(before)
    assert torch.equal(first, torch.rand(2))
    torch.random.manual_seed(11)
    assert torch.random.initial_seed() == 11 == torch.initial_seed()
    assert isinstance(torch.random.seed(), int)


@pytest.mark.parametrize("side", SIDES)
def test_questions_that_programs_ask(side: Side) -> None:
    torch = side.root
    assert isinstance(torch.__config__.show(), str) and torch.__config__.parallel_info()
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1
    assert torch.cpu.current_device() == "cpu" and torch.cpu.synchronize() is None
    assert isinstance(torch.accelerator.is_available(), bool)
    assert torch.accelerator.is_available() or torch.accelerator.current_accelerator(True) is None
    assert not torch.distributed.is_available() or not torch.distributed.is_initialized()
    assert not torch.distributed.is_torchelastic_launched()
    assert torch.backends.mps.is_available() is False
    assert torch.backends.mkl.is_available() in (True, False)
    assert torch.multiprocessing.get_sharing_strategy() in (
        torch.multiprocessing.get_all_sharing_strategies()
    )
    assert not torch.compiler.is_compiling() and not torch.compiler.is_exporting()
    assert "inductor" in torch.compiler.list_backends()
    assert torch.cuda.memory_allocated() == 0 or torch.cuda.is_available()


@pytest.mark.parametrize("side", SIDES)
def test_a_module_on_no_gpu_runs_where_it_is(side: Side) -> None:
    torch = side.root
    if torch.cuda.is_available():
        pytest.skip("this is about a machine without a GPU")
    net = torch.nn.Linear(3, 2)
    model = torch.nn.DataParallel(net)
    assert model.module is net and list(model.state_dict()) == ["module.weight", "module.bias"]
    x = torch.ones(4, 3)
    assert torch.equal(model(x), net(x))
    if side is SUBJECT:  # PyTorch's function needs a GPU, though its module does not
        assert torch.equal(torch.nn.parallel.data_parallel(net, x), net(x))


@pytest.mark.parametrize("side", SIDES)
def test_shared_memory(side: Side) -> None:
    torch = side.root
    x = torch.tensor([[0.0, 1, 2], [3, 4, 5]])
    assert not x.is_shared() and not x.is_pinned()
    assert x.share_memory_() is x and x.is_shared() and x[1].is_shared()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    net = torch.nn.Linear(2, 2)
    net.share_memory()
    assert net.weight.is_shared() and isinstance(net.weight, torch.nn.Parameter)


def test_a_forked_process_writes_into_shared_memory() -> None:
    import os

    torch = SUBJECT.root
    x = torch.zeros(3).share_memory_()
    child = os.fork()
    if child == 0:
        x[1] = 5
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [0, 5, 0]


@pytest.mark.parametrize(
    "name",
    [
        "onnx",
        "export",
        "ao",
        "package",
        "quantize_per_tensor",
        "cudnn_convolution",
        "bits8",
    ],
)
def test_what_is_lacking_is_named(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}': toytorch .* has no "):
        getattr(SUBJECT.root, name)
    with pytest.raises(AttributeError, match="toytorch has no process groups"):
        SUBJECT.root.distributed.Nothing  # noqa: B018
    with pytest.raises(NotImplementedError, match="toytorch has no process groups"):
        SUBJECT.root.distributed.ProcessGroup()
    with pytest.raises(RuntimeError, match="process groups are not available"):
        SUBJECT.root.distributed.init_process_group("gloo")
