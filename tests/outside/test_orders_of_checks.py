"""What is refused first where several things are wrong, and in which words."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

from tests.oracle import torch, tt
from tests.outside import compare
from tests.outside.compare import normal
from tests.outside.running import Program
from tests.outside.search import first_difference

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Words are compared, too. Products of more than two operands PyTorch leaves to opt_einsum, if
    that is installed, which reads equations in its own way."""
    monkeypatch.setattr(compare, "MESSAGES_COMPARED", True)
    before = torch.backends.opt_einsum.enabled
    torch.backends.opt_einsum.enabled = False
    yield
    torch.backends.opt_einsum.enabled = before


def told(root: Any, what: Any, *given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return what(root, *given).tolist()
        except Exception as e:
            return type(e).__name__, normal(str(e))


EQUATIONS = (
    "i?,ij->", "i,i?->", "i,ij->?", "i,ij->..", "i,ij->....", "i,i..j", "i,ij....", "i,ij.", "i,ij->i1",
    "i,ij->ij.", "i?", "i?,ij,", "i,ij->->", "i,ij>i", "->", "i->", " i , i j - > i", "i,i j->i", "i,ij->zz",
    "i,ij->ii", "i......,ij", "i, i..., ->", "i, i...", "ij...->", "...ij->...", "...->...", "i...j->j...i",
    "aÄ->", " . . .i", "...ij", "ii->i", "ijkl...->",
)  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    for shapes in (((2,), (2, 2)), ((2,),), ((2, 2),), ((2,), (2, 2), (2, 2)), ((2, 3, 4),)):
        theirs, ours = (told(m, product, equation, shapes) for m in (torch, tt))
        assert theirs == ours, shapes


def product(m: Any, equation: str, shapes: Any) -> Any:
    return m.einsum(equation, *(m.ones(s) for s in shapes))


@pytest.mark.parametrize(
    "name", ["index_add", "index_copy", "index_reduce", "index_fill", "index_select", "index_add_"]
)
def test_vectors_of_places(name: str) -> None:
    shapes = ((), (1,), (2,), (3,), (2, 3), (0,), (0, 2))
    places: tuple[Any, ...] = ([], [0], [0, 0], [1, 0, 2], 0, [[0]], [5], [-1])
    for given in itertools.product(shapes, shapes, places, (0, 1, -1, 2)):
        assert told(tt, along, name, *given) == told(torch, along, name, *given), given


def along(m: Any, name: str, a: Any, b: Any, at: Any, dim: int) -> Any:
    more: tuple[Any, ...] = () if "select" in name else (m.full(b, 2.0),)
    more = (3.0,) if "fill" in name else more + ("prod",) * ("reduce" in name)
    return getattr(m.ones(a), name)(dim, m.tensor(at, dtype=m.int64), *more)


PROGRAMS = (
    "x[torch.tensor([False])] = x", "x[torch.tensor([-1, -1]), torch.tensor([False, True, True, True])] = x",
    "x[torch.tensor([7])] = x", "x.index_put_([torch.tensor([[2]], dtype=torch.int16)], x)",
    "x.index_put_([torch.tensor([[2]], dtype=torch.int16)], torch.ones(5))", "x[torch.tensor([7]), 0, 0] = x",
    "c[:1].clamp_(c)", "c[0].clamp_(c[1])", "c[0].clamp_(c[0, :1])", "x[0].lerp_(3, 0.5)", "y = x.igamma(3)",
    "y = torch.linalg.cross(x > 0, x)", "y = torch.linalg.cross(x[:, :2], x > 0)", "y = torch.linalg.cross(x, x > 0)",
    "y = torch.fft.hfft(x[0, 0], out=c)", "y = torch.fft.fft(x[0, 0], out=x)", "y = torch.fft.ifft(x, norm='x', out=x)",
    "y = torch.fft.irfft(x, dim=4, out=c)", "y = torch.fft.rfft(c, out=x)", "y = x.movedim((1, 1), (2, 1))",
    "y = x.scatter(0, i, x[:, 0])", "y = x.scatter(0, i, x[None])", "y = x.scatter(0, i, x[0, 0])",
    "y = x[:1].scatter(1, i, x[0])", "y = torch.native_batch_norm(g, None, None, g, None, True, 1.0, 1.0)",
    "y = torch.nn.functional.batch_norm(x, g, g[:1], training=True)",
    "y = torch.view_as_complex(x.reshape(-1)[1:5].view(2, 2))",
    "y = torch.view_as_real_copy(self=c, out=x)", "y = torch.cat((x, x), out=x[3:])",
    "y = torch.view_as_complex(x.as_strided((2, 2), (3, 1)))",
    "y = torch.view_as_complex(x.as_strided((1, 2), (3, 1)))",
    "y = torch.view_as_complex(x.as_strided((0, 2), (3, 1)))", "y = torch.softmax(x[:, 0], 0, out=w[:])",
    "y = torch.nn.functional.max_unpool2d(x[None], i[None], 2, (2,))",
    "y = torch.nn.functional.max_unpool2d(x[None], i[None], (2,))",
    "y = torch.nn.functional.max_unpool2d(x[None], i[None], -1)",
    "y = torch.nn.functional.max_unpool3d(x[None], i[None], (2, 1))",
    "y = torch.nn.functional.max_unpool2d(x, i, 2, 2, (1,))",
    "y = x.stride(axis=-2), x.size(axis=1)", "y = x.stride(axis=5)", "y = x.size(0, axis=0)",
    "y = torch.lu_solve(x.T.half(), q.half(), p.long())", "y = torch.lu_solve(x, q, p)",
    "y = torch.linalg.lu_solve(q[:2], p.long(), x)", "y = torch.linalg.lu_solve(q[:2], p, x)",
    "y = torch.linalg.lu_solve(q, p[:2], x.T)", "y = torch.linalg.lu_solve(q, p.long(), x.T)",
    "y = torch.lu_solve(x[0], q, p)", "y = torch.nn.functional.group_norm(x, 0)",
    "y = x.masked_scatter(x > 2, x[0])", "y = x.to(torch.float8_e5m2).hash_tensor()",
    "y = torch.nn.functional.pad(x[0], (1, 1), mode='reflect')",
    "y = torch.nn.functional.pad(x[:0] > 0, (1, 1), mode='reflect')",
    "y = torch.stft(x[:0], 3, 2, 3, return_complex=True)", "y = torch.stft(x[None], 3, 2, 3, return_complex=True)",
    "y = torch.stft(x[0, :0], 3, 2, 3, pad_mode='replicate', return_complex=True)",
    "y = torch.stft(x[0, 0], 3, 2, 3, pad_mode='circular', return_complex=True)",
    "y = torch.stft(x > 0, 3, 2, 3, pad_mode='constant', return_complex=True)",
    "y = torch.stft(c[:, :1], 5, pad_mode='constant', return_complex=True)",
    "x.addr_(c[0], q[0])", "i.addr_(i[:, 0], x[0])", "y = torch.isin(-1, i, invert=True)",
    "y = torch.linalg.lstsq(x, x[:, :1], out=(x > 0, i[0], i[1], x[0]))",
    "y = torch.linalg.lstsq(x, x[:, :1], out=(torch.zeros(0), torch.zeros(0), i[:0, 0], torch.zeros(0)))",
)  # fmt: skip
HEAD = (
    "x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])",
    "c = torch.tensor([[1j, 2.0], [3.0, 4j]])",
    "i = torch.zeros((2, 3), dtype=torch.int64)",
    "g = torch.ones(3, requires_grad=True)", "q = torch.eye(3)", "p = torch.tensor([1, 2, 3], dtype=torch.int32)",
    "w = torch.ones(2)[:].requires_grad_()",
)  # fmt: skip


@pytest.mark.parametrize("line", PROGRAMS)
def test_what_comes_first(line: str) -> None:
    if any(name in line for name in ("lerp_", "igamma", "axis")):  # whose words are our own
        compare.MESSAGES_COMPARED = False
    assert first_difference(Program(0, (*HEAD, line))) is None


@pytest.mark.parametrize("kind", ["uint8", "bool", "float32"])
@pytest.mark.parametrize("one", [0, 1])
def test_one_statistic_of_a_batch_alone_is_refused_before_types(kind: str, one: int) -> None:
    def run(m: Any) -> Any:
        statistics = [None, None]
        statistics[one] = m.ones(3)
        x = m.ones(2, 3, dtype=getattr(m, kind))
        return m.native_batch_norm(x, None, None, *statistics, True, 0.1, 1e-5)[0]

    assert told(tt, run) == told(torch, run)
