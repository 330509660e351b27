"""What PyTorch's own tests found to be silently different: both sides say the same, to the letter.

Each line is Python, as in `test_same_answers`: what stands before the last `;` binds names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.compat.test_same_answers import answer
from tests.oracle import ORACLE, SELFTEST, SUBJECT

SIZES_AND_NUMBERS = """
torch.Size([1.5])
torch.Size(["a"])
torch.Size([True, torch.tensor(2)])
torch.Size([torch.tensor(2.0)])
torch.isclose(x, x + 0.1, torch.tensor(0.1), torch.tensor(0.1))
torch.isclose(x, x, rtol=x)
torch.allclose(x, x + 0.1, rtol=torch.tensor(0.2))
torch.add(x, x, alpha=torch.ones((), requires_grad=True))
torch.full((2,), torch.ones((), requires_grad=True))
torch.cumsum(x, torch.tensor(0.0))
torch.cumsum(x, torch.tensor([0]))
torch.cumsum(x, torch.tensor(True))
torch.cumsum(x, torch.tensor(0))
torch.cumsum(x, 0.0)
torch.softmax(x, 0.0)
torch.unsqueeze(x, 0.0)
torch.cat([x, x], 0.0)
torch.stack([x, x], torch.tensor(0.0))
m[[[1, 1, 0], [0]]]
m[[[0, 1], [1, 0]]]
m[[[0, 1], 0]]
m[[0, 1]]
m.log1p().to(torch.complex128).log1p()
torch.log1p(torch.tensor([1e-20 + 1e-10j, -0.5 + 1e-9j, 3j], dtype=torch.complex128)).tolist()
torch.add(x, x, alpha=1j)
torch.unique(torch.tensor([float("nan"), 1, float("nan")]))
n = float("nan"); torch.unique(torch.tensor([[n, n], [1, n], [n, n]]), dim=0)
n = float("nan"); torch.unique(torch.tensor([[2, 1], [1, n], [2, 1.0]]), dim=0, return_inverse=True, return_counts=True)
torch.meshgrid([])
torch.meshgrid(x, torch.ones(2, device="meta"))
torch.randperm(300, out=torch.ones(1, dtype=torch.uint8))
torch.bincount(x)
torch.mode(x + 1j)
torch.mode(x, out=(torch.ones((), dtype=torch.int32), torch.ones((), dtype=torch.int64)))
torch.polar(x, x, out=torch.ones(2))
torch.complex(x, x, out=torch.ones(2))
torch.quantile(x, 0.5, out=torch.empty(1, dtype=torch.float64))
torch.quantile(x, torch.tensor(0.5, device="meta"))
torch.remainder(torch.tensor([8.9375, 100.0]).bfloat16(), 0.3)
torch.fmod(torch.tensor([8.9375, -100.0]).half(), 0.3)
torch.div(torch.tensor([5.5, 7.0]).bfloat16(), torch.tensor([-1.1, 0.3]).bfloat16(), rounding_mode="trunc")
torch.var_mean(torch.tensor([1.0, float("inf"), 2.0]))
torch.std_mean(torch.tensor([1.0, 2.0, float("inf")]))
torch.manual_seed(0); torch.normal(x, 1.0, out=torch.zeros(3, 2))
torch.normal(x, 1.0, out=torch.zeros(3))
torch.unravel_index(torch.tensor([1]), torch.tensor(3))
torch.unravel_index(torch.tensor([1]), "ab")
torch.unravel_index(torch.tensor([1]), (2.0, 2))
torch.sort(x, stable=None).indices, x.sort(stable=None, descending=True).indices
torch.manual_seed(0); [torch.ones(2, dtype=d).cauchy_(float("inf"), 0.5) for d in (torch.float32, torch.float16)]
torch.manual_seed(0); torch.ones(3).normal_(float("-inf"), 1.0), torch.ones(3).log_normal_(float("inf"), 1.0)
torch.manual_seed(0); torch.ones(30).double().normal_(1.0, float("inf")), torch.ones(3).normal_(1e300, 1e300)
torch.ones(3, device="meta").untyped_storage()[0]
torch.ones(3, device="meta").untyped_storage()[:2]
torch.TypedStorage(3, dtype=torch.half, device="meta")[0]
s = torch.ones(3, device="meta").untyped_storage(); s[0] = 1; s, s.clone(), s.copy_(s), s.copy_(x.untyped_storage())
"""
OF_NO_EXAMPLES = """
torch.vmap(torch.sin)(m[:0]), torch.vmap(lambda a, b: (a * b).sum(), (0, None))(m[:0], x)
torch.vmap(lambda a: a.max())(m[:0]), torch.vmap(lambda a: tuple(a.sort()))(m[:0])
torch.vmap(torch.func.grad(lambda w, a: (a @ w).square().sum()), (None, 0))(m, m[:0])
torch.vmap(lambda a: torch.nn.functional.pad(a[None], (1, 1)).cumsum(1))(m[:0])
torch.vmap(torch.vmap(torch.cos))(m[:, :0]), torch.vmap(torch.exp, 1, 1)(m[:, :0])
"""
GRADIENTS = """
torch.autograd.functional.vjp(lambda a: 2 * a, x, x, create_graph=True, strict=True)
torch.autograd.functional.jvp(lambda a: 2 * a, x, x, create_graph=True, strict=True)
torch.autograd.functional.jvp(lambda a: (a * a, 2 * a), x, (x,), create_graph=True, strict=True)
r = torch.autograd.functional.jvp(lambda a: a.sin(), x, x, create_graph=True); ["tangent" in repr(t) for t in r]
y = x.requires_grad_() * 2; y.retain_grad(); y.mul_(3).sum().backward(); y.grad
y = x.requires_grad_() * 2; v = y[:1]; v.retain_grad(); y.mul_(3); v.sum().backward(); v.grad
y = x.requires_grad_() * 2; y.retain_grad(); y[:1].mul_(3); y.sum().backward(); y.grad
y = x.requires_grad_()[[1, 1]].sum(); y.backward(); y.backward()
y = torch.zeros(2); y[:1] = x.requires_grad_()[:1]; y.sum().backward(); y.sum().backward()
[r.grad_fn.name() for r in torch.var_mean(x.requires_grad_())]
[r.grad_fn.name() for r in torch.std_mean(x.requires_grad_(), 0)]
r = torch.std_mean(m.requires_grad_(), 1); (r[0] * r[1]).sum().backward(); m.grad
b = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True); (0**b).sum().backward(); b.grad
a = torch.tensor([float("nan")] * 3, requires_grad=True); a.min().backward(); a.grad
a = torch.tensor([1, float("nan"), 3.0], requires_grad=True); a.max().backward(); a.grad
a = torch.tensor([1, float("nan"), 3.0], requires_grad=True); a.quantile(0.3).backward(); a.grad
a = torch.tensor([[float("nan")] * 2], requires_grad=True); a.nanquantile(0.3).backward(); a.grad
x.data = torch.eye(2).to_sparse()
a = torch.tensor([-1.0, 1.0], requires_grad=True); torch.nn.functional.elu_(a * 1, alpha=-2).sum().backward()
a = torch.tensor([-1.0, 1.0], requires_grad=True); torch.nn.functional.celu_(a * 1, alpha=-2).sum().backward()
a = torch.tensor([-1.0], requires_grad=True); torch.nn.functional.leaky_relu_(a * 1, -2).sum().backward()
a = torch.ones(1, 2, 4, 4, requires_grad=True); torch.nn.functional.adaptive_avg_pool2d(a, 0).sum().backward()
a = torch.ones(1, 2, 4, 4, requires_grad=True); torch.nn.functional.adaptive_max_pool2d(a, 0).sum().backward()
s = torch.zeros(2, requires_grad=True); y = x.scatter_reduce(0, torch.tensor([0, 0]), s, "prod"); \
g, = grad(y.sum(), s, create_graph=True); g.sum().backward()
e = torch.nn.Embedding(4, 2, sparse=True); i = torch.tensor([1, 2]); e(i).sum().backward(); i[0] = 3; \
e.weight.grad._indices()
"""
LAYERS = """
torch.nn.functional.conv2d(torch.ones(2, 0, 4, 4), torch.ones(3, 0, 2, 2), torch.ones(3)).shape
c = torch.nn.Conv1d(0, 3, 2); c(torch.ones(2, 0, 4)).sum().backward(); c.bias.grad
[torch.nn.functional.adaptive_avg_pool2d(a, 1).stride() for a in (IMAGES, IMAGES[:1], IMAGES[:, :1])]
[torch.nn.functional.max_pool2d(a, 4).stride() for a in (IMAGES, IMAGES[:1], IMAGES[:, :1])]
torch.nn.functional.interpolate(IMAGES, (1, 1)).stride()
torch.nn.functional.pad(IMAGES, (1, 1)).stride()
torch.nn.functional.pad(IMAGES, (1, 1, 1, 1), mode="reflect").stride()
torch.nn.functional.pad(IMAGES, (1, 1, 1, 1), mode="circular").stride()
torch.nn.functional.conv2d(IMAGES, torch.ones(5, 3, 4, 4)).stride()
torch.nn.functional.conv2d(torch.ones(2, 3, 4, 4), torch.ones(5, 3, 2, 2).to(memory_format=LAST)).stride()
torch.ones(2, 3, 1, 1).to(memory_format=LAST).stride()
torch.empty(2, 1, 4, 4, memory_format=LAST).stride()
torch.ones(2, 3).t().to(memory_format=torch.contiguous_format).stride()
torch.nn.functional.embedding_bag(torch.arange(4), BAGS, torch.tensor([0, 2, 3]), include_last_offset=True)
torch.nn.functional.embedding_bag(torch.arange(4), BAGS, torch.tensor([0, 2, 3]), include_last_offset=True, mode="sum")
torch.nn.functional.embedding_bag(torch.arange(4), BAGS, torch.tensor([0, 2, 3]), include_last_offset=True, mode="max")
torch.nn.functional.embedding_bag(x.long() - 1, BAGS, torch.tensor([0, 1, 1]), include_last_offset=True, padding_idx=8)
torch.nn.functional.embedding_bag(torch.arange(4)[None], BAGS, padding_idx=10)
torch.nn.functional.embedding_bag(torch.arange(2)[None], BAGS, mode="sum", per_sample_weights=m[:1].double())
torch.nn.functional.fractional_max_pool2d(IMAGES, (1,), output_size=(3, 3))
torch.nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.5, 0.6))(IMAGES)
torch.nn.functional.grid_sample(IMAGES[:1], NOWHERE)
torch.nn.functional.grid_sample(IMAGES[:1], NOWHERE, padding_mode="border")
torch.nn.functional.grid_sample(IMAGES[:1], NOWHERE, "nearest", "reflection")
torch.nn.functional.cross_entropy(m, torch.tensor([2, 1]), x, ignore_index=2, label_smoothing=0.1)
torch.nn.Linear(2, 2).to(torch.device("cpu"), True)
torch.nn.Linear(2, 2).to([])
torch.nn.Linear(2, 2).to("cpu", copy=True)
torch.nn.Linear(2, 2).to(x, non_blocking=True).weight.dtype
k = torch.nn.Linear(2, 2); y = k.weight * k.weight; k._apply(lambda t: t.add_(1)); y.sum().backward()
torch.nn.UninitializedParameter().size()
torch.nn.UninitializedParameter().share_memory_()
"""
TANGENTS = """
torch.add(x, 1, out=dual)
torch.add(dual, 1, out=x)
fw.make_dual(dual, x)
fw.make_dual(x, dual)
fw.make_dual(x, torch.ones(3))
torch.igamma(dual, dual)
t = torch.ones(2); y = fw.make_dual(torch.ones(3)[:2], t); fw.unpack_dual(y).tangent.mul_(2); t
y = torch.ones(2); y.copy_(dual); fw.unpack_dual(y).tangent.mul_(2); fw.unpack_dual(dual).tangent
torch.nn.functional.batch_norm(dual[None], dual, x)
"""
ALL = dict.fromkeys(
    line
    for part in (SIZES_AND_NUMBERS, OF_NO_EXAMPLES, GRADIENTS, LAYERS)
    for line in part.replace("\\\n", "").strip().split("\n")
)
GIVEN = (
    "LAST = torch.channels_last; IMAGES = torch.arange(96.0).view(2, 3, 4, 4).to(memory_format=LAST); "
    "BAGS = torch.arange(30.0).view(10, 3); "
    'NOWHERE = torch.tensor([[[[float("nan"), 0], [0, float("inf")]]]]); '
)
IN_A_LEVEL = (
    "fw = torch.autograd.forward_ad; fw.enter_dual_level(); dual = fw.make_dual(x, torch.ones(2)); "
)


@pytest.mark.parametrize("line", ALL)
def test_both_say_the_same(line: str) -> None:
    names = [n for n in ("LAST", "IMAGES", "BAGS", "NOWHERE") if n in line]
    line = GIVEN + line if names else line
    assert answer(SUBJECT, line) == answer(ORACLE, line)


@pytest.mark.parametrize("line", TANGENTS.strip().split("\n"))
def test_both_push_the_same(line: str) -> None:
    said = []
    for side in (SUBJECT, ORACLE):
        said.append(answer(side, IN_A_LEVEL + line))
        side.root.autograd.forward_ad.exit_dual_level()
    assert said[0] == said[1]


WARNED = """
float(x.sum())
(x * x).sum().backward(create_graph=True)
torch.normal(0.0, x.detach(), out=torch.ones(3))
torch.arange(3, out=torch.ones(2))
torch.range(0, 2)
torch.meshgrid(x)
x[[slice(None)]]
torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2), padding="same")
"""


@pytest.mark.parametrize("line", WARNED.strip().split("\n"))
def test_both_warn_the_same(line: str) -> None:
    said = []
    for side in (SUBJECT, ORACLE):
        torch = side.root
        torch.set_warn_always(True)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            eval(line, {"torch": torch, "x": torch.ones(2, requires_grad=True)})
        torch.set_warn_always(False)
        said.append([(w.category, str(w.message).split(" (Triggered")[0]) for w in seen])
    assert len(said[0]) == 1
    assert said[0] == said[1]


REFUSED = [
    lambda torch, p: torch.add(p, p),
    lambda torch, p: p + 1,
    lambda torch, p: torch.empty_like(p),
    lambda torch, p: p.sum(),
    lambda torch, p: torch.optim.Adagrad([p]),
]


@pytest.mark.skipif(SELFTEST, reason="arms the functions of both sides")
@pytest.mark.parametrize("use", REFUSED)
def test_a_parameter_without_a_shape_is_refused(use: Callable[[Any, Any], object]) -> None:
    for side in (SUBJECT, ORACLE):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
            use(side.root, side.root.nn.UninitializedParameter())


KINDS = """
torch.zeros(2, dtype={}).dtype
torch.rand(2, dtype=float).dtype; torch.randn((1, 2), dtype={}).dtype
torch.full((2,), 1, dtype={}).dtype
torch.arange(3, dtype={}).dtype
torch.linspace(0, 1, 3, dtype={}).dtype
torch.tensor(1, dtype={}).dtype
torch.as_tensor([1], dtype={}).dtype
torch.zeros_like(x, dtype={}).dtype
x.new_zeros(2, dtype={}).dtype
x.to({}).dtype
x.sum(dtype={}).dtype
x.cumsum(0, dtype={}).dtype
x.double().view({}).dtype
torch.empty_strided((2,), (1,), dtype={}).dtype
x.reshape(2).t().reshape(-1)._is_view(), m.t().flatten()._is_view()
y = torch.ones(2, 3); y[True] = -torch.ones(1, 1, 2, 3); y
torch.nonzero(x, as_tuple=True, out=torch.ones(2, dtype=torch.int64))
torch.tensor_split(x, torch.tensor(1.1))
torch.tensor_split(x, torch.tensor([[1]]))
"""


@pytest.mark.parametrize("line", KINDS.strip().split("\n"))
def test_pythons_types_are_types_of_tensors(line: str) -> None:
    for kind in ("float", "int", "bool", "complex") if "{}" in line else ("",):
        asked = line.replace("{}", kind)
        assert answer(SUBJECT, asked) == answer(ORACLE, asked)
