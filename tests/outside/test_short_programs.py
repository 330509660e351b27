"""Short programs of which both sides do the same, statement by statement: each stands for a rule."""

from __future__ import annotations

import pytest

from tests.outside.compare import Difference
from tests.outside.running import Program
from tests.outside.search import first_difference

pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAMS = {
    "bounds of a range of whole numbers are compared as they are": """
        a = torch.range(2.5, 2, dtype=torch.int64)
        b = torch.range(2, 2.5, dtype=torch.int64), torch.range(2.5, 2.9, out=torch.zeros(1, dtype=torch.int32))
        c = torch.range(2.9, 2, out=torch.zeros(0, dtype=torch.uint8))
    """,
    "what is traced for another shape, and fails where nobody looks": """
        def f(x):
            y = x * 2
            torch.nn.functional.poisson_nll_loss(y.data, y, reduction="sum")
            return y
        f = traced(f, (torch.ones(2, 3),))
        a = f(torch.ones(3, 2))
        b = f(torch.ones(3, 2).requires_grad_())
    """,
    "one element is filled in from memory that is somebody's data": """
        a = torch.tensor([2.0, -1.0])
        b = torch.tensor([1.0])
        b.data = a[:1]
        a[a > 0] = b
        a[a > 9] = b[0]
    """,
    "functions of nothing in a compiled function": """
        def f(x):
            torch.unravel_index(torch.tensor(0), ())
            return x * 2
        f = traced(f, (torch.ones(2),))
        a = f(torch.ones(2).requires_grad_())
    """,
    "NaN of bfloat16 is the last, and close to itself": """
        a = torch.tensor([1.0, nan, nan, 2.0, 2.0], dtype=torch.bfloat16)
        b = a.isclose(a, equal_nan=True)
        c = a.allclose(a, rtol=0.5, equal_nan=True)
        d = torch.unique(a, return_inverse=True, return_counts=True)
    """,
    "layers of recurrence over a batch of nothing": """
        a = seeded(torch.nn.LSTM(3, 2))(torch.zeros(2, 0, 3))
        b = seeded(torch.nn.LSTM(3, 2))(torch.zeros(2, 1, 3))
    """,
    "images of one place have no format that strides tell": """
        a = torch.ones(2, 1, 1, 1).requires_grad_()
        b = a[::2].contiguous(memory_format=torch.channels_last)
        c = b.to(memory_format=torch.channels_last)
    """,
    "what is equally infinite has no difference": """
        a = torch.tensor([complex(-inf, inf), complex(-inf, 1), complex(inf, 1), complex(inf, 1)])
        b = torch.tensor([complex(-inf, 0), complex(-inf, 2), complex(inf, 2), complex(-inf, 0)])
        c = torch.logaddexp(a, b), torch.logaddexp(b, a)
    """,
    "memory of nothing is saved as two types": """
        a = torch.zeros(1, 0, 2)
        b = saved([a.view(torch.int32), a])
    """,
    "the data of what is detached from an inference tensor": """
        with torch.inference_mode():
            a = torch.ones(2) + 1
        b = a.detach().data.is_inference(), a.data.is_inference()
    """,
    "losses of complex numbers that have no derivative": """
        a = torch.ones(2, dtype=torch.complex64).requires_grad_()
        b = torch.nn.functional.soft_margin_loss(a, torch.tensor([True, False]))
    """,
    "masks of one dimension": """
        a = torch.ones(2, 2, 3, 2)
        b = torch.nn.functional.scaled_dot_product_attention(a, a, a, torch.zeros(3))
        c = torch.nn.functional.scaled_dot_product_attention(a[0], a[0], a[0], torch.zeros(3))
    """,
    "a product of a column and a row is written over the column": """
        a = torch.arange(5.0)
        b = torch.outer(a, torch.ones(1), out=a.unsqueeze(-1))
        c = torch.outer(a, torch.ones(5), out=a)
        d = torch.outer(a, torch.ones(5), out=a[:4])
    """,
    "real gradients of complex results are summed as real numbers": """
        a = torch.ones(2, 1, 2, dtype=torch.float64).requires_grad_()
        b = torch.ones(2, 3, 2, dtype=torch.complex64)
        c = torch.autograd.grad((b - a).abs().sum(), [a])
        d = torch.autograd.grad((b[:, :1] * a).abs().sum(), [a])
    """,
    "who may write is asked before what": """
        a = torch.ones(2, 3).requires_grad_()
        a[[0, 1], 0] = torch.zeros(0, 3)
        torch.ones(0, 3).requires_grad_()[[0, 0], 0] = torch.zeros(0, 3)
        a.index_put_((torch.tensor([9]),), torch.zeros(3))
    """,
    "one element is filled in from the same memory": """
        a = torch.tensor([2.0, -1.0])
        a[a > 0] = a[:1]
        a.index_put_((a > 0,), a[1:])
        a[torch.tensor([0, 1])] = a[1:]
    """,
    "a leaf that an out= without a derivative resizes": """
        a = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
        b = a * 3
        torch.less_equal(torch.ones(3, 2, 2), torch.ones(2, 2), out=a)
        b.backward(torch.ones(2, 2))
    """,
    "the norm of one element is its size": """
        a = torch.tensor([[1e30], [1e-30]])
        b = torch.linalg.vector_norm(a, 2, -1), a.norm(2, (1,), keepdim=True), a[0].norm()
        c = torch.nn.functional.cosine_similarity(a, a.double(), dim=-1)
        d = torch.nn.functional.cosine_similarity(a, a, dim=-1)
        e = torch.nn.functional.normalize(a.requires_grad_(), dim=-1)
        e[0].sum().backward()
    """,
    "too large numbers are filled in once only": """
        a = torch.full((1,), 1e30, dtype=torch.float16)
        b = torch.zeros(2, dtype=torch.bfloat16)
        b.fill_(1e200)
        b[...] = 1e200
        c = torch.zeros((), dtype=torch.float16).fill_(1e30)
        d = b.new_full((2,), 1e200)
        e = torch.fill(b, 1e200)
        b[torch.tensor([True, False])] = 1e200
        f = torch.zeros(1).fill_(1e200)
    """,
    "medians and means of nothing": """
        a = [torch.zeros(0, dtype=k).median() for k in (torch.int8, torch.int16, torch.int32, torch.bool)]
        b = torch.zeros(0, dtype=torch.int16).nanmedian()
        c = torch.zeros(0, dtype=torch.complex64)
        d = torch.nn.functional.soft_margin_loss(c, torch.zeros(0))
    """,
    "truth values are not multiplied and added": """
        a = torch.ones(2, dtype=torch.bool)
        b = torch.addcmul(a, a, a)
        a.addcmul_(a, a)
        torch.addcmul(a, a, a, out=a)
    """,
    "an input that is no leaf: no gradient beyond it is computed, which would be refused": """
        a = torch.tensor(1.5, requires_grad=True)
        b = torch.nn.functional.huber_loss(torch.tensor(-1.0, dtype=torch.float64), a)
        b.abs().backward(retain_graph=True, inputs=[b])
        b.backward()
    """,
    "the mean beside a spread has a gradient of its own": """
        a = torch.ones(4, 1).requires_grad_()
        b = torch.var_mean(a, (-1,))[1] + torch.std_mean(a, -1)[1]
        b.sum().backward(create_graph=True)
        c = a.grad.requires_grad, a.grad
    """,
    "what a checkpoint is given may not change": """
        a = torch.ones(2).requires_grad_()
        b = torch.ones(2) * 2
        c = torch.utils.checkpoint.checkpoint(lambda x, y: (x * y).sin(), a, b, use_reentrant=False)
        b.add_(1)
        c.sum().backward()
    """,
    "not by the function itself either": """
        a = torch.ones(2).requires_grad_()
        b = torch.utils.checkpoint.checkpoint(lambda x: x.mul_(2).sin(), a * 1, use_reentrant=False)
        b.sum().backward()
    """,
    "nor be an inference tensor": """
        with torch.inference_mode():
            a = torch.ones(2) + 1
        b = torch.utils.checkpoint.checkpoint(lambda x: x + 1, a, use_reentrant=False)
        with torch.no_grad():
            c = torch.utils.checkpoint.checkpoint(lambda x: x + 1, a, use_reentrant=False)
    """,
    "an inference tensor's detached alias gets another layout": """
        with torch.inference_mode():
            a = torch.ones(2, 3) + 1
        b = a[...].detach()
        b.unsqueeze_(0)
        b.squeeze_()
        b.t_()
        b.add_(1)
        c = b.view(6).is_inference()
    """,
    "views of what loses its derivative": """
        a = torch.ones(2)
        b = a[...]
        c = torch.heaviside(torch.ones(2).requires_grad_() * 2, torch.ones(2), out=a)
    """,
    "embedding_renorm_ has no derivative": """
        a = torch.tensor([[3.0, 4.0], [1.0, 1.0]]).requires_grad_()
        b = a.clone()
        c = b[:]
        torch.embedding_renorm_(b, torch.tensor([0]), 1.0, 2.0)
        b.sum().backward()
    """,
    "index_copy_ of a dimension that there is none of": """
        a = torch.ones(2, 2)
        a.index_copy_(-3, torch.tensor([0, 0]), a)
        torch.ones(1, 2).expand(2, 2).index_copy_(2, torch.tensor([0, 0]), a)
    """,
    "data of another type and shape whose strides are the gradient's": """
        a = torch.ones(1, 3).requires_grad_()
        b = a * 2
        a.data = torch.ones(5, 5, dtype=torch.float64)
        b.sum().backward()
    """,
    "conjugates of no elements in a memory of some": """
        a = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]])
        b = a[2:].conj()
        c = b.as_strided((1, 1), (0, 1), 1)
        d = a[5:, 1:].T.adjoint().as_strided((2, 1), (2, 1), 0)
    """,
    "pseudo-inverses lie in rows": """
        a = torch.arange(24.0).reshape(2, 3, 4, 1).permute(3, 0, 1, 2)
        b = torch.pinverse(a.permute(1, 0, 2, 3).expand(2, 2, 3, 4).transpose(0, 1).clone(), 0.5)
    """,
    "lines that look like images whose channels lie last": """
        a = torch.ones(1, 1, 2).permute(0, 2, 1)
        b = torch.nn.functional.max_unpool1d(a, torch.tensor([[[0], [1]]]), 2)
        c = torch.ones(1, 4, 1).permute(0, 2, 1)
        d = torch.arange(6.0).reshape(1, 3, 2).permute(0, 2, 1)
        e = torch.nn.functional.conv_transpose1d(c, d, stride=2)
        f = torch.nn.functional.conv1d(torch.ones(2, 3, 4).mT, d.permute(1, 0, 2).expand(2, 4, 3))
        g = torch.nn.functional.conv1d(torch.ones(2, 3, 4), torch.ones(2, 2, 3).mT)
    """,
    "an input that is no leaf: its node runs, too": """
        a = torch.ones(2, 2).requires_grad_()
        v = a.exp()
        v.backward(torch.ones_like(v))
        v.abs().sum().backward(inputs=[v])
    """,
    "and drops what it has saved": """
        a = torch.ones(2, 2).requires_grad_()
        v = a.exp()
        v.sum().backward(inputs=[v])
        v.sum().backward()
    """,
    "an input that is no leaf gets a copy": """
        a = torch.ones(3, requires_grad=True)
        b = a * 2
        b.sum().backward(create_graph=True, inputs=[b])
        g = b.grad
    """,
    "data of another shape: the gradient is that of the graph": """
        a = torch.tensor([[-0.5]]).requires_grad_()
        b = torch.nn.functional.kl_div(a, a)
        a.data = b.detach()
        b.backward(gradient=b.detach() * 2)
    """,
    "data of another shape whose strides are the gradient's": """
        a = torch.ones(2, 1, 4).requires_grad_()
        b = a * 2
        a.data = a.detach().unfold(0, 2, 1)
        b.sum().backward()
    """,
    "data of a shape that the gradient has no room in": """
        a = torch.ones(2, 1, 4).requires_grad_()
        b = a.exp()
        a.data = torch.ones(2, 1, 5)
        b.sum().backward()
    """,
    "a fused layer saves a copy of what lies otherwise": """
        with torch.inference_mode():
            a = torch.ones(2, 4).t()
        b = torch.nn.LSTM(2, 2)(a)[0].shape
    """,
    "data of another type": """
        a = torch.ones(2, 2).requires_grad_()
        b = a * a
        a.data = torch.ones(2, 2, dtype=torch.float64) * 3
        b.sum().backward()
        b = None
        c = a * 2
        a.grad = None
        c.sum().backward()
    """,
    "data that no longer fit are refused": """
        a = torch.ones(2, 2).requires_grad_()
        b = a * a
        a.data = torch.ones(3) * 3
        b.sum().backward()
    """,
    "data of two dimensions less": """
        a = torch.ones(2, 2).requires_grad_()
        b = a * a
        a.data = torch.ones(2) * 3
        g = torch.autograd.grad(b.sum(), a)
    """,
    "views of a leaf that got other data and was written to": """
        a = torch.ones(4, 2).requires_grad_()
        b, c = a.unflatten(0, (2, -1)), a[1]
        a.data = torch.ones(1, 4, 2) * 3
        with torch.no_grad():
            a.add_(1)
        g = torch.autograd.grad(b.sum() + c.sum(), a)
    """,
    "data seen conjugated, too, while views of what was there are left": """
        a = torch.tensor([1 + 2j, 3j])
        b, p, q = a.conj(), torch.zeros(2), torch.zeros(2)
        v, w = p[1:], q[1:]
        p.data = a
        q.data = b
        p.add_(1)
        q.mul_(2j)
    """,
    "group norm saves a copy of what lies otherwise": """
        a, b = torch.ones(3, 2, 4).permute(1, 0, 2), torch.ones(2, 3, 2, 2).mT
        c = torch.nn.functional.group_norm(a, 1, torch.ones(3).requires_grad_())
        d = torch.nn.functional.group_norm(b, 1, torch.ones(3).requires_grad_())
        a.mul_(2)
        b.mul_(2)
        c.sum().backward()
        d.sum().backward()
    """,
    "a loss of one number is in rows": """
        a = torch.ones(2, dtype=torch.float64)[1::2].unsqueeze(0)
        b = torch.nn.functional.soft_margin_loss(a, torch.ones(1), reduction="none")
        c = b.view(torch.int32)
    """,
    "the gradient of a mean beside a variance has memory of its own": """
        a = torch.ones(3, 4, 2).permute(2, 0, 1).requires_grad_()
        b = torch.var_mean(a, dim=(0, 2), keepdim=True)[1]
        g = torch.autograd.grad(b, a, torch.ones_like(b))
        c = torch.std_mean(a)[1]
        h = torch.autograd.grad(c, a)
    """,
    "batch norm takes parameters of any shape, one number a channel": """
        a = torch.tensor([[1.0, -0.5, 0.5], [2.0, 4.5, -0.5]])
        b, c = torch.ones(1, 3), torch.zeros(3, 1)
        d = torch.batch_norm(a, b, c, None, None, True, 1.0, 0.5, True)
        e = torch.batch_norm(a, b, c, c, c + 1, False, 1.0, 0.5, True)
    """,
    "several ints by name are a tuple": """
        a = torch.ones(2, 2).flip(dims=-1)
        b = torch.ones(2).repeat(repeats=3)
        c = torch.ones(2).permute(dims=0)
    """,
    "a zero on the diagonal gives infinities in its row alone": """
        a = torch.triu(torch.arange(1.0, 26).reshape(5, 5))
        a[2, 2] = 0
        b = torch.linalg.solve_triangular(a, torch.ones(5, 3), upper=True)[2:]
        c = torch.linalg.solve_triangular(a.mT, torch.ones(5, 3), upper=False)[:3]
    """,
    "what is written over itself as conjugates is copied first": """
        a = torch.tensor([[1 + 2j], [3j], [2]]).conj()
        a[None, torch.tensor([1, 0, 1])] = a
        b = torch.tensor([1 + 2j, 3j]).data.conj()
        b[None, torch.tensor([1, 0])] = b
    """,
    "data given twice while a view is left": """
        p = torch.zeros(2)
        q = p[1:]
        p.data = torch.ones(2)
        p.data = torch.ones(3)
        p.add_(1)
        a = torch.tensor([1 + 2j, 3j])
        b = a.conj()
        c = b[1:]
        b.data = torch.ones(3) * 1j
        b.mul_(2)
    """,
    "types of what is put at an index come before its bounds": """
        a = torch.tensor([[-3]]).index_put([torch.tensor([[-3]])], torch.ones(1, 1), False)
        b = torch.ones(3).index_put([torch.tensor([5])], torch.ones(1), False)
        c = torch.ones(3).index_put([torch.tensor([True, False, True])], torch.tensor([2]), False)
    """,
    "ldexp has no kernel for truth values as powers of numbers": """
        a = torch.ldexp(torch.ones(2), torch.tensor([True, False]))
        b = torch.ldexp(torch.ones(2, dtype=torch.int64), torch.tensor([True, False]))
    """,
    "log_softmax of halves is in rows": """
        a = torch.log_softmax(torch.ones(3, 4, dtype=torch.float16).t(), 1)
    """,
    "a histogram of complex numbers looks for their range first": """
        a = torch.histc(torch.tensor([1j, 2.0]))
    """,
    "data of a result: what starts there is added up": """
        a = torch.ones(2, 3).requires_grad_()
        b = list(a)[-1]
        b.data = a.detach()
        g = torch.autograd.grad(b, a, torch.ones_like(b))
    """,
    "data of a result, of another type": """
        a = torch.ones(2, 2).requires_grad_()
        b = a.exp()
        b.data = torch.ones(2, 2, dtype=torch.float64) * 3
        b.backward(torch.ones(2, 2, dtype=torch.float64))
    """,
    "bytes of a part whose base was written to": """
        a = torch.ones(2, 3).requires_grad_()
        b = a.chunk(2, -1)[0]
        with torch.no_grad():
            a.add_(1)
        c = b.view(torch.int32)
    """,
    "a part of a base that begins to want gradients": """
        a = torch.ones(3).requires_grad_()
        b = torch.ones(3)
        c = b.unbind(-1)[0]
        d = b.split(2)[0]
        b -= a
    """,
    "arrays that are parts of others begin where they begin": """
        a = torch.arange(16.0).reshape(4, 4)[:, 1::2]
        b = torch.as_tensor(a.numpy())
        c = b.as_strided((1, 1), (1, 1), 1)
        d = torch.from_numpy(a.numpy()[1:])
        e = d.as_strided((2,), (1,))
        f = torch.from_numpy(np.arange(6.0)[2:])
        g = f.as_strided((2,), (1,)), f.storage_offset(), f.untyped_storage().nbytes()
        f.add_(1)
        h = torch.from_numpy(np.ones((1, 2, 3)).transpose((1, 0, 2)))
        k = h.stride(), h[:-1].stride(), h[:-1, 0:0].stride()
    """,
    "memory that two tensors know by themselves": """
        a = torch.tensor([1.0, 2.0])
        b = torch.from_numpy(a.numpy())
        b[b > 1] = a[:1]
        b[torch.tensor([0, 1])] = a
        b.index_copy_(0, torch.tensor([1]), a[:1])
        c = torch.cat([a[:1], a[1:]], out=b)
    """,
    "bytes as a result of all and any": """
        a = torch.tensor([1.261, 0.953, -0.75, 2.185])
        b = torch.tensor(5, dtype=torch.uint8)
        c = torch.all(a[:2], out=b)
        c = torch.any(a[1:3].abs(), 0, out=b)
        c = torch.any(torch.tensor([256], dtype=torch.int32), 0, out=b)
        c = torch.any(torch.tensor([256, 256], dtype=torch.int32), 0, out=b)
    """,
    "a mean of everything asks for no channels": """
        a = torch.ones(2, 3, 2, 4, 5)
        b = torch.nn.AdaptiveAvgPool2d(1)(a)
        c = torch.nn.AdaptiveAvgPool2d(1)(a[0, 0, 0])
        d = torch.nn.AdaptiveAvgPool3d(1)(a[None])
        e = torch.nn.AdaptiveAvgPool2d(1)(a[0, 0, 0, 0])
    """,
    "extremes and NaN share a gradient as PyTorch does": """
        a = torch.tensor([1.0, nan, 2.0]).requires_grad_()
        b = torch.tensor([1.0, 1.0, 3.0]).requires_grad_()
        c = torch.autograd.grad(torch.maximum(a, b).sum(), [a, b])
        d = torch.autograd.grad(torch.minimum(b, a).sum(), [a, b])
    """,
    "the nearest sample does not depend on the place, but by 0": """
        a = torch.arange(4.0).reshape(1, 1, 2, 2).requires_grad_()
        b = torch.zeros(1, 2, 2, 2, requires_grad=True)
        c = torch.nn.functional.grid_sample(a, b, mode='nearest', align_corners=True)
        d = torch.autograd.grad(c.sum(), [a, b])
    """,
    "a Cholesky factor's complex gradient": """
        a = torch.tensor([[2, 0.3 + 0.4j], [0.3 - 0.4j, 3]], dtype=torch.complex128).requires_grad_()
        b = torch.linalg.cholesky(a)
        g = torch.autograd.grad(b, a, torch.tensor([[0.3 + 0.1j, 0.5], [1 + 0.5j, 1.7j]]).cdouble())
    """,
    "of complex numbers none is the largest": """
        a = torch.ones(2, 3, dtype=torch.complex64)
        i = torch.zeros(2, 3, dtype=torch.int64)
        b = a.scatter_reduce(-1, i, a * 1, reduce='amax')
        c = a.scatter_reduce_(-1, i, a, reduce='amin')
    """,
    "norms of half types in their own type": """
        a = torch.ones(3, dtype=torch.float16)
        b = a.norm(-1.5, dtype=torch.float16), torch.linalg.vector_norm(a, 1.5, dtype=torch.float16)
        c = a.bfloat16().norm(0, dtype=torch.bfloat16), a.norm(3, dtype=torch.float32)
        d = torch.linalg.vector_norm(a, 1.5, dtype=torch.bfloat16)
        e = torch.norm(a.float(), 1.5, dtype=torch.bfloat16)
    """,
    "logarithms of numbers have the gradient's type": """
        a = torch.tensor([0.4, 0.5]).requires_grad_()
        torch.xlogy(a, 2.5).sum().backward()
        torch.xlogy(a, 2).sum().backward()
        torch.special.xlog1py(a, 2.5).sum().backward()
        b = torch.zeros(0).requires_grad_()
        torch.special.xlog1py(b, 2.5).sum().backward()
    """,
    "signs of zeros": """
        a = torch.tensor([-0.0, 0.0])
        b = 1 / torch.relu(a), 1 / a.clamp(min=0), 1 / a.clamp(max=0), 1 / a.relu_()
        c = 1 / torch.lgamma(torch.tensor([1.0, 2.0])), 1 / torch.lgamma(torch.tensor([1.0]).double())
    """,
    "of flags and other than floating numbers, shapes and steps come first": """
        a = torch.tensor(1.0)
        b = torch.trapezoid(a, dx=True)
        c = torch.cumulative_trapezoid(a, dx=True)
        d = torch.fft.ifft(a + 1j, out=torch.tensor([1]))
        e = torch.fft.rfft(a, out=torch.tensor([1]))
        f = torch.celu(torch.tensor([1]), alpha=0.0)
        g = torch.ones(2, dtype=torch.bool)
        h = torch.bilinear(g, g, torch.ones(2, 3, dtype=torch.bool), torch.ones(2))
    """,
}


