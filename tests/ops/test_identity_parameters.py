"""Calls whose parameters leave little or nothing to do: a kernel of one element, pads of 0, one operand,
a dimension of one element. There a kernel may return the memory that it was given. What PyTorch's
result shares with its arguments, and how it lies, ours does.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

CALLS = """
F.unfold(im,1)
F.unfold(im1,1)
F.fold(im.reshape(2,4,-1),(3,3),1)
F.pad(x,(0,0))
F.pad(x,(0,0),value=1)
F.pad(im,(0,0,0,0),mode='reflect')
F.interpolate(im,size=(3,3))
F.interpolate(im,scale_factor=1)
F.interpolate(im,size=(3,3),mode='bilinear')
F.avg_pool2d(im,1)
F.max_pool2d(im,1)
F.avg_pool1d(im1,1)
F.max_pool1d(im1,1)
F.adaptive_avg_pool2d(im,3)
F.adaptive_max_pool2d(im,3)
F.adaptive_avg_pool1d(im1,3)
F.pixel_shuffle(im,1)
F.pixel_unshuffle(im,1)
F.channel_shuffle(im,1)
x.roll(0)
x.roll(0,0)
x.roll(3,0)
x.flip(())
x.flip(0)
x1.flip(0)
x.repeat(1,1)
x.tile(1)
x.tile((1,1))
x.rot90(0)
x.rot90(4)
x.rot90(2)
x.repeat_interleave(1)
x.repeat_interleave(1,0)
m.cat([x])
m.cat([x],1)
m.stack([x])
m.hstack([x])
m.vstack([x])
m.dstack([x])
m.column_stack([x])
x.clamp(min=None,max=5)
x.clip(-9)
x.round(decimals=0)
x.int().round()
x.int().floor()
x.int().ceil()
x.int().trunc()
F.dropout(x,0.)
F.dropout(x,.5,False)
F.alpha_dropout(x,.5,False)
F.alpha_dropout(x,0.)
F.dropout2d(im,.5,False)
x.to(m.float32)
x.float()
x.contiguous()
x.type(m.float32)
x1.cumsum(0)
x1.cumprod(0)
x1.cummax(0)[0]
x1.logcumsumexp(0)
x.sum(())
x.mean(())
x.amax(())
x.amin(())
x.nansum(())
x1.sum(0)
x1.sum(0,keepdim=True)
x1.sum(0,True)
x1.mean(0)
x1.prod(0)
x1.prod(0,True)
x1.amax(0)
x1.max(0)[0]
x1.min(0)[0]
x1.median(0)[0]
x1.mode(0)[0]
x1.kthvalue(1,0)[0]
x1.nansum(0)
x1.nanmean(0)
x1.logsumexp(0)
x1.norm(1,0)
x1.quantile(.5,0)
x1.all(0)
(x1>0).all(0)
(x1>0).any(0)
s.sum()
s.mean()
s.prod()
s.max()
s.min()
s.median()
s.amax()
s.sum(0)
s.max(0)[0]
s.cumsum(0)
s.sort()[0]
s.logsumexp(0)
x.index_select(0,ar)
x[ar]
x[:]
x[...]
x[None]
x[0]
x[m.tensor(True)]
x[m.ones(3,dtype=m.bool)]
x.masked_select(x==x)
m.where(x==x,x,x)
x.gather(0,ar[:,None].expand(3,3))
x.take(m.arange(9))
x.take_along_dim(ar[:,None],0)
x.tril(100)
x.triu(-100)
m.diag_embed(x)
m.einsum('ij->ij',x)
m.einsum('ij->ji',x)
m.einsum('ii->i',x)
m.einsum('ij->i',x)
m.einsum('ij',x)
m.einsum('...->...',x)
m.einsum('ij,j->ij',x,x[0])
m.tensordot(x,x,0)
m.kron(x,one)
m.matrix_power(x,1)
m.linalg.matrix_power(x,1)
m.matrix_power(x,0)
m.linalg.multi_dot([x,x])
m.chain_matmul(x)
m.block_diag(x)
m.block_diag(x,x)
x1.sort(0)[0]
x1.argsort(0)
x1.topk(1,0)[0]
x.unique(dim=0)
m.view_as_real(c)
c.real
c.imag
x.real
x.conj()
c.conj()
c.conj().conj()
c.conj().resolve_conj()
x.resolve_conj()
x.resolve_neg()
c.conj().imag
x.positive()
+x
m.atleast_1d(x)
m.atleast_2d(x)
m.atleast_3d(x)
m.atleast_1d(s)
x.squeeze()
x.squeeze(0)
x1.squeeze(0)
x.unsqueeze(0)
m.broadcast_tensors(x,x)[0]
m.broadcast_to(x,(3,3))
x.expand(3,3)
x.expand_as(x)
m.meshgrid(v)[0]
m.meshgrid(v,v)[0]
x.movedim(0,0)
x.movedim(0,1)
x.swapaxes(0,0)
x.transpose(0,0)
x.permute(0,1)
x.t()
v.t()
s.t()
x.mT
v.flatten()
s.flatten()
x.flatten()
x.t().flatten()
x.ravel()
v.ravel()
s.ravel()
x.t().ravel()
x.reshape(3,3)
x.reshape(-1)
x.t().reshape(3,3)
x.t().reshape(9)
x.view(3,3)
x.view(m.int32)
x.view(m.float32)
x.unflatten(0,(1,3))
x.nan_to_num()
x.to_dense()
x.diff(n=0)
F.normalize(x)
F.embedding(ar,x)
F.linear(x,x)
x.narrow(0,0,3)
m.narrow_copy(x,0,0,3)
m.select_copy(x,0,0)
m.view_copy(x,(3,3))
m.unsqueeze_copy(x,0)
m.expand_copy(x,(3,3))
m.permute_copy(x,(0,1))
m.t_copy(x)
m.transpose_copy(x,0,1)
m.squeeze_copy(x)
m.diagonal_copy(x)
m.slice_copy(x)
m.alias_copy(x)
m.detach_copy(x)
m.split_copy(x,3)[0]
m.unbind_copy(x)[0]
m.unfold_copy(x,0,1,1)
m.as_strided_copy(x,(3,),(1,))
x.index_fill(0,e0,1.)
x.index_add(0,e0,x[:0])
x.index_copy(0,e0,x[:0])
x.masked_fill(x!=x,1.)
x.scatter(0,e0[:,None],1.)
x.scatter_add(0,e0[:,None],x)
x.put(e0,v[:0])
x.index_put((e0,),v)
x.masked_scatter(x!=x,x)
x.lerp(x,0.)
x.addmm(x,x,beta=1,alpha=0)
m.fft.fftshift(x)
m.fft.fftshift(x1,0)
m.fft.ifftshift(x1,0)
m.fft.fft(c,1)
m.fft.fft(c1,dim=0)
m.fft.ifft(c1,dim=0)
m.fft.rfft(x1,dim=0)
m.fft.irfft(c1,dim=0)
m.fft.fftn(c1,dim=(0,))
m.cartesian_prod(v)
m.combinations(v,1)
x.unfold(0,1,1)
x.clone()
m.clone(x)
m.asarray(x)
m.as_tensor(x)
m.asarray(x,copy=True)
x.detach()
x.data
x.cpu()
x.as_strided((3,3),(3,1))
x.diagonal()
x.diag()
v.diag()
x.split(3)[0]
x.chunk(1)[0]
x.unbind()[0]
m.split(x,[3])[0]
m.tensor_split(x,1)[0]
x.hsplit(1)[0]
x.vsplit(1)[0]
F.relu(x.abs())
x.abs().abs()
x.relu()
F.threshold(x,-9e9,0.)
F.hardtanh(x,-1e9,1e9)
F.relu6(x)
F.leaky_relu(x.abs())
x.mul(1)
x.add(0)
x+0
x*1
x.pow(1)
x**1
x.div(1)
x/1
x.float_power(1)
x.square()
x.max(x)
x.maximum(x)
x.fmax(x)
m.minimum(x,x)
x.copysign(x)
x.logical_and(x)
x.hypot(x*0)
x.fmod(1e9)
x.remainder(1e9)
x.int()&x.int()
x.int() + 0
x.int().bitwise_or(0)
x.int().bitwise_left_shift(0)
x.int()<<0
x.bool().bool()
x.nan_to_num(0.)
x.sgn()
m.linalg.inv(eye)
m.linalg.cholesky(eye)
m.linalg.qr(eye)[1]
m.linalg.solve(eye,x)
m.linalg.solve_triangular(eye,x,upper=True)
m.triangular_solve(x,eye)[0]
m.cholesky_solve(x,eye)
m.linalg.lu(eye)[1]
m.linalg.matrix_exp(x*0)
eye@x
x@eye
m.mm(x,eye)
m.mv(eye,v)
m.addmv(v,eye,v,beta=1,alpha=0)
m.outer(v,v[:1])
m.ger(v,v[:1])
m.dot(v,v)
m.vdot(v,v)
m.bmm(x[None],x[None])
m.matmul(v,v)
m.inner(s,x)
m.inner(v,s)
m.cross(x,x)
m.trapezoid(x1,dim=0)
m.cumulative_trapezoid(x,dim=0)
m.gradient(x)[0]
m.bucketize(x,v.sort()[0])
m.renorm(x,2,0,1e9)
x.renorm(2,0,1e9)
m.vander(v,1)
m.vander(v,2)
m.histc(x,1)
F.one_hot(ar)
F.glu(x2)
F.softmax(x1,0)
F.layer_norm(x,(3,))
F.batch_norm(x,None,None,training=True)
F.batch_norm(x,v*0,v*0+1)
F.group_norm(im,1)
F.instance_norm(im)
F.local_response_norm(im,1)
F.conv1d(im1,w1)
F.conv2d(im,w2)
F.bilinear(x,x,w3)
F.grid_sample(im,grid)
F.affine_grid(th,(2,4,3,3))
F.cosine_similarity(x,x)
F.pairwise_distance(x,x)
F.mse_loss(x,x,reduction='none')
F.l1_loss(x,x*0,reduction='none')
F.kl_div(x,x,reduction='none')
F.huber_loss(x,x,reduction='none')
F.scaled_dot_product_attention(im,im,im)
F.softshrink(x,0.)
F.hardshrink(x,0.)
F.celu(x)
F.prelu(x,v[:1]*0+1)
F.logsigmoid(x)
x.masked_fill_(x!=x,0.)
x.mul_(1)
m.nn.Identity()(x)
m.nn.Flatten(0)(x)
m.nn.Flatten(0)(v)
m.nn.Dropout(.5).eval()(x)
m.nn.Softmax(0)(x1)
m.nn.Upsample(scale_factor=1)(im)
m.nn.ZeroPad2d(0)(im)
m.nn.ConstantPad1d(0,0.)(im1)
m.nn.ReflectionPad2d(0)(im)
m.nn.AvgPool2d(1)(im)
m.nn.MaxPool2d(1)(im)
m.nn.PixelShuffle(1)(im)
m.nn.Unfold(1)(im)
m.nn.Fold((3,3),1)(im.reshape(2,4,-1))
m.nn.utils.parameters_to_vector([v])
m.nn.utils.rnn.pad_sequence([x])
m.nn.utils.rnn.pad_sequence([x],True)
m.nn.utils.rnn.pack_sequence([x]).data
m.nn.utils.rnn.pad_packed_sequence(m.nn.utils.rnn.pack_sequence([x]))[0]
m.stack([x[0]])
m.nn.functional.embedding_bag(ar[:,None],x)
m.polar(v,v*0)
m.complex(v,v*0)
m.view_as_complex(xr)
m.real(x)
m.special.logit(x,.1)
m.cummin(x1,0)[0]
m.aminmax(x1,dim=0)[0]
m.var_mean(x1,0,correction=0)[1]
m.std_mean(x1,0,correction=0)[1]
m.nanmedian(x1,0)[0]
m.searchsorted(v.sort()[0],v)
m.tril_indices(2,2)
m.nonzero(x)
m.argwhere(x)
m.count_nonzero(x1,0)
m.segment_reduce(x,'sum',lengths=ar*0+1,axis=0)
x.unsafe_split(3)[0]
x.unsafe_chunk(1)[0]
m.conj_physical(x)
c.conj_physical()
x.adjoint()
x.H
c.H
c.mH
x.new_tensor(x)
x.scatter_reduce(0,e0[:,None],x,'sum')
x.index_reduce(0,e0,x[:0],'prod')
x.select_scatter(v,0,0)
x.slice_scatter(x)
x.diagonal_scatter(v)
x.as_strided_scatter(x,(3,3),(3,1))
x.trunc()
x.frac()
m.frexp(x)[0]
m.ldexp(x,ar*0)
m.heaviside(x,x)
m.signbit(x)
m.i0(x)
m.nextafter(x,x)
m.gcd(x.int(),x.int())
m.lcm(x.int(),x.int())
m.float_power(x.double(),1)
x.double().double()
x.half().float()
"""
SHARED = ("x", "v", "s", "x1", "im", "im1", "eye", "c", "c1", "x2", "xr", "ar", "one")
# Of these PyTorch makes a view of memory that nobody else has, or does not, where we do the other.
OWN_VIEWS = ("kron", "affine_grid", "multi_dot", "segment_reduce", "max_pool1d", "rnn.pad_packed")


def tensors(m: Any, kind: str) -> dict[str, Any]:
    rng = np.random.RandomState(0)

    def of(*shape: int) -> Any:
        return m.tensor(rng.randn(*shape).astype("float32"))

    given = {"m": m, "F": m.nn.functional, "x": of(3, 3), "v": of(3), "s": m.tensor(2.0)}
    given |= {
        "x1": of(1, 3),
        "x2": of(3, 4),
        "xr": of(3, 2),
        "im": of(2, 4, 3, 3),
        "im1": of(2, 4, 3),
    }
    given |= {"ar": m.arange(3), "e0": m.arange(0), "eye": m.eye(3), "one": m.ones(1, 1)}
    given |= {"w1": m.ones(4, 4, 1), "w2": m.ones(4, 4, 1, 1), "w3": m.ones(2, 3, 3)}
    given |= {"grid": of(2, 3, 3, 2), "th": of(2, 2, 3)}
    given |= {"c": m.complex(of(3, 3), of(3, 3)), "c1": m.complex(of(1, 3), of(1, 3))}
    if kind == "channels last":
        given["im"] = given["im"].to(memory_format=m.channels_last)
    if kind == "transposed":
        given["x"] = given["x"].t()
    if kind == "with gradients":
        for name in ("x", "v", "s", "x1", "im", "im1", "x2"):
            given[name].requires_grad_()
    return given


def facts(m: Any, call: str, kind: str) -> Any:
    """What a result shares, whether it is a view, and how it lies; or the class of an error."""
    given = tensors(m, kind)
    try:
        made = eval(call, given)
    except (RuntimeError, ValueError, TypeError) as error:
        return type(error).__name__
    start = made.untyped_storage().data_ptr()
    shared = [n for n in SHARED if made.numel() and given[n].untyped_storage().data_ptr() == start]
    same = [n for n in SHARED if given[n] is made]
    view = made._is_view() and not any(name in call for name in OWN_VIEWS)
    return shared, same, view, made.stride() if made.numel() else (), made.storage_offset()


@pytest.mark.parametrize("kind", ["plain", "channels last", "transposed", "with gradients"])
def test_memory_is_shared_where_pytorch_shares_it(kind: str) -> None:
    differ = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in CALLS.strip().split("\n"):
            ours, theirs = facts(tt, call, kind), facts(torch, call, kind)
            if ours != theirs:
                differ[call] = ours, theirs
    assert not differ
