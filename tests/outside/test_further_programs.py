"""More short programs of which both sides do the same, each a rule that random programs had found
broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from tests.outside.alike import told_rounded
from tests.outside.test_short_programs import differing, statements

pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAMS = {
    "a root by a tensor is C's power, by a number a square root": """
        x = torch.tensor([-math.inf, -0.0, 4.0])
        a = x ** torch.tensor(0.5), x ** 0.5, x[0] ** torch.tensor(0.5), x[0] ** torch.tensor(-0.5)
        b = 1 / (x ** torch.tensor(0.5)), torch.pow(x.double(), torch.tensor(0.5).half())
        c = torch.repeat_interleave(torch.tensor([1, 2], dtype=torch.int32))
    """,
    "least squares ask for the type last, and say of what is missing where rcond is given": """
        x = torch.ones(2, 3, dtype=torch.int64)
        a = torch.linalg.lstsq(x, x)
        a = torch.linalg.lstsq(x, x, 0.5)
        a = torch.linalg.lstsq(x.half(), x.half(), rcond=0.5)
    """,
    "a periodic window lies in the memory of its whole period": """
        w = torch.hann_window(3)
        a = w.untyped_storage().nbytes(), w._base is None
        b = torch.kaiser_window(2, requires_grad=True).as_strided((3,), (1,))
        c = torch.hamming_window(3, False).untyped_storage().nbytes()
    """,
    "parts of what shows an inference tensor have no base": """
        with torch.inference_mode():
            x = torch.ones(3, 1)
        y = x.detach()
        a = y.split(1, 1)[0]
        b = y.unbind(0)[0]
    """,
    "what a recurrent network gives may be written over, but of the fused LSTM": """
        x = torch.ones(3, 2, 2)
        for kind in ("RNN", "GRU", "LSTM"): y = seeded(getattr(torch.nn, kind)(2, 2))(x)[0].relu_().sum().backward()
        y = seeded(torch.nn.LSTM(2, 2)).double()(x.double())[0].mul_(2).sum().backward()
        y = seeded(torch.nn.RNN(2, 2))(x)[0].mul_(2).sum().backward()
    """,
    "what a mask is filled with has room in the type, a tensor of one element too": """
        x = torch.ones(1, 3, dtype=torch.int16)
        x[:, torch.tensor([True, False, True])] = torch.tensor([[1e9]])
        x[:, torch.tensor([True, False, True])] = torch.full((1, 1), 2j)
        x[torch.tensor([[True, False, True]])] = torch.tensor(float("nan"))
        y = torch.ones(3).half()
        y[torch.tensor([True, False, True])] = torch.tensor([1e9], requires_grad=True)
        y[torch.tensor([True, False, True])] = torch.tensor([3], requires_grad=False)
    """,
    "scatters by a rule have no derivative of complex results": """
        x = torch.zeros(2, 3, dtype=torch.complex64, requires_grad=True)
        i = torch.zeros(2, 3, dtype=torch.int64)
        a = x.scatter_reduce(1, i, x.detach(), "sum")
        a = x.detach().scatter_reduce(1, i, x, "prod")
        a = x.index_reduce(0, i[0, :2], x.detach(), "mean")
    """,
    "a new shape of out= shows in the inference tensor whose memory it has": """
        with torch.inference_mode():
            x = torch.ones(2)
        y = x.detach()
        z = torch.mul(torch.ones(6), 3, out=y)
    """,
    "arguments that PyTorch takes as any number, or as lists of integers alone": """
        x, t = torch.ones(2, 3), torch.zeros(2, dtype=torch.int64)
        a = torch.nn.functional.multi_margin_loss(x, t, 2.0)
        a = torch.nn.functional.multi_margin_loss(x, t, 1.5)
        a = torch.tensordot(x, x, (1, 1))
        a = torch.tensordot(x, x.half(), ([1], 1))
        a = torch.nn.functional.adaptive_avg_pool3d(torch.ones(3, dtype=torch.int32), 1)
        a = torch.nn.functional.adaptive_avg_pool3d(torch.ones(3), 1)
    """,
    "a number for a device stands for a card, which there is none of": """
        a = torch.zeros(2, device=0)
        a = torch.randn(2, device=0)
        a = torch.randint(2, (2,), device=0)
        a = torch.zeros_like(torch.ones(2), device=0)
        a = torch.ones(2).new_zeros(2, device=0)
        a = torch.ones(2).to(0)
        a = torch.device(0).type
    """,
    "no derivative of what was written through a view that wants none": """
        a = torch.ones(1, 3, requires_grad=True)
        b = torch.full((2, 1, 3), 2.0)
        v = b.transpose(1, 0)
        v.floor_divide_(a)
        g = torch.autograd.grad(v, [a], torch.ones_like(v), allow_unused=True)
        w = torch.ones(2, 3)[:, 0]
        h = torch.floor_divide(a[0, :2], torch.ones(2), out=w)
        g = torch.autograd.grad(w, [a], torch.ones_like(w), allow_unused=True)
        g = torch.autograd.grad(w, [w], torch.ones_like(w), allow_unused=True)
        y = torch.ones(2) // a[0, :2]
        y.sum().backward(inputs=[y])
    """,
    "histograms of halves round each step as they do": """
        x = torch.arange(40.0).sin() * 3
        a = torch.histc(x.half(), 93), torch.histc(x.bfloat16(), 93), torch.histc(x, 93)
        b = torch.histc(x.half(), 50, -1, 1.3), torch.histc(x.bfloat16(), 50, -1, 1.3)
    """,
    "copies of views count writes to what they refuse, or give a shape, as PyTorch does": """
        x, o = torch.ones(2, 3), torch.zeros(3, 3, dtype=torch.float64)
        a = torch.view_copy(x, (1, -1), out=o)
        a = torch.diagonal_copy(x, out=o)
        p, q = torch.zeros(0), torch.zeros(0)
        a = torch.unbind_copy(x, out=[p, q])
    """,
    "gradients of views by strides lie as the leaf does, gaps and all": """
        a = torch.ones(3, 6)[:, ::2].requires_grad_()
        g = torch.autograd.grad(a.as_strided((2, 3), (1, 1), 1).abs().sum(), a)
        b = torch.ones(3, 1).expand(3, 2).detach().requires_grad_()
        g = torch.autograd.grad(b.as_strided((2, 2), (1, 0)).abs().sum(), b)
    """,
    "the gradient of a view of nothing has no history": """
        a = torch.zeros(1, 0, 3)
        v = a[0]
        v.mul_(v)
        a.requires_grad_()
        g = torch.autograd.grad(v.abs().sum(), [v, a], create_graph=True)
        b = torch.zeros(2, requires_grad=True)
        g = torch.autograd.grad(b.as_strided((0, 2), (1, 1)).exp().sum(), b, create_graph=True)
    """,
    "data from inference mode, and what counts writes after it": """
        x = torch.ones(2)
        x.add_(1)
        with torch.inference_mode():
            i = torch.ones(2)
        x.data = i
        n = x._version
        x.data = torch.zeros(3)
        x.add_(1)
        n = x._version, x.is_inference()
    """,
    "traced functions refuse to write to what inference mode made": """
        with torch.inference_mode():
            i = torch.ones(2, 1)
        def f1(x0):
            x0.mul_(x0)
            return x0 * 2
        f1 = traced(f1, (torch.ones(2, 1),))
        a = f1(i)
    """,
    "places to write to of the older LU, and of other types than a solution's": """
        x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
        i, j = torch.zeros(0, dtype=torch.int32), torch.zeros((), dtype=torch.int64)
        a = torch.lu(x, out=(torch.ones(3, dtype=torch.float64), i))
        b = torch.lu(x, True, True, [torch.zeros(0), i, j])
        c = torch.lu(x, get_infos=True, out=(torch.zeros(0), i))
        d = torch.linalg.solve_ex(x, x, out=(torch.zeros(0), j))
        e = torch.linalg.solve_ex(x, x, out=(torch.zeros(0, dtype=torch.float64), i))
    """,
    "parts of what a trace does not return are no views of each other": """
        def f1(x0):
            y1 = x0 * 2
            return y1[0], y1[1:]
        f1 = traced(f1, (torch.ones(3),))
        a = f1(torch.ones(3))
        b, c = a[0], a[1]
        b.requires_grad = True
        n = c.requires_grad
    """,
    "an out= that gets another shape in a trace keeps its history": """
        a = torch.ones(2, 3).t().contiguous().t().requires_grad_()
        def f1(x0):
            y1 = x0.sum()
            y2 = torch.logical_or(x0, x0, out=y1)
            return y2
        f1 = traced(f1, apart(a))
        b = f1(a)
    """,
    "powers beside complex numbers, and cubes of halves in another order": """
        z = torch.ones(2, dtype=torch.complex64)
        a = z.ldexp(torch.tensor(-1.856, dtype=torch.float16))
        a = z.to(torch.complex128).ldexp(torch.tensor(-1.5)) - 0.5 ** 1.5
        a = torch.ldexp(torch.tensor(1, dtype=torch.float16), torch.tensor(-1.5).bfloat16())
        a = z.ldexp(torch.ones(2, dtype=torch.float16))
        a = torch.ones(1, 1, 2, 1, dtype=torch.bfloat16).expand(2, 2, 2, 3) ** 3
    """,
    "what a Kronecker product keeps is not seen to change": """
        w = torch.ones(2, requires_grad=True)
        x = torch.ones(1, 2)
        y = torch.kron(x, w)
        x.mul_(2)
        y.sum().backward()
    """,
    "a sign without a gradient": """
        x = torch.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
        s, l = torch.slogdet(x)
        s.backward()
        (s + l).backward()
    """,
    "what is no type": """
        x = torch.ones(2)
        a = x.to(None, dtype=1)
        a = x.to("cpu", True)
        a = x.to(dtype="torch.FloatTensor")
        a = torch.zeros(2, dtype=x)
        a = x.sum(dtype=1)
        a = torch.softmax(x, 0, dtype="float32")
        a = torch.tensor(2, dtype=object)
        a = x.type("torch.NoTensor")
        a = x.type("torch.DoubleTensor")
        a = torch.ones(2, 2, 2, 2).stft(2, 1, 2, x, return_complex=True)
    """,
    "a traced function does not use a view that must not be": """
        v = torch.ones(3, requires_grad=True)
        w = v.split(1)[-1]
        with torch.no_grad():
            v.add_(1)
        def f1(x0, x1):
            y1 = x1 + 1
            return y1
        f1 = traced(f1, (v, v,))
        a = f1(v, v)
        a = f1(w, v)
        a.sum().backward()
    """,
    "which refusal of an index is the first": """
        x = torch.zeros(2, 1, 3, dtype=torch.bool)
        x[..., torch.tensor([1, -2]), [0]] = torch.ones(2, 1, 3, dtype=torch.complex64)
        x[torch.tensor([True, False]), [7]] = torch.ones(2, 2, 3)
        x[torch.tensor([1, 2]), [7]] = torch.ones(2, 2)
        y = torch.ones(3, requires_grad=True) * 1
        z = list(y)[-1]
        y.neg_()
        z[::2] += 2
        z[0]
    """,
    "matrices that are none, logits of nothing, complex weights": """
        z = torch.tensor(-0.5, requires_grad=True) * 1
        z.addmm_(z.clone(), z)
        p = torch.tensor([-0.0, 0.0, 1.0, 0.5], requires_grad=True)
        torch.logit(p, 0.0).sum().backward()
        a = p.grad
        a = torch.bincount(torch.tensor([0, 1, 1]), torch.tensor([1 + 2j, 2 - 1j, 3.0]))
        a = torch.special.zeta(float("inf"), torch.tensor([0.5, 1.0, 2.0, -1.0]))
        a = torch.searchsorted(p.detach(), p.detach(), side="left", right=True)
    """,
    "what is no integer, no bound or no way to reduce": """
        x = torch.arange(6.0).reshape(2, 3)
        a = torch.chunk(x, True), x.diff(n=1)
        a = torch.chunk(x, 2, None)
        a = x.diff(1.5)
        a = torch.cov(x, correction=1.5)
        a = torch.cosine_similarity(x, x, (1,))
        a = torch.diagonal(x, True)
        a = x.view(True, 6)
        a = torch.sum(x, True)
        a = torch.flip(x, [0, True])
        a = torch.cdist(x, x, float('nan'))
        a = torch.cdist(x, x, 1.0, 1)
        a = torch.allclose(x, x, float('nan'))
        a = torch.clamp(x, 0, x)
        a = torch.clamp(x, torch.tensor(0), 2), torch.clamp(x, torch.tensor(0), x)
        a = torch.nn.functional.mse_loss(x, x, reduction=1)
        a = torch.tensordot(x, x, 2, (0, 0))
    """,
    "what goes into out= without a history, or does not go": """
        x = torch.arange(6.0).reshape(3, 2).requires_grad_()
        y = torch.zeros(1, 2).requires_grad_()
        z = torch.zeros(2, 2).requires_grad_() * 1
        y.copy_(1)
        a = torch.split_with_sizes_copy(x, [1, 2], out=[y, z])
        a = torch.unbind_copy(x, 1, out=[torch.zeros(3), torch.zeros(3)])
        a = torch.unbind_copy(x.detach(), 1, out=[torch.zeros(3), x.detach().requires_grad_()[:, 0]])
        a = torch.linalg.ldl_factor(torch.eye(2), out=(torch.zeros(2, 2).requires_grad_(), torch.zeros(2).int()))
        b, c = torch.linalg.lu_factor(torch.eye(2))
        a = torch.lu_unpack(b, c, out=(torch.zeros(2, 2).double(), torch.zeros(2, 2), torch.zeros(2, 2)))
    """,
    "factors that come last, under a second name first, or not at all": """
        x = torch.ones(2).byte()
        y = torch.tensor([3.0, 4.0])
        a = torch.subtract(x, 1e-3, 3)
        b = x.subtract(1, 2.5)
        c = torch.rsub(x, 2, torch.tensor(3))
        d = torch.sub(x, y, 3)
        e = torch.subtract(x, 3, y)
        f = torch.subtract(x, 3, 2, out=y)
        y.subtract_(1, 2j)
        y.subtract_(1.5, 2)
        y.sub_(y, 2)
    """,
    "out= of another shape that is filled, or laid in rows": """
        x = torch.ones(3, 1).requires_grad_() * 1
        a = torch.linalg.matrix_rank(torch.zeros(2, 0), out=x)
        b = torch.cholesky_inverse(torch.eye(2), out=torch.zeros(3))
    """,
    "extremes of all go over a part of what they are of": """
        x = torch.arange(6)
        a = torch.aminmax(x, out=(x[0], torch.tensor(0)))
        b = torch.aminmax(x, dim=0, out=(x[0], torch.tensor(0)))
    """,
    "a leaf is no out= of a function of records, nor is a view of it, where functions are traced": """
        x = torch.ones(2).requires_grad_()
        def f1(x0):
            y1 = torch.special.ndtr(x0, out=x0[...])
            return y1
        f1 = traced(f1, (x,))
    """,
    "the mean loss of no complex scores": """
        a = torch.nn.functional.cross_entropy(torch.zeros(0, 3, dtype=torch.complex64), torch.zeros(0, 3))
    """,
    "which refusal of batch norm and of narrow_copy comes first": """
        x = torch.ones(2, 2, 3).long().transpose(1, 2)
        a = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
        b = torch.native_batch_norm(x, torch.ones(3), None, None, None, True, 0.1, 1e-5)
        y = torch.ones(2, 2).requires_grad_()
        c = torch.narrow_copy(y, 0, 5, 1, out=y)
    """,
    "both results of a triangular solution want gradients": """
        a = torch.eye(2)
        b = torch.ones(2, 1).requires_grad_()
        c = torch.triangular_solve(b, a)
        d = torch.triangular_solve(b.detach(), a.clone().requires_grad_())
        e = torch.triangular_solve(b.detach(), a)
        f = torch.triangular_solve(torch.ones(3, 2, 2).requires_grad_(), a, False)
        c[1].sum().backward()
    """,
    "losses of margins, however they are reduced": """
        x = torch.tensor([[-1.0, 2.0], [3.0, 0.5]]).requires_grad_()
        y = torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[0, -1], [1, 0]]), reduction='sum')
        z = torch.nn.functional.multi_margin_loss(x, torch.tensor([0, 1]), reduction='none')
        q = (y + z.sum()).backward()
    """,
    "what a loss of classes asks first": """
        a = torch.tensor([2, 1, 5])
        w = torch.tensor([1.0, 2.0, 3.0])
        b = torch.nn.functional.nll_loss(a, torch.tensor(0), weight=w.double())
        b = torch.nn.functional.nll_loss(a.reshape(1, 3, 1), torch.tensor([[0]]), weight=w)
        b = torch.nn.functional.nll_loss(a.double(), torch.tensor(0), weight=w)
        b = torch.nn.functional.nll_loss(a, torch.tensor(0), weight=w[:2])
    """,
    "gradients of running sums of exponentials": """
        a = torch.zeros(0, 3).requires_grad_()
        b = a.logcumsumexp(0)
        c = torch.autograd.grad(b.abs().sum(), [b, a])
        a = torch.tensor([-float('inf'), 1.0, -float('inf'), 2.0, float('inf'), 3.0]).requires_grad_()
        b = a.logcumsumexp(0)
        b.backward(torch.tensor([1.0, 0.0, -1.0, 2.0, 3.0, -2.0]))
    """,
    "a stack is one matrix only where it lies so": """
        a = torch.ones(2, 2, 3).permute(2, 0, 1)
        b = a.half() @ torch.zeros(2, 3).half()
        c = a.half() @ torch.zeros(2, 3)
        d = a.contiguous().half() @ torch.zeros(2, 0)
    """,
    "views of integers with a history": """
        a = torch.tensor([4, -1, 0, 3, 5])
        b = torch.tensor(-1.0).requires_grad_()
        a[a > 0] = b
        with torch.no_grad():
            c = a.view(-1), a[1:], a.expand(2, 5), a.detach(), a[:2].squeeze(), a.view(torch.int32)
            d = a.unbind(0), a.split(2), a.as_strided((2,), (1,)), a.unfold(0, 2, 1), a.reshape(5, 1)
    """,
    "an out= made in inference mode is not resized outside": """
        with torch.inference_mode():
            a = torch.ones(0)
        c = torch.logspace(start=0, end=2.5, steps=3, out=a)
        c = torch.arange(3, out=a)
        c = torch.eye(2, out=a)
        c = torch.randn(2, out=a)
    """,
    "a layer of a matrix and a bias of any shape": """
        a = torch.ones(0, 1).requires_grad_()
        b = torch.nn.functional.linear(a, a, a)
        c = torch.ones(2, 3).requires_grad_()
        d = torch.nn.functional.linear(c, torch.ones(4, 3), torch.ones(2, 4))
        d = torch.nn.functional.linear(c, torch.ones(4, 3), torch.ones(2, 1))
        d = torch.nn.functional.linear(c, torch.ones(4, 3), torch.tensor(1.0))
        d = torch.nn.functional.linear(c, torch.ones(4, 3), torch.ones(3, 2, 4))
    """,
    "degrees that no integer holds": """
        a = torch.tensor([0.5, 3.0, -0.542, 1.0, 0.0])
        b = torch.tensor([1e30, float('inf'), -1e30, 129.0, float('nan')])
        c = torch.special.hermite_polynomial_he(a, b)
        d = torch.special.hermite_polynomial_h(a, 1e30)
        e = torch.special.laguerre_polynomial_l(a, b)
    """,
    "exponents beside complex numbers": """
        a = torch.tensor([complex(1, 2), complex(0.5, -1), complex(-1, 0)])
        b = torch.tensor([float('inf'), 1.0, -float('inf')])
        c = torch.ldexp(a, b), torch.ldexp(a, b.double()), a.ldexp(b.sign().nan_to_num().int())
        d = torch.ldexp(a, b.half())
        a.ldexp_(b)
    """,
    "dimensions of diagonals and of vectors": """
        a = torch.tensor(1.0).diag_embed(dim1=-1)
        b = torch.linalg.vecdot(torch.ones(3), torch.ones(3), dim=-2)
        c = torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1, 2]), torch.ones(2))
        d = torch.linalg.ldl_solve(torch.ones(2, 3), torch.tensor([1, 2]), torch.tensor(1.0))
        e = torch.lu_unpack(torch.tensor(1.0), torch.tensor(1, dtype=torch.int32))
    """,
    "NumPy's words for a first argument": """
        a = torch.ones(1, 2, 4, 4)
        b = torch.max_pool2d(x=a, kernel_size=(2, 1)), torch.max_pool1d(a=a[0], kernel_size=2)
        a.copy_(other=a * 2)
        a.copy_(src=a)
        c = torch.nn.functional.logsigmoid(x=a), torch.nn.functional.relu_(x=a)
    """,
    "variances that float32 does not hold": """
        a = torch.tensor([[1e30, 0.6], [-0.5, 0.0], [1.8, 1.5], [-1.0, 2.5]])
        b = torch.nn.functional.batch_norm(a, None, None, training=True)
        c = torch.nn.functional.batch_norm(a.t().contiguous().t(), None, None, training=True)
    """,
    "exponentials of matrices of a stack that is no view of one": """
        a = torch.arange(24.0).reshape(2, 2, 3, 2).permute(0, 2, 1, 3) / 24
        b = torch.matrix_exp(a)
        c = torch.matrix_exp(a[..., :1, :1])
    """,
    "detached in place within traces": """
        a = torch.ones(2).requires_grad_()
        def f1(x):
            y = x * 2
            y.detach_()
            return y * x
        def f2(x0, x1):
            y = torch.detach_(input=x1)
            return y, x0
        f1 = traced(f1, apart(a))
        b = f1(a)
        b.sum().backward()
        f2 = traced(f2, apart(a, torch.ones(2)))
        c = a * 2
        d = f2(torch.ones(2), c)
    """,
    "a slice alone is a slice, whatever it takes": """
        x = torch.ones(3).requires_grad_()
        a, b, c = x[:], x[::1], x[(slice(None),)]
        d, e = x[None][:], x[None][:, :]
        f = torch.autograd.grad(a.sum(), [a, x])
        g = torch.autograd.grad(c.sum(), [c, x])
    """,
    "signs of zeros in sums and differences of complex numbers": """
        a = torch.tensor([complex(x, y) for x in (0.0, -0.0, 1.5, -1.0) for y in (0.0, -0.0, -2.0)])
        b = [(a - a.flip(0)).sqrt(), (a + a.flip(0)).sqrt(), (a - 3).sqrt(), (3 - a).sqrt(), (a + 3).angle()]
        c = torch.view_as_real(a - a).signbit(), torch.view_as_real(a + a).signbit()
        def f1(x):
            return torch.view_as_real(x - 3).signbit(), torch.view_as_real(3 - x).signbit()
        f1 = compiled(f1)
        d = f1(a)
        e = f1(a)
    """,
    "refused with an out= for another reason": """
        a = torch.ones(2).double()
        b = torch.ones(2, dtype=torch.bool)
        def f1(x, y):
            return torch.floor(y, out=x)
        f1 = traced(f1, apart(a, b))
    """,
}


@pytest.mark.parametrize("about", PROGRAMS)
def test_both_do_the_same(about: str) -> None:
    assert not differing(statements(PROGRAMS[about]))


OF_REALS: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda m, x: x.softmax(0),
    "log_softmax": lambda m, x: x.log_softmax(0),
    "softmax of real numbers": lambda m, x: m.softmax(x.real, 0, dtype=m.complex64),
    "amax": lambda m, x: x.amax(1),
    "amin": lambda m, x: x.amin(1),
    "cummax": lambda m, x: x.cummax(1),
    "cummin": lambda m, x: x.cummin(1),
    "geqrf": lambda m, x: m.geqrf(x),
    "median": lambda m, x: x.median(),
    "nanmedian": lambda m, x: x.nanmedian(),
    "mode": lambda m, x: x.mode(1),
    "nan_to_num": lambda m, x: x.nan_to_num(),
    "nan_to_num_": lambda m, x: (x * 1).nan_to_num_(),
    "normal": lambda m, x: m.normal(x, 1.0).sum() * 0,
    "bernoulli": lambda m, x: m.bernoulli(x),
    "slice_copy": lambda m, x: m.slice_copy(x, 0, 0, 1),
    "slice_scatter": lambda m, x: m.slice_scatter(x, x),
    "silu": lambda m, x: m.nn.functional.silu(x),
    "silu in place": lambda m, x: m.nn.functional.silu(x * 1, inplace=True),
    "entropy": lambda m, x: m.nn.functional.binary_cross_entropy_with_logits(m.ones(x.shape), x),
}


@pytest.mark.parametrize("name", OF_REALS)
def test_complex_results_of_what_is_differentiated_for_real_numbers(name: str) -> None:
    for shape in ((0, 3), (2, 2)):
        for wants in (False, True):

            def called(m: Any, shape: tuple[int, ...] = shape, wants: bool = wants) -> Any:
                x = m.ones(shape, dtype=m.complex64, requires_grad=wants)
                made = OF_REALS[name](m, x)
                return [t.requires_grad for t in (made if isinstance(made, tuple) else (made,))]

            got, want = told_rounded(tt, called), told_rounded(torch, called)
            assert got[0] == want[0], (shape, wants)  # the class of an error, or the first answer


DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        name: lambda m, x, name=name: getattr(x, name)()
        for name in [
            "bernoulli_",
            "normal_",
            "uniform_",
            "exponential_",
            "cauchy_",
            "log_normal_",
            "random_",
        ]
    },
    "geometric_": lambda m, x: x.geometric_(0.5),
    "bernoulli": lambda m, x: m.bernoulli(x),
    "normal": lambda m, x: m.normal(x, 1.0),
    "randn_like": lambda m, x: m.randn_like(x),
    "rand_like": lambda m, x: m.rand_like(x),
    "poisson": lambda m, x: m.poisson(x),
}


@pytest.mark.parametrize("kind", ["complex64", "int64", "bool", "float16"])
@pytest.mark.parametrize("name", DRAWS)
def test_where_nothing_is_drawn_no_type_is_refused(name: str, kind: str) -> None:
    def called(m: Any) -> Any:
        made = DRAWS[name](m, m.zeros((0, 3), dtype=getattr(m, kind)))
        return str(made.dtype)[-8:], tuple(made.shape)

    assert told_rounded(tt, called) == told_rounded(torch, called)


@pytest.mark.parametrize("mode", ["linear", "bilinear", "bicubic", "trilinear"])
def test_weights_of_0_beside_infinities(mode: str) -> None:
    shape = {"linear": (2, 2, 5), "trilinear": (1, 2, 3, 2, 2)}.get(mode, (1, 2, 3, 4))
    numbers = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    numbers.reshape(-1)[[1, 5, -2]] = np.inf, np.inf, -np.inf
    for scale in (1, 2, 0.5, 1.5):
        for corners in (False, True):
            got, want = (
                m.nn.functional.interpolate(
                    m.from_numpy(numbers), scale_factor=scale, mode=mode, align_corners=corners
                ).numpy()
                for m in (tt, torch)
            )
            np.testing.assert_allclose(got, want, 1e-4, 1e-5)


LIES: dict[str, Callable[[Any], list[Any]]] = {
    "overlapping": lambda x: [x[:1], x[1:]],
    "distinct": lambda x: [x[:1].clone(), x[1:].clone()],
    "alias": lambda x: [x[:1], x[:1].detach()],
    "view": lambda x: [x[:1], x[:1].view_as(x[:1])],
    "same": lambda x: [x[:1]] * 2,
}


@pytest.mark.parametrize("example", LIES)
def test_a_view_of_what_an_out_moves_stays_known_to_a_trace(example: str) -> None:
    def moved(x: Any, y: Any) -> Any:
        shown = x.reshape((-1,))
        tt.mul(tt.tensor([[1, 1, 1]]), 2, out=y)
        return shown

    def numbers() -> Any:
        return tt.tensor([0.92, 0.5], dtype=tt.float64)

    traced = tt.jit.trace(moved, tuple(LIES[example](numbers())), check_trace=False)
    for lie in LIES.values():
        for _ in range(2):
            a, b = lie(numbers()), lie(numbers())
            want, got = moved(*a), traced(*b)
            assert [t.tolist() for t in (got, *b)] == [t.tolist() for t in (want, *a)]
