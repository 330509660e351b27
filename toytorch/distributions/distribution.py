"""`Distribution`: what every distribution answers to, and how its parameters are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.constraints import Constraint
from toytorch.distributions.utils import Shape, by_formula, lazy_property
from toytorch.facts import warned
from toytorch.facts.parts import of_part
from toytorch.facts.size import Size

__all__ = ["Distribution"]


class Distribution:
    """A batch of probability distributions of one kind.

    A sample has the shape `sample_shape + batch_shape + event_shape`: parameters of `batch_shape`
    stand side by side, and each draw of one of them has `event_shape`, which is empty for numbers.
    `log_prob` gives one number for each event.

    A subclass states `arg_constraints` and `support`, and what of it `expand` makes larger: in
    `_batched`, {name of a tensor or distribution: how many dimensions it has after the batch}; names
    in `_same` stay as they are.
    """

    if TYPE_CHECKING:  # subclasses state these as class attributes, or compute them

        @property
        def has_rsample(self) -> bool: ...

        @property
        def has_enumerate_support(self) -> bool: ...

    else:
        has_rsample = False
        has_enumerate_support = False
    _validate_args = __debug__
    _batched: ClassVar[dict[str, int]]
    _same: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check parameters and samples if their `validate_args` is None."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Size = Size(),  # noqa: B008
        event_shape: Size = Size(),  # noqa: B008
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()
        super().__init__()

    def _check_arguments(self) -> None:
        """Refuses parameters outside of their regions."""
        try:
            regions = self.arg_constraints
        except NotImplementedError:
            regions = {}
            warned.at_call(
                f"{type(self)} does not define `arg_constraints`. "
                "Please set `arg_constraints = {}` or initialize the distribution "
                "with `validate_args=False` to turn off validation."
            )
        for name, region in regions.items():
            if constraints.is_dependent(region):
                continue
            if name not in vars(self) and isinstance(getattr(type(self), name), lazy_property):
                continue  # follows from the ones that were given
            value = getattr(self, name)
            if not region.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({_described(value)}) of distribution {self!r} "
                    f"to satisfy the constraint {region!r}, but found invalid values:\n{value}"
                )

    # -- shapes ------------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters, less what belongs to one event."""
        return self._batch_shape

    event_shape = of_part("_event_shape", "The shape of one draw.")

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """The same with parameters broadcast to a larger batch, without copies of them.

        A subclass that makes its own object gives it as `_instance`.
        """
        stating: Any = next((c for c in type(self).__mro__ if "_batched" in vars(c)), None)
        if stating is None:
            raise NotImplementedError  # a subclass says it, or has none, as in PyTorch
        new = self._get_checked_instance(stating, _instance)
        batch_shape = torch.Size(batch_shape)
        for name in stating._same:
            vars(new)[name] = vars(self)[name]
        for name, dims in stating._batched.items():
            if name in vars(self):
                part = vars(self)[name]
                shape = part.shape if isinstance(part, Tensor) else part.batch_shape
                vars(new)[name] = part.expand(batch_shape + shape[len(shape) - dims :])
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        """An empty object of this class. Refuses a subclass that has an `__init__` of its own."""
        if _instance is not None:
            return _instance
        own: Any = type(self)
        if own.__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self))

    def _extended_shape(self, sample_shape: Shape = ()) -> Size:
        """The shape of so many samples."""
        return torch.Size(sample_shape) + self._batch_shape + self._event_shape

    # -- what it states ----------------------------------------------------------------------------

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """The region of each parameter."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    @property
    def support(self) -> Constraint:
        """The region of its samples."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    @property
    def mean(self) -> Tensor:
        """E[x], of `batch_shape + event_shape`."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    @property
    def mode(self) -> Tensor:
        """Where the density is largest."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """E[(x - E[x])²], of each element."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    stddev = by_formula("The root of the variance.", lambda self: self.variance.sqrt())

    # -- samples -----------------------------------------------------------------------------------

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws, without a gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws that are functions of the parameters, so that gradients flow to these."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`, by its older name."""
        warned.at_call(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning
        )
        return self.sample((n,))

    # -- values ------------------------------------------------------------------------------------

    def log_prob(self, value: Tensor) -> Tensor:
        """The log of the density (or the chance, where samples are discrete) at values."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def cdf(self, value: Tensor) -> Tensor:
        """The chance of a sample up to a value."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def icdf(self, value: Tensor) -> Tensor:
        """The value up to which a sample comes with a chance: the inverse of `cdf`."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along a new first dimension.

        Without `expand` the batch has sizes of 1.
        """
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def entropy(self) -> Tensor:
        """-E[log p(x)], of `batch_shape`."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def perplexity(self) -> Tensor:
        """e to the power of the entropy."""
        return torch.exp(self.entropy())

    def _check_sample(self, value: Tensor) -> None:
        """Refuses a value that is none of this distribution, if values are checked at all."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """Refuses a value that is none of this distribution."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        first = value.dim() - len(self._event_shape)
        if value.size()[first:] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.size()} vs {self._event_shape}."
            )
        shape, expected = value.size(), self._batch_shape + self._event_shape
        for i, j in zip(reversed(shape), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{shape} vs {expected}."
                )
        try:
            support: Constraint | None = self.support
        except NotImplementedError:
            warned.at_call(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation."
            )
            return
        assert support is not None, "support is unexpectedly None"
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({_described(value)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = {k: vars(self)[k] for k in self.arg_constraints if k in vars(self)}
        shown = (f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in given.items())
        return f"{type(self).__name__}({', '.join(shown)})"


def _described(value: Tensor) -> str:
    return f"{type(value).__name__} of shape {tuple(value.shape)}"
