"""Ways to choose which weights stay: masks of ones and zeros."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.nn.utils.recomputed import Recomputed
from toytorch.ops.creation.create import ones_like, zeros_like
from toytorch.ops.creation.random import rand, rand_like

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module


def _validate_pruning_amount_init(amount: float) -> None:
    """Refuses what is neither a number of entries nor a share of them."""
    if not isinstance(amount, Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if float(amount) < 0 or (not isinstance(amount, Integral) and float(amount) > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a "
            "non-negative integer"
        )


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    """Refuses more entries than there are."""
    if isinstance(amount, Integral) and int(amount) > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    """How many of `tensor_size` go, given as a number or as a share."""
    return int(amount) if isinstance(amount, Integral) else round(float(amount) * tensor_size)


def _count(amount: float, size: int) -> int:
    """The two together."""
    _validate_pruning_amount(amount, size)
    return _compute_nparams_toprune(amount, size)


class BasePruningMethod(Recomputed, ABC):
    """A mask over one parameter: weight = weight_orig·weight_mask in every call.

    A subclass says in `compute_mask` which elements stay, and in PRUNING_TYPE among what it
    chooses: elements ("unstructured"), channels ("structured") or all at once ("global").
    """

    PRUNING_TYPE = "unstructured"
    name = ""

    @property
    def _tensor_name(self) -> str:
        return self.name

    @_tensor_name.setter
    def _tensor_name(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask like default_mask, with more zeros, for values (or scores) t."""

    def apply_mask(self, module: Module) -> Any:
        """The parameter with its mask."""
        if not self.name:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self.name + "_orig")
        return getattr(module, self.name + "_mask").to(dtype=original.dtype) * original

    def compute_weight(self, module: Module) -> Any:
        return self.apply_mask(module)

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: object,
        importance_scores: Tensor | None = None,
        **kwargs: object,
    ) -> Any:
        """Prunes a parameter, beyond what was pruned before."""
        method: Any = cls(*args, **kwargs)
        method.name = name
        earlier = [
            (k, h)
            for k, h in module._forward_pre_hooks.items()
            if isinstance(h, BasePruningMethod) and h.name == name
        ]
        for key, old in earlier:
            del module._forward_pre_hooks[key]
            if not isinstance(old, PruningContainer):
                old = PruningContainer(old)
            old.add_pruning_method(method)
            method = old
        value = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != value.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {value.shape}"
            )
        scores = value if importance_scores is None else importance_scores
        before = getattr(module, name + "_mask").detach().clone() if earlier else ones_like(value)
        try:
            mask = method.compute_mask(scores.detach(), before.detach())
        except Exception:
            if not earlier:  # it was taken out before, and is the last parameter now, as in PyTorch
                module._parameters[name] = module._parameters.pop(name)
            raise
        if not earlier:
            module.register_parameter(name + "_orig", value)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Any = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """A tensor with the mask that this method finds for it."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, got "
                f"{importance_scores.shape} vs {t.shape}"
            )
        before = ones_like(t) if default_mask is None else default_mask
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, before)

    def remove(self, module: Module) -> None:
        """Makes the pruned values the parameter, for good."""
        if not self.name:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight, name = self.apply_mask(module), self.name
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter; each chooses among what those before left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        self.name = args[0].name if args else ""
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: object) -> None:
        """Adds a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self.name != method.name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self.name}' to PruningContainer {self}. Found '{method.name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __getitem__(self, index: int) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        kept: Any = tuple(slice(None) for _ in t.shape)
        if method.PRUNING_TYPE == "unstructured":
            kept = default_mask.eq(1)
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim
            alive = default_mask.sum([d for d in range(t.ndim) if d != dim]) != 0
            kept = tuple(alive if d == dim else slice(None) for d in range(t.ndim))
        elif method.PRUNING_TYPE != "global":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.clone().to(dtype=t.dtype)
        mask[kept] = method.compute_mask(t[kept], default_mask[kept]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask and the original."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Unstructured(BasePruningMethod):
    """Elements with the smallest scores."""

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def score(self, t: Tensor) -> Tensor:
        """A number for each element; the largest stay."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone().reshape(-1)
        if count:
            places = registry["topk"].function(self.score(t).reshape(-1), count, largest=False)[1]
            mask[places] = 0
        return mask.reshape(default_mask.shape)


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def score(self, t: Tensor) -> Tensor:
        return -rand_like(t)  # PyTorch prunes those with the largest numbers


class L1Unstructured(_Unstructured):
    """Prunes the elements nearest to 0."""

    def score(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(BasePruningMethod):
    """Whole channels with the smallest scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def score(self, t: Tensor) -> Tensor:
        """A number for each channel; the largest stay."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. "
                f"Found tensor of shape {t.shape} with {t.ndim} dims"
            )
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        if not count:
            return default_mask
        stay = registry["topk"].function(self.score(t), size - count, largest=True)[1]
        mask = zeros_like(t)
        mask.index_fill_(self.dim % t.ndim, stay, 1)
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def score(self, t: Tensor) -> Tensor:
        return rand(t.shape[self.dim])


class LnStructured(_Structured):
    """Prunes the channels with the smallest norms."""

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def score(self, t: Tensor) -> Tensor:
        rest = [d for d in range(t.ndim) if d != self.dim % t.ndim]
        return t.norm(p=self.n, dim=rest)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask "
                f"shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)