def statements(text: str) -> tuple[str, ...]:
    """The statements of a program, of which lines with more room at their beginning are parts."""
    lines: list[str] = []
    for line in text.rstrip().split("\n"):
        line = line[8:]
        if line.startswith(" "):
            lines[-1] += "\n" + line
        elif line:
            lines.append(line)
    return tuple(lines)


def differing(lines: tuple[str, ...]) -> list[tuple[tuple[str, ...], Difference]]:
    """A program and what differs in it, if something does."""
    found = first_difference(Program(0, lines))
    return [] if found is None else [(lines, found.difference)]


@pytest.mark.parametrize("about", PROGRAMS)
def test_both_do_the_same(about: str) -> None:
    assert not differing(statements(PROGRAMS[about]))


# -- parts of a tensor ------------------------------------------------------------------------------

INDICES = ":", ":5", "0:", "-5:", "1:2", "::2", "0", "None", "...", "True", "()", ":, :", ":, 0:9"
MORE_INDICES = "0, :", "None, 0", "..., None", ":, None", "0, ...", "..., 0"


@pytest.mark.parametrize("shape", ["(2, 3)", "(1, 1)", "(1,)", "(1, 3)"])
def test_what_is_written_by_index(shape: str) -> None:
    """Its history (all of a tensor is no view of it), and what is refused since it lies over itself."""
    values = ["1", "torch.ones(())", f"torch.ones({shape})", "torch.ones(1, 1, 1)"]
    values += ["x", "x[None]", "x.view(-1)", "x.detach()", "x.expand_as(x)"]
    wrong = []
    for index in INDICES + MORE_INDICES:
        for value in values:
            for start in (
                f"x = torch.zeros({shape})",
                f"x = torch.ones({shape}).requires_grad_() * 1",
            ):
                lines = (start, f"v = {value}", f"x[{index}] = v")
                wrong += differing(lines)
    assert not wrong


