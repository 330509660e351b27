"""Which function computes the divergence of two classes of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from toytorch.core.tensor import Tensor
from toytorch.distributions.distribution import Distribution
from toytorch.facts import warned

Formula: TypeAlias = Callable[[Any, Any], Tensor]
F = TypeVar("F", bound=Formula)
_KL_REGISTRY: dict[tuple[type, type], Formula] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}  # what was found for pairs, or NotImplemented


def register_kl(type_p: type, type_q: type) -> Callable[[F], F]:
    """A decorator: the function computes KL(p‖q) for these classes and those derived from them.

    Where several fit, the one closest to p's class is taken, and among these the one closest to
    q's. Raises TypeError for what is no class. Like
    `torch.distributions.kl.register_kl`.
    """
    for kind in (type_p, type_q):
        issubclass(kind, Distribution)  # what is no class is refused here

    def register(function: F) -> F:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return register


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The function for two classes, or NotImplemented. Warns if p and q would choose otherwise."""

    def near(pair: tuple[type, type]) -> tuple[int, int]:
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])

    found = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not found:
        return NotImplemented
    by_p = min(found, key=near)
    by_q = min(found, key=lambda pair: near(pair)[::-1])
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warned.at_call(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p‖q) = E_p[log p(x) - log q(x)], of `batch_shape`; it is 0 where p = q and never less.

    Raises NotImplementedError for pairs of classes that nobody has registered. Like
    `torch.distributions.kl_divergence`.
    """
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _dispatch_kl(*key)
    function = _KL_MEMOIZE[key]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return function(p, q)
