"""Functions that PyTorch keeps in `torch` beside those of `torch.nn.functional`: as its C++ has them,
with the reduction as a number (0 none, 1 mean, 2 sum) and with the older arguments left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.core.write import refuse_grad
from toytorch.facts.composed import called
from toytorch.facts.hints import Fn, Ints
from toytorch.facts.schema import wrong_argument
from toytorch.nn import functional
from toytorch.nn.functional import loss
from toytorch.ops.creation.create import put_out
from toytorch.ops.define import takes_words


def _word(reduction: int) -> str:
    if reduction == 1:
        return "mean"
    return "sum" if reduction == 2 else "none"


def _loss(name: str, tensors: int, *options: str, inner: Any = None) -> Fn:
    """A loss of functional whose options come in the order of C++, the reduction among them.

    inner   what computes it, where functional asks for shapes first and C++ does not
    """
    inner = inner or getattr(functional, name)
    first = inspect.unwrap(inner).__code__.co_varnames[0]

    def function(*args: Any, **kwargs: Any) -> Any:
        given = list(args[:tensors])
        if not given and first == "input":
            given += [kwargs.pop(word) for word in ("input", "x", "a", "x1") if word in kwargs]
        kwargs.update(zip(options, args[tensors:]))
        asked = kwargs.get("reduction", 0)
        if not isinstance(asked, int):
            place = tensors + options.index("reduction") + 1
            raise wrong_argument(name, "reduction", place, "int", asked)
        kwargs["reduction"] = _word(asked)  # PyTorch's parser takes its default for 0
        return inner(*given, **kwargs)

    return called(name, f"`torch.nn.functional.{name}`, with the reduction as a number.", function)


binary_cross_entropy_with_logits = _loss(
    "binary_cross_entropy_with_logits",
    2,
    "weight",
    "pos_weight",
    "reduction",
    inner=loss.entropy_of_logits,
)
cosine_embedding_loss = _loss("cosine_embedding_loss", 3, "margin", "reduction")
hinge_embedding_loss = _loss("hinge_embedding_loss", 2, "margin", "reduction")
margin_ranking_loss = _loss(
    "margin_ranking_loss", 3, "margin", "reduction", inner=loss.ranked_apart
)
poisson_nll_loss = _loss("poisson_nll_loss", 2, "log_input", "full", "eps", "reduction")
triplet_margin_loss = _loss(
    "triplet_margin_loss", 3, "margin", "p", "eps", "swap", "reduction", inner=loss.triplet_of_norms
)
ctc_loss = _loss("ctc_loss", 4, "blank", "reduction", "zero_infinity")


@takes_words()
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Any:
    """`torch.nn.functional.kl_div`, with the reduction as a number.

    >>> torch.kl_div(torch.zeros(2), torch.ones(2), 2)
    tensor(0.)
    """
    if not isinstance(reduction, int):
        raise wrong_argument("kl_div", "reduction", 3, "int", reduction)
    made = functional.kl_div(input, target, reduction="none", log_target=log_target)
    return made.mean() if reduction == 1 else made.sum() if reduction == 2 else made


@takes_words()
def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The largest number of each of even bins, and where it is."""
    return functional.adaptive_max_pool1d(input, output_size, True)


def _largest(name: str, places: bool = False) -> Fn:
    """A pool of functional that gives the largest number of each window, alone or with its place."""
    inner = getattr(functional, name)

    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        return inner(input, kernel_size, stride or None, padding, dilation, ceil_mode, places)

    function.__name__ = function.__qualname__ = name + "_with_indices" * places
    given = "where they are" if places else "no places"
    function.__doc__ = f"`torch.nn.functional.{name}`, which gives {given}."
    return takes_words()(function)


max_pool1d, max_pool2d, max_pool3d = map(_largest, ("max_pool1d", "max_pool2d", "max_pool3d"))
max_pool1d_with_indices = _largest("max_pool1d", places=True)


def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """input ← β·input + α·mat·vec."""
    return input.addmv_(mat, vec, beta=beta, alpha=alpha)


@takes_words()
def frobenius_norm(
    input: Tensor, dim: Ints, keepdim: bool = False, *, out: Tensor | None = None
) -> Any:
    """√Σ|x|² over one or two dimensions."""
    if out is not None:
        refuse_grad("norm", (input,), out)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead."
        )
    return put_out(input.norm(2, dims, keepdim), out, same=True)


@takes_words()
def nuclear_norm(
    input: Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Any:
    """The sum of the singular values of matrices."""
    return put_out(input.norm("nuc", (-2, -1) if dim is None else tuple(dim), keepdim), out)


@takes_words()
def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is spread over processes, which none is."""
    return False


def is_vulkan_available() -> bool:
    """Whether there is a Vulkan device, for which there are no kernels here."""
    return False
