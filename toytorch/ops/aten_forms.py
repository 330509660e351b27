"""What ATen's schemas ask for where our records take other arguments: `torch.ops.aten.…` alone.

A record takes what its formula needs: a shape rather than the tensor that has it, scales as one list,
a reduction as a word. Programs that call ATen's ops by position get these forms instead. The names
of arguments are the schemas' own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toytorch.core.op import Op, registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import DType, Shape
from toytorch.ops.define import public
from toytorch.ops.elementwise.activation import with_slopes
from toytorch.ops.linalg import blocks, norms
from toytorch.ops.nn import conv, loss, loss_ctc, loss_pairs, pad, pool, resize
from toytorch.ops.reductions.exponentials import log_softmax, softmax
from toytorch.ops.reductions.searching import unique

WORDS = ("none", "mean", "sum")  # of a reduction, by ATen's number


# -- convolution ----------------------------------------------------------------------------------


@public("aten.convolution_backward")
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Shape | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of input, weight and bias: those that the mask asks for."""
    g, shape = grad_output, tuple(weight.shape)
    window = stride, padding, dilation, transposed, groups
    of_input, of_weight, of_bias = output_mask
    return (
        conv.gradient_of_input(g, tuple(input.shape), weight, *window) if of_input else None,
        conv.gradient_of_weight(g, input, shape, *window) if of_weight else None,
        conv.gradient_of_bias(g, input, weight) if of_bias else None,
    )


# -- losses ---------------------------------------------------------------------------------------


@public("aten.nll_loss", "aten.nll_loss_nd")
def nll_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Tensor:
    """-Σ w[t]·x[t], from log-probabilities."""
    return loss.nll(self, target, weight, ignore_index, WORDS[reduction])


@public("aten.nll_loss_backward", "aten.nll_loss2d_backward")
def nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """The gradient of nll_loss; the sum of the weights is taken anew."""
    single = self.ndim == 1
    shape = (1, *self.shape) if single else tuple(self.shape)
    target = target.reshape(1) if single else target
    made: Tensor = loss.nll_backward.function(
        grad_output, shape, target, weight, ignore_index, WORDS[reduction]
    )
    return made.reshape(self.shape) if single else made


@public("aten.smooth_l1_loss")
def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = 1, beta: float = 1) -> Tensor:
    """d²/2β where d = |x - t| is below β, d - β/2 above."""
    return loss_pairs.smooth_l1.function(self, target, beta, WORDS[reduction])


@public("aten.huber_loss")
def huber_loss(self: Tensor, target: Tensor, reduction: int = 1, delta: float = 1) -> Tensor:
    """d²/2 where d = |x - t| is below δ, δ(d - δ/2) above."""
    return loss_pairs.huber.function(self, target, delta, WORDS[reduction])


