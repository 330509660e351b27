"""Names in `torch.special` of functions that are also elsewhere."""

from __future__ import annotations

from typing import Any

from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.core.write import refuse_before_kernel
from toytorch.facts.hints import DType
from toytorch.ops.define import PUBLIC, need_tensor, takes_words
from toytorch.ops.elementwise import arithmetic, elementary, floating
from toytorch.ops.reductions import exponentials
from toytorch.ops.special import bessel, error_gamma, incomplete_gamma

# They make the records.
assert all((elementary, floating, arithmetic, error_gamma, bessel, incomplete_gamma))

# A name in torch.special, and the record it stands for.
NAMES = {
    "digamma": "digamma", "psi": "digamma", "gammaln": "lgamma", "erf": "erf", "erfc": "erfc",
    "erfinv": "erfinv", "exp2": "exp2", "expm1": "expm1", "log1p": "log1p", "i0": "i0",
    "expit": "sigmoid", "sinc": "sinc", "logit": "logit", "xlogy": "xlogy", "gammainc": "igamma",
    "gammaincc": "igammac",
}  # fmt: skip
for _name, _source in NAMES.items():
    PUBLIC[f"special.{_name}"] = registry[_source].function
PUBLIC.update({"special.logsumexp": PUBLIC["logsumexp"], "special.polygamma": PUBLIC["polygamma"]})


@takes_words()
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """`torch.softmax`."""
    return exponentials.softmax.function(input, dim, dtype)


@takes_words()
def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """`torch.log_softmax`."""
    return exponentials.log_softmax.function(input, dim, dtype)


@takes_words()
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Any:
    """`torch.round`, which under this name has no kernel for integers."""
    if input.dtype.rank < 2 and not decimals:
        error = NotImplementedError(f"\"round_vml_cpu\" not implemented for '{input.dtype.legacy}'")
        if out is not None:
            refuse_before_kernel(registry["round"], (input, decimals), out)
        raise error
    return registry["round"].function(input, decimals=decimals, out=out)


PUBLIC["special.round"] = need_tensor(round, "special.round")
PUBLIC.update({"special.softmax": softmax, "special.log_softmax": log_softmax})
