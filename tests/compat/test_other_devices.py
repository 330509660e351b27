"""What programs ask of devices that are not there, beside PyTorch's answers on a machine with none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import GPU, attempt, torch, tt

QUESTIONS = {
    "accelerator": "is_available() device_count() current_accelerator() empty_cache() "
    "memory_stats() memory_allocated() max_memory_allocated() memory_reserved() "
    "max_memory_reserved() reset_accumulated_memory_stats() reset_peak_memory_stats() "
    "get_memory_info() synchronize() current_stream() current_device_index() set_device_index(0)",
    "mps": "is_available() device_count() synchronize() empty_cache() manual_seed(0) seed() "
    "get_rng_state() current_allocated_memory() driver_allocated_memory()",
    "xpu": "is_available() is_initialized() is_bf16_supported() device_count() synchronize() "
    "empty_cache() manual_seed(0) manual_seed_all(0) seed() seed_all() current_device() "
    "memory_allocated() max_memory_allocated() get_device_name() get_rng_state()",
}
ON_A_CARD = """
torch.Generator("cuda")
torch.cuda.Stream()
torch.cuda.Event()
torch.cuda.CUDAGraph()
torch.cuda.device(0).__enter__()
torch.set_default_tensor_type("torch.cuda.FloatTensor")
torch.set_default_tensor_type(torch.cuda.FloatTensor)
torch.set_default_tensor_type(3)
torch.cuda.FloatTensor(3)
torch.ones(1).cuda()
torch.nn.Linear(1, 1).cuda()
torch.ones(1, device="cuda")
torch.cuda.current_device()
"""
CASES = [(module, call) for module, calls in QUESTIONS.items() for call in calls.split()]


@pytest.mark.skipif(GPU or torch.accelerator.is_available(), reason="about machines without one")
@pytest.mark.parametrize(("module", "call"), CASES, ids=lambda v: v)
def test_questions(module: str, call: str) -> None:
    def ask(package: Any) -> Any:
        return eval(f"package.{module}.{call}", {"package": package})

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert (type(failed), str(failed)) == (type(refused), str(refused))
    assert got == want


@pytest.mark.filterwarnings("ignore:.*set_default_tensor_type")
@pytest.mark.skipif(GPU or torch.cuda.is_available(), reason="about machines without one")
@pytest.mark.parametrize("call", ON_A_CARD.strip().split("\n"))
def test_refused_without_a_card(call: str) -> None:
    (_, refused), (_, failed) = (
        attempt(lambda p: eval(call, {"torch": p}), s) for s in (torch, tt)
    )
    assert type(failed) is type(refused) is not type(None)
    assert str(refused).split(". ")[0] in str(failed)  # ours says what to do as well


@pytest.mark.skipif(GPU or torch.cuda.is_available(), reason="about machines without one")
@pytest.mark.parametrize("name", ["torch.cuda.FloatTensor", "torch.cuda.LongTensor"])
def test_older_types_of_tensors_on_a_card(name: str) -> None:
    for kind in (name, eval(name, {"torch": tt})):
        with pytest.raises(AssertionError, match="not compiled with CUDA"):  # a RuntimeError there
            tt.ones(2).type(kind)
    with tt.cuda.simulate():
        here = tt.ones(2).type(name)
        assert here.is_cuda and here.type() == name
        assert here.type("torch.DoubleTensor").type() == "torch.DoubleTensor"
