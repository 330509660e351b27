"""Activations; those with `inplace` may write into their input."""

from __future__ import annotations

from typing import Any

from toytorch.core.barriers import Error
from toytorch.core.inplace import rebase
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.hints import DType
from toytorch.ops.define import PUBLIC, takes_words, tensor_first
from toytorch.ops.elementwise import activation, arithmetic
from toytorch.ops.elementwise.activation import gelu as gelu_record
from toytorch.ops.elementwise.activation import softsign, tanhshrink
from toytorch.ops.reductions import exponentials

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid",
    "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid",
    "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink",
    "threshold", "threshold_",
]  # fmt: skip


prelu = PUBLIC["prelu"]


@takes_words()
def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """x·Φ(x), with Φ itself or its approximation by "tanh"; Hendrycks and Gimpel 2016."""
    return gelu_record.function(input, approximate=approximate, out=out)


def _run(op: Op, input: Tensor, inplace: bool, *rest: Tensor | float) -> Any:
    """A record, or its in-place form."""
    return (op.written if inplace else op.function)(input, *rest)


def refuse_backward(made: Tensor, name: str, slope: float, inplace: bool = True) -> Tensor:
    """The result, whose backward pass says that it cannot tell what a negative slope overwrote."""
    if inplace and slope < 0 and made.requires_grad:
        error = (
            f"In-place {name} backward calculation is triggered with a negative slope which is not "
            "supported. This is caused by calling in-place forward function with a negative slope, "
            "please call out-of-place version instead."
        )
        if name == "leakyReLu":
            error += (
                " File an issue at https://github.com/pytorch/pytorch if you do require supporting "
                "in-place leakRelu backward calculation with negative slope"
            )
        own_name = type(made.grad_fn).__name__
        named = type(own_name, (Error,), {"__slots__": ()})
        rebase(made, named((made,), [made], error))
    return made


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0); Nair and Hinton 2010."""
    return input.relu_() if inplace else arithmetic.relu.function(input)


@takes_words()
def relu_(input: Tensor) -> Tensor:
    """In-place form of `relu`."""
    return relu(input, True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0, 6, inplace)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x held between two limits."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _run(activation.hardtanh, input, inplace, min_val, max_val)


@takes_words()
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place form of `hardtanh`, whatever the limits."""
    return _run(activation.hardtanh, input, True, min_val, max_val)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope·x below; Maas et al. 2013."""
    made = _run(activation.leaky_relu, input, inplace, negative_slope)
    return refuse_backward(made, "leakyReLu", negative_slope, inplace)


@takes_words()
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place form of `leaky_relu`."""
    return leaky_relu(input, negative_slope, True)


@tensor_first
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """A leaky relu with random slopes in training; Xu et al. 2015."""
    record, by = activation.with_slopes(input, lower, upper, training)
    made = _run(record, input, inplace, by)
    return refuse_backward(made, "leakyReLu", lower + upper, inplace and not training)


@takes_words()
def rrelu_(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Tensor:
    """In-place form of `rrelu`."""
    return rrelu(input, lower, upper, training, True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, α(eˣ - 1) below; Clevert et al. 2016."""
    return refuse_backward(_run(activation.elu, input, inplace, alpha, 1, 1), "elu", alpha, inplace)


@takes_words()
def elu_(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """In-place form of `elu`; negative numbers may be scaled first, and results afterwards."""
    made: Tensor = _run(activation.elu, input, True, alpha, scale, input_scale)
    return refuse_backward(made, "elu", alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """An elu that keeps mean 0 and variance 1; Klambauer et al. 2017."""
    return _run(activation.selu, input, inplace)


@takes_words()
def selu_(input: Tensor) -> Tensor:
    """In-place form of `selu`."""
    return selu(input, True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, α(e^{x/α} - 1) below; Barron 2017."""
    return refuse_backward(_run(activation.celu, input, inplace, alpha), "elu", alpha, inplace)


@takes_words()
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of `celu`."""
    return celu(input, alpha, True)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above a threshold, a fixed value below."""
    return _run(activation.threshold, input, inplace, threshold, value)


@takes_words()
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place form of `threshold`."""
    return _run(activation.threshold, input, True, threshold, value)


@takes_words()
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x, and 0 near 0."""
    return activation.hardshrink.function(input, lambd, out=out)


@takes_words()
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x moved towards 0 by lambd, and 0 near 0."""
    return activation.softshrink.function(input, lambd, out=out)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6)/6; Courbariaux et al. 2015."""
    return _run(activation.hardsigmoid, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x·hardsigmoid(x); Howard et al. 2019."""
    return _run(activation.hardswish, input, inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x·sigmoid(x); Elfwing et al. 2018."""
    return _run(activation.silu, input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x·tanh(softplus(x)); Misra 2019."""
    return _run(activation.mish, input, inplace)


@takes_words()
def softplus(
    input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None
) -> Tensor:
    """log(1 + e^{βx})/β."""
    return activation.softplus.function(input, beta, threshold, out=out)


@takes_words()
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log of sigmoid."""
    return activation.log_sigmoid.function(input, out=out)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1/(1 + e⁻ˣ)."""
    return input.sigmoid()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """One half times the sigmoid of the other; Dauphin et al. 2017."""
    if not input.dim():
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return activation.glu.function(input, dim)


# -- along a dimension ----------------------------------------------------------------------------


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """eˣ/Σeˣ along a dimension."""
    if not _answers(input):
        return input.softmax(dim)  # which Python refuses
    return exponentials.softmax.function(input, _chosen("softmax", input, dim), dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """softmax of -x."""
    return softmax(-input, _chosen("softmin", input, dim), dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """log of softmax."""
    if not _answers(input):
        return input.log_softmax(dim)  # which Python refuses
    return exponentials.log_softmax.function(input, _chosen("log_softmax", input, dim), dtype)


def _answers(input: object) -> bool:
    """Whether something is a tensor, or of a class that answers for itself."""
    return isinstance(input, Tensor) or hasattr(type(input), "__torch_function__")


def _chosen(name: str, input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    warned.at_call(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to "
        "include dim=X as an argument."
    )
    return 0 if input.ndim in (0, 1, 3) else 1


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A draw from a softmax that has a derivative; Jang et al. 2017, Maddison et al. 2017.

    With `hard` the result is one-hot, and only the gradient is that of the soft draw.
    """
    if eps != 1e-10:
        warned.at_call("`eps` parameter is deprecated and has no effect.")
    noise = -logits.new_empty(logits.shape).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().max(dim, keepdim=True)[1]
    picked = logits.new_zeros(logits.shape).scatter_(dim, index, 1.0)
    return picked - soft.detach() + soft