VIEWS = "x", "x[None]", "x[0]", "x.view(-1)", "x.t()", "x.expand_as(x)", "x[0, 0].expand(1, 3)"
ODD_VIEWS = "x.as_strided((1, 3), (9, 1))", "x[:, :2]", "x[0:1]"


@pytest.mark.parametrize(
    "call",
    [
        "a.copy_(b)",
        "a.add_(b)",
        "a.lerp_(b, 0.5)",
        "torch.exp(b, out=a)",
        "a[...] = b",
        "a.fill_(b)",
    ],
)
def test_what_is_written_over_a_part_of_itself(call: str) -> None:
    """Two views of one memory: strides say whether one is the other, also those over one place."""
    wrong = []
    views = VIEWS + ODD_VIEWS
    for a in views:
        for b in views:
            lines = ("x = torch.tensor([[1.0, 2.0, 3.0]])", f"a = {a}", f"b = {b}", call)
            wrong += [w for w in differing(lines) if w[1].kind in ("accepted", "refused")]
    assert not wrong


# -- gradients: who has them, and where they lie ------------------------------------------------------

CALLS = (
    "a + b", "a - b", "torch.add(a, b, alpha=2)", "a[...]", "a.clone()", "a.expand(2, 2)", "a.squeeze()",
    "torch.cat([a, b])", "torch.hstack([a, b])", "torch.stack([a, b])", "a.view(2, 2)", "a.t()", "a.sum()",
    "torch.addcmul(a, b, b)", "torch.addmm(a, b, b)", "a.index_add(0, torch.tensor([0, 1]), b)",
    "a.real", "a.as_strided((2, 2), (2, 1))", "a.clone().fill_(b[0, 0])", "a.clone().copy_(b)", "a * b",
    "a.prod()",
)  # fmt: skip
OF_REALS = (
    "torch.nn.functional.mse_loss(a, b)", "torch.nn.functional.smooth_l1_loss(a, b)",
    "torch.nn.functional.huber_loss(a, b)", "torch.maximum(a, b)", "a.floor()", "a.round()", "a.relu()",
)  # fmt: skip


