"""The device meta: what results look like, for all samples of all ops, and for large tensors.

Each sample runs with its tensors on the CPU and without memory; shape, type and strides must be the
same. (The CPU's are compared with PyTorch's elsewhere.) What PyTorch answers is asked at the end.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.ops.records import TESTED, report
from tests.oracle import SELFTEST, SUBJECT, Side, attempt, leaves, names, steps, told, torch, tt

if SELFTEST:
    pytest.skip("asks about toytorch", allow_module_level=True)

META = Side(tt, "meta")
FEW = 12
# Ops by whose elements something is decided: a shape, a result that is no tensor, what is refused.
READING = set(
    names(
        "allclose argwhere bincount coalesce cov embedding_bag equal histc histogram histogramdd index "
        "index_put istft item linalg.cond linalg.ldl_solve linalg.lstsq masked_select multinomial "
        "nanquantile nn.functional.one_hot nonzero nonzero_static one_hot quantile repeat_interleave "
        "segment_reduce tolist unique unique_consecutive"
    )
)
assert set(TESTED) >= READING


def looks(x: Any) -> list[Any]:
    """Shape, type and strides of each tensor of a result."""
    return [
        (tuple(t.shape), str(t.dtype), steps(t))
        for t in leaves(x)
        if isinstance(t, tt.Tensor) and str(t.layout) == "torch.strided"
    ]


@pytest.mark.parametrize("name", [name for name in TESTED if name not in READING])
def test_results_look_as_on_the_cpu(name: str) -> None:
    entry = TESTED[name]
    function = entry.function(SUBJECT)
    failures, tried = [], 0
    for sample in list(entry.samples())[:FEW]:
        if not any(isinstance(t, torch.Tensor) for t in leaves([sample.args, sample.kwargs])):
            continue
        want, refused = attempt(
            lambda: function(*SUBJECT.carry(sample.args), **SUBJECT.carry(sample.kwargs))  # noqa: B023  # called in this turn
        )
        if refused:
            continue
        got, failed = attempt(
            lambda: function(*META.carry(sample.args), **META.carry(sample.kwargs))  # noqa: B023  # called in this turn
        )
        tried += 1
        if failed is not None:
            failures.append(f"{sample}: {told(failed)}")
        elif looks(want) != looks(got):
            failures.append(f"{sample}: {looks(got)[:2]}, on the CPU {looks(want)[:2]}")
    report(failures, tried)


def test_large_tensors() -> None:
    """More elements than any memory holds, by the same calls as PyTorch's."""
    for package in (torch, tt):
        n = 2**20
        x, y = (package.empty(*s, device="meta") for s in ((n, n), (n,)))
        assert (x + y).shape == x.softmax(1).shape == (x @ x).shape == (n, n)
        assert x.sum(1, keepdim=True).shape == (n, 1)
        assert x.t().contiguous().stride() == (n, 1)
        assert (x.t() + 1).stride() == x.t().stride() == (1, n)
        assert x.view(-1)[5:].storage_offset() == 5
        assert package.nn.functional.linear(x, x).shape == (n, n)


def test_modules() -> None:
    for package in (torch, tt):
        with package.device("meta"):
            net = package.nn.Sequential(
                package.nn.Linear(1000, 50000), package.nn.ReLU(), package.nn.Linear(50000, 10)
            )
        x = package.empty(32, 1000, device="meta")
        net(x).sum().backward()
        grad = net[0].weight.grad
        assert grad.is_meta and grad.shape == (50000, 1000)
        package.optim.Adam(net.parameters()).step()
        assert net.to_empty(device="cpu")[2].weight.device.type == "cpu"
        transformer = package.nn.TransformerEncoderLayer(64, 4, device="meta")
        assert transformer(package.empty(7, 2, 64, device="meta")).shape == (7, 2, 64)


CALLS = [
    "x.item()", "x.sum().item()", "x.tolist()", "x.cpu()", "bool(x.sum())", "x + torch.ones(2, 3)",
    "(x + torch.ones(())).shape", "repr(x)", "repr(x.long())", "repr(x.clone().requires_grad_())",
    "f'{x.sum()}'", "x.is_meta", "str(x.device)", "x.normal_().shape", "torch.rand_like(x).shape",
    "torch.ones(3, 4).t().to('meta').stride()", "x.storage()[0]", "x.untyped_storage().nbytes()",
    "torch.nn.Linear(2, 2, device='meta').to('cpu')", "torch.arange(5, device='meta').shape",
    "x.fill_(1).shape", "x.copy_(torch.ones(3)).shape", "torch.ones(2, 3).copy_(x)", "x[0].shape",
    "x[:, [0, 1]].shape", "torch.empty(0, device='meta').resize_(2, 3).shape", "x.data_ptr()",
    "x.repeat_interleave(2, 0).shape", "x.add_(torch.empty(4, 3, device='meta'))", "x.dtype",
]  # fmt: skip


@pytest.mark.parametrize("text", CALLS)
def test_same_answers(text: str) -> None:
    def ask(package: Any) -> Any:
        return eval(text, {"torch": package, "x": package.empty(2, 3, device="meta")})

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert type(failed) is type(refused), (failed, refused)
    if refused is None:
        assert str(got) == str(want)
    elif "meta tensor" in str(
        refused
    ):  # PyTorch words mixed devices and sizes as its compiler's rules do
        assert str(failed)[:40] == str(refused)[:40]