@public("aten._ctc_loss_backward")
def _ctc_loss_backward(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    neg_log_likelihood: Tensor,
    log_alpha: Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> Tensor:
    """The gradient of _ctc_loss; likelihoods are reckoned anew."""
    steps, lengths = (
        n if isinstance(n, Tensor) else targets.new_tensor(n)
        for n in (input_lengths, target_lengths)
    )
    return loss_ctc.ctc_backward.function(
        grad, log_probs, targets, steps, lengths, blank, zero_infinity
    )


# -- softmax --------------------------------------------------------------------------------------


def _softmax_form(op: Op) -> Callable[..., Tensor]:
    def form(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
        """softmax or its logarithm, without a change of type."""
        if half_to_float:  # what GPUs do in one step
            raise RuntimeError(
                f"softmax with half to float conversion is not supported on {self.device.type.upper()}"
            )
        return op.function(self, dim)

    return form


public("aten._softmax")(_softmax_form(softmax))
public("aten._log_softmax")(_softmax_form(log_softmax))


@public("aten._log_softmax_backward_data")
def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """The gradient of log_softmax, from that of its result."""
    made: Tensor = registry["_log_softmax_backward_data"].function(grad_output, output, dim)
    return made.to(input_dtype)


# -- images ---------------------------------------------------------------------------------------


def _resizing(record: Op, n: int, aligned: bool) -> None:
    """Both ops of a resizing: sizes, whether corners are aligned if it asks, a scale a dimension."""

    own = ["scales"] if n == 1 else [f"scales_{letter}" for letter in "dhw"[-n:]]
    order = (["align_corners"] if aligned else []) + own

    def parts(
        given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[bool, tuple[float, ...] | None]:
        if len(given) > len(order) or not named.keys() <= {*order, "scale_factors"}:
            raise TypeError(f"{record.name}() takes {', '.join(order)} or scale_factors")
        values = [*given, *(named.get(word) for word in order[len(given) :])]
        corners = bool(values[0]) if aligned else False
        scales = named.get("scale_factors") or values[aligned:]
        if isinstance(scales[0], Sequence):  # by position: the overload `vec`
            scales = scales[0]
        return corners, None if None in scales else tuple(scales)

    def form(input: Tensor, output_size: Shape | None, *rest: Any, **named: Any) -> Tensor:
        """A resizing by ATen's schemas."""
        corners, scales = parts(rest, named)
        if output_size is None:
            if scales is None:
                raise RuntimeError("Must specify exactly one of output_size and scale_factors")
            output_size = [int(size * s) for size, s in zip(input.shape[-n:], scales)]
        return record.function(input, output_size, corners, scales)

    def backward(
        grad_output: Tensor, output_size: Shape, input_size: Shape, *rest: Any, **named: Any
    ) -> Tensor:
        """The gradient of a resizing by ATen's schemas."""
        return registry[f"{record.name}_backward"].function(
            grad_output, output_size, input_size, *parts(rest, named)
        )

    public(f"aten.{record.name}")(form)
    public(f"aten.{record.name}_backward")(backward)


for n in (1, 2, 3):
    _resizing(resize.NEAREST[n], n, False)
    _resizing(resize.EXACT[n], n, False)
    _resizing(resize.LINEAR[n], n, True)
for record in (resize.bicubic, resize.bilinear_antialias, resize.bicubic_antialias):
    _resizing(record, 2, True)


def _of_tensor(name: str) -> None:
    """A gradient whose record takes the shape of the operand in the operand's place."""

    def form(grad_output: Tensor, self: Tensor, *rest: Any) -> Tensor:
        """A gradient, by the operand whose shape it has."""
        return registry[name].function(grad_output, tuple(self.shape), *rest)

    public(f"aten.{name}")(form)


for record in (*pool.AVERAGE.values(), *resize.ADAPTIVE.values(), *pad.REFLECT, *pad.REPLICATE):
    _of_tensor(f"{record.name}_backward")


@public("aten.max_unpool3d")
def max_unpool3d(
    self: Tensor, indices: Tensor, output_size: Shape, stride: Shape, padding: Shape
) -> Tensor:
    """Elements put at flat places of zero images, whose size says what stride and padding did."""
    return pool.MAX_UNPOOL[3].function(self, indices, output_size)


# -- the rest -------------------------------------------------------------------------------------


@public("aten.block_diag", tensor_first=False)
def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """Matrices along the diagonal of one."""
    return blocks.block_diag(*tensors)


@public("aten.cdist", "aten._cdist_forward")
def cdist(x1: Tensor, x2: Tensor, p: float = 2, compute_mode: int | None = None) -> Tensor:
    """Distances between rows; whether they come from a product is asked by a number."""
    return norms.cdist_op.function(x1, x2, p, compute_mode or 0)


@public("aten.threshold_backward")
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: float) -> Tensor:
    """The gradient where x > threshold, zeros elsewhere."""
    return grad_output.masked_fill(self <= threshold, 0)


@public("aten.rrelu_with_noise")
def rrelu_with_slopes(
    self: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """A leaky relu with random slopes in training, which are written to `noise`."""
    record, by = with_slopes(self, lower, upper, training, generator)
    if training:
        noise.detach().copy_(by)
    return record.function(self, by)


@public("aten._unique2")
def _unique2(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct elements, always three results: what was not asked for is empty."""
    return _three(self, None, sorted, return_inverse, return_counts)


@public("aten.unique_dim")
def unique_dim(
    self: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct slices along a dimension, with inverse and counts."""
    return _three(self, dim, sorted, True, True)


def _three(
    self: Tensor, dim: int | None, sorted: bool, inverse: bool, counts: bool
) -> tuple[Tensor, Tensor, Tensor]:
    values, where, often = unique(self, sorted, True, True, dim)
    nothing = where.new_empty(0)
    return values, where if inverse else nothing, often if counts else nothing