@pytest.mark.parametrize("turned", ["", ".t()"])
@pytest.mark.parametrize("kinds", ["float32 float32", "complex64 complex64", "float64 float32"])
def test_whose_gradients_are_one_and_how_they_lie(kinds: str, turned: str) -> None:
    wrong = []
    first, second = kinds.split()
    for call in CALLS if first == "complex64" else CALLS + OF_REALS:
        lines = (
            f"a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.{first}){turned}.requires_grad_()",
            f"b = torch.tensor([[2.0, 1.0], [4.0, 5.0]], dtype=torch.{second}){turned}.requires_grad_()",
            f"y = {call}",
            "g = torch.autograd.grad(y.abs().sum(), [y, a, b], allow_unused=True)",
        )
        wrong += differing(lines)
    assert not wrong


def test_comparisons_within_limits_lie_as_the_first_operand() -> None:
    for more in ("", ", equal_nan=True", ", rtol=0.0, atol=0.0"):
        lines = (
            "a = torch.arange(24.0).reshape(2, 3, 4, 1).permute(3, 1, 2, 0)",
            "b = torch.arange(24.0).reshape(1, 3, 4, 2).contiguous(memory_format=torch.channels_last)",
            f"c = a.isclose(b{more})",
        )
        assert not differing(lines)
