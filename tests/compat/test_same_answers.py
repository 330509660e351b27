"""Expressions of users, evaluated by both: what they give, or refuse, is the same to the letter.

Each line is Python; `torch` is one package or the other, and a line after `;` sees the names that
the part before it bound.
"""

from __future__ import annotations

import warnings
from collections import deque
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, Side

OLDER_FORMS = """
torch.add(x, 2, x)
x.add(2, x)
x.clone().add_(2, x)
torch.sub(x, 2, x)
torch.add(x, 2, x, out=torch.empty(2))
torch.addmm(1, m, 1, m, m)
torch.addmm(2, m, m, m)
m.addmm(2, 3, m, m)
m.addmm(2, m, m)
torch.addcmul(x, 2, x, x)
x.clone().addcdiv_(.5, x, x)
torch.addmv(1, x, 2, m, x)
torch.addbmm(1, m, 2, m[None], m[None])
torch.baddbmm(1, m[None], 2, m[None], m[None])
torch.addr(1, m, 2, x, x)
"""
FOUND_BY_PYTORCHS_TESTS = """
x.flip()
m.permute()
m[0.0:1]
m["0":"1"]
m[torch.tensor(1, dtype=torch.int16)]
m[torch.tensor(1, dtype=torch.uint8)]
m[torch.tensor(0, dtype=torch.uint8)].shape
torch.zeros(4, 4, 3)[:, :, 1:].view(torch.float64)
torch.zeros(4, 3).t().view(torch.int8)
torch.zeros(2, 5, 256)[1::2, 1:, ::2].view(torch.int32).stride()
torch.linspace(0, 9000, 9000, out=torch.zeros(9000, dtype=torch.int16))[[1, 100, 8998]]
torch.linspace(0, 1, 7, out=torch.zeros(7, dtype=torch.float64))
torch.randint(3, 4, (torch.tensor(2), 3)).shape
torch.promote_types(torch.complex32, torch.float32)
"""
FOUND_BY_LIBRARIES = """
s = m.to_sparse(); s.new()
s = m.to_sparse(); s.new(s._indices(), s._values())
s = m.to_sparse(); s.new(s._indices(), s._values().double(), s.size())
s = m.to_sparse(); s.new(indices=s._indices(), values=s._values(), size=[4, 4])
s = m.to_sparse(); s.new(s._indices(), s._values(), 2, 2)
s = m.to_sparse(); s.new(s)
s = m.to_sparse(); s.new([2, 3])
s = m.to_sparse(); s.new(2, 3)
torch.sparse.mm(m.to_sparse_csr(), m, "sum")
torch.sparse.mm(torch.diag(x)[[0, 1, 1]].to_sparse_csr(), m, "mean")
torch.sparse.mm(m.to_sparse_csr(), m, "max")
torch.sparse.mm(torch.zeros(2, 2).to_sparse_csr(), m, "amin")
torch.sparse.mm(m.to_sparse_csr(), m, "prod")
torch.sparse.mm(m.to_sparse_csr(), m, "std")
torch.sparse.mm(m.to_sparse_csr(), m[:1], "sum")
torch.sparse.mm(m.to_sparse_csr(), m.double(), "sum")
torch.sparse.mm(m.to_sparse_csc(), m, "sum")
torch.sparse.mm(m, m, "sum")
torch.sparse.mm(m.to_sparse(), m, "sum")
torch.sparse.mm(m.to_sparse_csr(), m[None])
s = m.to_sparse_csr().requires_grad_(); torch.sparse.mm(s, m, "amax").sum().backward(); s.grad.to_dense()
s = m.to_sparse_csr().requires_grad_(); torch.sparse.mm(s, m, "mean").sum().backward(); s.grad.to_dense()
y = m.clone().requires_grad_(); torch.sparse.mm(m.to_sparse_csr(), y, "amin").sum().backward(); y.grad
vars(torch.nn.Linear(2, 1).weight)
torch.segment_reduce(x, "amax", lengths=torch.tensor([1, 1]))
torch.segment_reduce(x, "amin", lengths=torch.tensor([2]))
torch.segment_reduce(x, "std", lengths=torch.tensor([2]))
"""
CHECKS = """
torch._check(True)
torch._check(False)
torch._check(False, lambda: "why")
torch._check_index(False)
torch._check_value(False, lambda: "m")
torch._check_type(False)
torch._check_not_implemented(False)
torch._check_with(ValueError, False, lambda: "x")
torch._check(1)
torch._check(False, "text")
torch._check_tensor_all(torch.tensor([True, False]))
torch._check_tensor_all(torch.tensor([True, True]))
torch.is_storage(torch.ones(1).untyped_storage())
torch.is_storage(3)
"""
STORAGES = """
torch.UntypedStorage([1, 2, 3, 1000])
torch.UntypedStorage(1.5)
torch.UntypedStorage([1, 2, 3, 4])[1:3]
torch.UntypedStorage([1, 2, 3, 4])[-1]
torch.UntypedStorage([1, 2, 3, 4])[10]
torch.UntypedStorage([1, 2, 3, 4])["a"]
torch.UntypedStorage([1, 2, 3, 4]).float()
torch.UntypedStorage([1, 2, 3, 4]).type()
torch.UntypedStorage([1, 2, 3, 4]).fill_(3).tolist()
torch.UntypedStorage([1, 2, 3, 4]).copy_(torch.UntypedStorage([1, 2]))
torch.UntypedStorage([1, 2, 3, 4]).element_size()
torch.UntypedStorage([1, 2]).resize_(6).nbytes()
torch.TypedStorage([1, 2], dtype=torch.int64)
torch.TypedStorage(0, 0, dtype=torch.float)
torch.TypedStorage(torch.tensor([]), dtype=torch.float)
torch.TypedStorage(dtype=torch.float, device="xla")
torch.TypedStorage(wrap_storage=torch.UntypedStorage(4))
torch.TypedStorage(wrap_storage=torch.UntypedStorage([4, 0, 0, 0]), dtype=torch.int32)
torch.FloatStorage([1, 2, 3, 4])
torch.FloatStorage(2).type()
torch.FloatStorage
torch.FloatStorage(device="cpu")
torch.FloatStorage(dtype=torch.float)
torch.FloatStorage(x=1)
torch.FloatStorage(0, 0)
torch.FloatStorage("a")
torch.FloatStorage(torch.tensor([]))
torch.FloatStorage([1, 2])[0:1]
torch.FloatStorage([1, 2])[9]
torch.FloatStorage([1, 2])["a"]
torch.FloatStorage([1, 2]).half()
torch.FloatStorage([1, 2]).pickle_storage_type()
isinstance(torch.FloatStorage([1]), torch.FloatStorage)
isinstance(torch.FloatStorage([1]), torch.DoubleStorage)
torch.ByteStorage.from_buffer(bytearray([1, 2, 3, 4])).tolist()
torch.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "big").tolist()
torch.BoolStorage.from_buffer(bytearray([0, 2, 0, 4]), "big").tolist()
torch.IntStorage.from_buffer(bytearray([0, 2, 0, 4]), "odd")
torch.storage._LegacyStorage()
s = torch.FloatStorage([1, 2, 3]); s.fill_(2); s[1] = 7; s.tolist()
s = torch.FloatStorage([1, 2, 3]); copy.deepcopy([s, s])[0].tolist()
x.untyped_storage() is x.untyped_storage()
x.storage()._cdata == x[1:].storage()._cdata
torch.tensor(x.storage())
torch.tensor(x.storage(), dtype=torch.int64)
torch.tensor(x.untyped_storage(), dtype=torch.float32)
torch.ones(0).set_(x.storage(), 1, (1,))
torch.ones(0).set_(torch.arange(4.), 1, (2,), (2,))
torch.ones(0).set_(torch.DoubleStorage([1]))
torch.ones(0).set_(x.double())
torch.ones(0).set_(x.storage(), -1, (1,))
torch.ones(2, requires_grad=True).set_(x)
torch.ones(3).set_()
torch.ones(3, dtype=torch.int16).set_(torch.UntypedStorage([1, 2, 3, 4]))
torch.ones(2, 3).t().resize_(3, 2).stride()
torch.ones(2).resize_(1, 2, 3, 3, memory_format=torch.channels_last).stride()
torch.ones(2).resize_(1 << 40, 1 << 40)
torch.ones(1, 2, 3, 3).contiguous(memory_format=torch.channels_last)._version
x = torch.ones(2); x.resize_(4); x._version
"""
LAYOUTS = """
torch.empty(1, 2, 3, 3, memory_format=torch.channels_last).stride()
torch.zeros_like(torch.ones(1, 2, 3, 3), memory_format=torch.channels_last).stride()
torch.ones_like(torch.ones(1, 2, 3, 3), memory_format=torch.channels_last).stride()
torch.empty_like(torch.ones(1, 2, 3, 3, 2), memory_format=torch.channels_last_3d).stride()
torch.zeros_like(torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last)).stride()
"""
ASARRAY = """
torch.asarray(torch.ones(2, requires_grad=True))
torch.asarray(torch.ones(2, requires_grad=True), requires_grad=False)
torch.asarray(torch.ones(2, requires_grad=True) * 2, requires_grad=False)
torch.asarray(np.float64(.5))
torch.asarray(np.float64(.5), copy=False)
torch.asarray([1, 2], copy=False)
torch.asarray(torch.ones(2), dtype=torch.float64, copy=False)
torch.asarray(bytearray(b"abcdabcd"), dtype=torch.uint8)
torch.asarray(memoryview(np.arange(4.)), dtype=torch.float64, requires_grad=True)
torch.asarray(np.arange(3), dtype=torch.float32, requires_grad=True)
torch.asarray(range(3))
torch.asarray(None)
torch.asarray("abc")
torch.asarray(obj=[1.])
a = np.arange(3); b = torch.asarray(a); a[0] = 7; b
a = np.arange(3); b = torch.asarray(a, copy=True); a[0] = 7; b
"""
GRAPHS = """
torch.autograd.Variable(x, requires_grad=True)
torch.autograd.Variable(3)
isinstance(x, torch.autograd.Variable)
w = torch.ones(2, requires_grad=True); grad((t for t in [(w * 3).sum()]), [w])
w = torch.ones(2, requires_grad=True); y = (w * 3).sum(); grad(edge_of(y), w)
w = torch.ones(2, requires_grad=True); y = (w * 3).sum(); e = edge_of(w); grad(y, e)
w = torch.ones(2, requires_grad=True); h = w * 3; e = edge_of(h); grad((h * h).sum(), (e, w))
w = torch.ones(2, requires_grad=True); e = edge_of(w * 3); grad(e, w)
torch.autograd.forward_ad._current_level
w = torch.arange(6.).reshape(2, 3).requires_grad_(); w[0] = 1
w = torch.arange(6.).reshape(2, 3).requires_grad_(); w[0]._base.shape
w = torch.ones(2, requires_grad=True) * 2; v = torch.no_grad()(lambda: w[1:])(); v[0]._base is w
x[1:]._is_view(), x._is_view(), x.detach()._is_view()
torch.autograd.is_multithreading_enabled() if hasattr(torch.autograd, "is_multithreading_enabled") else True
"""
NESTED_DATA = """
torch.tensor([x])
torch.tensor([x], dtype=torch.int32)
torch.tensor([1, x])
torch.tensor([x[:1], 1])
torch.LongTensor([x, x])
torch.tensor([range(3), range(3)])
torch.tensor([deque([1, 2]), [3.0, 4.0]])
torch.FloatTensor([deque([1, 2]), [3, 4]])
torch.tensor([bytearray(b"ab"), memoryview(b"cd")])
torch.tensor({1: 2})
torch.tensor([{1: 2}])
torch.tensor({}.values())
torch.tensor(b"ab")
torch.tensor([b"ab"])
torch.tensor(["ab"])
torch.tensor([[1, 2], "ab"])
torch.tensor([np.array(1.0)])
torch.tensor([1.0, np.array(2.0)])
torch.tensor([np.ones(2), np.array(2.0)])
torch.tensor([1, [2]])
torch.tensor([1.0, [2.0]])
torch.FloatTensor([np.ones(2), {}])
torch.tensor([10**20])
torch.tensor(2**63)
torch.tensor([2**70], dtype=torch.float32)
class D:\n def __getitem__(self, i): raise KeyError(i)\n def __len__(self): return 2; torch.tensor(D())
class D:\n def __getitem__(self, i): return 1; torch.tensor([D()])
"""
INDICES_OF_SEQUENCES = """
m[[np.array([0, 1]), np.array([1, 0])]]
m[[np.array([0, 1]), 0]]
m[[np.array([0, 1])]]
m[[np.array([True, False])]]
m[[np.array(1), np.array(0)]]
m[[range(2)]]
m[deque([1])]
m[bytearray([1])]
m[b"a"]
m[[1.5]]
m[np.array([1.5])]
m[[1.5, x]]
m[[x],]
m[[x[0]],]
m[[np.array([0])] * 33].shape
m[0:2:0]
m[x:]
m[[np.array([0, 1]), np.array([1, 0])]] = -1.0; m
m[[range(2), 0]] = -1.0; m
m[0] = torch.ones(3)
m[0:1] = torch.ones(2, 2)
m[0] = np.ones(2)
m[0, 0] = np.float32(1)
m[0, 0] = np.float64(7); m
m[0, 0] = np.int32(7); m
m[0, 0] = np.bool_(True)
m[0, 0] = "a"
m[0, 0] = None
n = m.long(); n[0, 0] = 2**70
"""
STATES = """
m = torch.nn.Linear(1, 1); torch.nn.init.ones_(m.weight); torch.nn.init.ones_(m.bias); m.state_dict()
torch.nn.BatchNorm1d(1).state_dict()
type(torch.nn.Linear(1, 1).state_dict())
torch.nn.Linear(1, 1).state_dict()._metadata
copy.deepcopy(torch.nn.Linear(1, 1).state_dict())._metadata
torch.nn.Linear(1, 1).state_dict().copy()._metadata
"""
ARGUMENTS_OF_WRONG_TYPES = """
torch.zeros(2.5)
torch.zeros(2, 3.5)
torch.zeros((2.5, 3))
torch.zeros([2, 3.5])
torch.empty(2.5, 3)
torch.zeros(None)
torch.randn(2, 3.0)
torch.full((2, 3.0), 1)
torch.full(2, 1)
torch.full((2,), "a")
torch.randint(3, (2, 3.0))
torch.randint(5, 2)
m.view(2, 3.0)
m.reshape(2, 3.0)
m.reshape((3.0, 2))
m.repeat(1, "a")
m.repeat(2.0)
m.expand(2.0)
m.permute(0, 1.0)
torch.nn.Linear(2.5, 3)
torch.nn.Linear(2, 3.0)
torch.nn.Conv2d(3, 4, 3.0)
torch.nn.Embedding(3.0, 2)
torch.nn.BatchNorm1d(3.0)
torch.ones(2, dtype="float32")
torch.empty(2, dtype=3)
torch.stack(m)
torch.cat(m)
torch.kron(m, 3)
m.mean(dtype=torch.int64)
m.to("float32")
torch.device("")
torch.device("cuda0")
torch.device(":")
torch.nn.functional.cross_entropy(m, torch.tensor([[1], [1]]))
torch.nn.functional.cross_entropy(torch.zeros(4, 3), torch.tensor([1, 3, 9, 2]))
torch.nn.functional.cross_entropy(torch.zeros(3, 3), torch.tensor([1, -1, 7]))
"""
LINES = {
    f"{name} {n}": line
    for name, text in (("older forms", OLDER_FORMS), ("storages", STORAGES), ("checks", CHECKS),
                       ("found by PyTorch's tests", FOUND_BY_PYTORCHS_TESTS),
                       ("found by libraries' tests", FOUND_BY_LIBRARIES), ("layouts", LAYOUTS),
                       ("asarray", ASARRAY), ("graphs", GRAPHS),
                       ("nested data", NESTED_DATA), ("indices", INDICES_OF_SEQUENCES),
                       ("wrong types", ARGUMENTS_OF_WRONG_TYPES), ("states", STATES))
    for n, line in enumerate(text.strip().splitlines())
}  # fmt: skip


def answer(side: Side, line: str) -> str:
    """What a line gives, as text, or the class and words of its error."""
    import copy

    torch = side.root
    space: dict[str, Any] = {
        "torch": torch, "np": np, "copy": copy, "deque": deque, "x": torch.tensor([1.0, 2.0]),
        "m": torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        "grad": torch.autograd.grad, "edge_of": torch.autograd.graph.get_gradient_edge,
    }  # fmt: skip
    *before, last = line.split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec("\n".join(before), space)
            made = eval(last, space) if " = " not in last else exec(last, space)
        except Exception as error:
            said = str(error).split("\n")[0].split("(Triggered")[0]
            return f"{type(error).__name__}: {said[:90]}"
    return repr(made).replace("toytorch", "torch")


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_both_say_the_same(line: str) -> None:
    assert answer(SUBJECT, line) == answer(ORACLE, line)
