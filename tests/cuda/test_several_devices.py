"""Several devices: parts, copies and sums of tensors across them, and `DataParallel`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import toytorch as torch
from toytorch.nn.parallel import gather, parallel_apply, replicate, scatter

Pair = namedtuple("Pair", "a b")


@pytest.fixture(autouse=True)
def sim() -> Iterator[Any]:
    with torch.cuda.simulate(devices=3) as made:
        yield made


def test_tensors_are_sent_and_summed() -> None:
    x = torch.arange(6.0).cuda()
    copies = torch.cuda.comm.broadcast(x, (0, 1, 2))
    assert [str(c.device) for c in copies] == ["cuda:0", "cuda:1", "cuda:2"]
    assert torch.cuda.comm.reduce_add(copies).tolist() == [0, 3, 6, 9, 12, 15]
    assert str(torch.cuda.comm.reduce_add(copies, 1).device) == "cuda:1"
    parts = torch.cuda.comm.scatter(x, (0, 1, 2), [1, 2, 3])
    assert [p.tolist() for p in parts] == [[0], [1, 2], [3, 4, 5]]
    assert torch.cuda.comm.gather(parts, 0, 2).tolist() == x.tolist()
    many = [torch.ones(3).cuda(), torch.ones(2, 2).cuda(), torch.ones(2).long().cuda()]
    for k, own in enumerate(torch.cuda.comm.broadcast_coalesced(many, (0, 1))):
        assert [t.device.index for t in own] == [k] * 3
        assert [t.tolist() for t in own] == [t.tolist() for t in many]
    twice = torch.cuda.comm.broadcast_coalesced(many, (0, 1))
    assert [t.tolist() for t in torch.cuda.comm.reduce_add_coalesced(twice)] == [
        (2 * t).tolist() for t in many
    ]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda x: torch.cuda.comm.broadcast(x), RuntimeError, "Exactly one of 'devices' and"),
        (
            lambda x: torch.cuda.comm.reduce_add([x, torch.ones(2).cuda(1)]),
            ValueError,
            "different shapes",
        ),
        (lambda x: torch.cuda.comm.reduce_add([x, torch.ones(3)]), AssertionError, "on GPUs"),
        (lambda x: x.to("cuda:7"), RuntimeError, "invalid device ordinal"),
        (lambda x: torch.cuda.set_device(9), RuntimeError, "invalid device ordinal"),
        (lambda x: torch.cuda.get_device_name("cpu"), ValueError, "Expected a cuda device"),
    ],
)
def test_wrong_calls(wrong: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        wrong(torch.ones(3).cuda())


def test_arguments_of_any_shape_are_divided() -> None:
    x = torch.arange(6.0)
    first, second = scatter(({"x": x, "n": 3}, [x, None], Pair(x, "word")), (0, 1))
    assert first[0]["x"].tolist() == [0, 1, 2] and second[1][0].tolist() == [3, 4, 5]
    assert first[0]["n"] == 3 and second[2].b == "word" and isinstance(second[2], Pair)
    for part in (first, second):
        del part[0]["n"]  # which could not be gathered, in PyTorch neither
    joined = gather([first, second], 0)
    assert joined[0]["x"].tolist() == x.tolist() and isinstance(joined[2], Pair)


def test_gradients_flow_back() -> None:
    x = torch.arange(4.0).cuda().requires_grad_()
    parts = scatter(x, (0, 1))
    assert type(parts[0].grad_fn).__name__ == "ScatterBackward"
    y = gather([p * (k + 1) for k, p in enumerate(parts)], 0)
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1, 1, 2, 2]
    layer = torch.nn.Linear(3, 2).cuda()
    results = parallel_apply(
        replicate(layer, (0, 1, 2)), [torch.ones(2, 3).cuda(k) for k in range(3)], devices=(0, 1, 2)
    )
    gather(results, 0).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[6.0] * 3] * 2


class Net(torch.nn.Module):
    """Layers, buffers, a module that occurs twice, and keyword arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.again = self.first
        self.norm = torch.nn.BatchNorm1d(4)
        self.last = torch.nn.Linear(4, 1)

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        return self.last(self.norm(self.again(self.first(x).tanh()))) * scale


def test_it_trains_as_one_device_does() -> None:
    torch.manual_seed(0)
    net, twin = Net().eval(), Net().eval()
    twin.load_state_dict(net.state_dict())
    parallel = torch.nn.DataParallel(net.cuda())
    x, y = torch.randn(10, 4), torch.randn(10, 1)
    for _ in range(3):
        losses = []
        for model, place in ((parallel, "cuda:0"), (twin, "cpu")):
            model.zero_grad()
            loss = (model(x.to(place), scale=2.0) - y.to(place)).pow(2).mean()
            loss.backward()
            torch.optim.SGD(model.parameters(), 0.1).step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert all(n.startswith("module.") for n in parallel.state_dict())


def test_two_devices_work_at_the_same_time(sim: Any) -> None:
    times = []
    for count in (1, 2):
        model = torch.nn.DataParallel(
            torch.nn.Linear(4096, 4096, bias=False).cuda(), device_ids=list(range(count))
        )
        x = torch.empty(16384, 4096, device="cuda")
        torch.cuda.synchronize()
        start = sim.now
        model(x)
        for k in range(count):
            torch.cuda.synchronize(k)
        times.append(sim.now - start)
    spans = [s for s in sim.timeline.spans if s.kind == "kernel" and s.flops > 1e9]
    last = spans[-2:]
    assert {s.device for s in last} == {0, 1}
    assert last[0].start < last[1].end and last[1].start < last[0].end


def test_modules_elsewhere_are_refused() -> None:
    with pytest.raises(RuntimeError, match="module must have its parameters and buffers on device"):
        torch.nn.DataParallel(torch.nn.Linear(2, 1), device_ids=[0, 1])(torch.ones(4, 2))


# PyTorch's words on a card, as reports of its users have them. The first operand's device is the one
# that the others have to be on.
ELSEWHERE: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "product": (lambda h, d: h @ d, r"got mat2 is on cuda:0, .* on cpu .*wrapper_CUDA_mm\)"),
    "layer": (
        lambda h, d: torch.nn.functional.linear(h, d, d[0]),
        r"got mat1 is on cpu, .* on cuda:0 .*wrapper_CUDA_addmm\)",
    ),
    "embedding": (
        lambda h, d: torch.nn.functional.embedding(h.long(), d),
        r"got index is on cpu, .* on cuda:0 .*wrapper_CUDA__index_select\)",
    ),
    "loss": (
        lambda h, d: torch.nn.functional.nll_loss(d, h[0].long()),
        r"got target is on cpu, .* on cuda:0 .*wrapper_CUDA_nll_loss_forward\)",
    ),
    "cat": (lambda h, d: torch.cat([d, h]), r"got tensors is on cpu, .*wrapper_CUDA_cat\)"),
    "stack": (lambda h, d: torch.stack([d, h]), r"got tensors is on cpu, .*wrapper_CUDA_cat\)"),
    "convolution": (
        lambda h, d: torch.nn.functional.conv2d(d[None], h[None, None]),
        r"^Input type \(torch.cuda.FloatTensor\) and weight type \(torch.FloatTensor\) should be",
    ),
    "sum": (lambda h, d: h + d, "found at least two devices, cuda:0 and cpu!"),
    "index": (
        lambda h, d: h[d[0].long()],
        r"indices should be either on cpu or on the same device as the indexed tensor \(cpu\)",
    ),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_operands_elsewhere_are_refused_in_pytorchs_words(name: str) -> None:
    call, words = ELSEWHERE[name]
    with torch.cuda.simulate():
        here, there = torch.ones(2, 2), torch.ones(2, 2, device="cuda")
        with pytest.raises(RuntimeError, match=words):
            call(here, there)


def test_a_graph_takes_no_work_that_the_host_would_wait_for() -> None:
    with torch.cuda.simulate():
        x, pinned = torch.ones(3, device="cuda"), torch.zeros(3).pin_memory()
        for waits, words in (
            (lambda: x.sum().item(), "not permitted when stream is capturing"),
            (x.cpu, "unless the CPU tensor is pinned"),
            (lambda: torch.ones(3).cuda(), "unless the CPU tensor is pinned"),
        ):
            with (
                pytest.raises(RuntimeError, match=words),
                torch.cuda.graph(torch.cuda.CUDAGraph()),
            ):
                waits()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x.copy_(pinned, non_blocking=True)
        pinned.fill_(5.0)
        graph.replay()
        torch.cuda.synchronize()
        assert x.tolist() == [5.0, 5.0, 5.0]
