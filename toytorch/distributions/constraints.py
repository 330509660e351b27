"""What values a parameter or a sample may have: objects whose `check` says so for each value.

>>> positive.check(torch.tensor([-1., 2.]))
tensor([False,  True])
>>> interval(0, 5)
Interval(lower_bound=0, upper_bound=5)

A value has `event_dim` dimensions, such as 1 of a point on a simplex, and `check` gives one answer
for each. What depends on other parameters is `dependent`. The names, like `positive`, are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NotImplementedType
from typing import TYPE_CHECKING

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions.utils import Value
from toytorch.facts.hints import Fn
from toytorch.facts.parts import of_part

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region of values: whether it is discrete, and how many dimensions one value has."""

    if TYPE_CHECKING:  # a subclass may make properties of them

        @property
        def is_discrete(self) -> bool: ...

        @property
        def event_dim(self) -> int: ...

    else:
        is_discrete = False
        event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each value lies in the region."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """A region that other parameters decide."""

    def __init__(
        self,
        *,
        is_discrete: bool | NotImplementedType = NotImplemented,
        event_dim: int | NotImplementedType = NotImplemented,
    ) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:
        """Whether it is discrete, if that does not depend on parameters."""
        if isinstance(self._is_discrete, NotImplementedType):
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        """The dimensions of a value, if they do not depend on parameters."""
        if isinstance(self._event_dim, NotImplementedType):
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(
        self,
        *,
        is_discrete: bool | NotImplementedType = NotImplemented,
        event_dim: int | NotImplementedType = NotImplemented,
    ) -> _Dependent:
        """The same, with more of it known."""
        if is_discrete is NotImplemented:
            is_discrete = self._is_discrete
        if event_dim is NotImplemented:
            event_dim = self._event_dim
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, x: Tensor) -> Tensor:
        """Refuses: nobody knows without the other parameters."""
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: object) -> bool:
    """Whether a region is one that other parameters decide."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """`property` for a region that depends on the object: of the class it is `dependent`."""

    def __init__(
        self,
        fn: Fn | None = None,
        *,
        is_discrete: bool | NotImplementedType = NotImplemented,
        event_dim: int | NotImplementedType = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Fn) -> _DependentProperty:  # type: ignore[override]  # a decorator once its options are given
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# -- regions made of regions -----------------------------------------------------------------------


class _IndependentConstraint(Constraint):
    """Values of a region side by side, which count as one value: all of them must lie in it."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(
                f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
            )
        if not isinstance(reinterpreted_batch_ndims, int):
            raise AssertionError(
                "reinterpreted_batch_ndims must be an int, got "
                f"{type(reinterpreted_batch_ndims).__name__}"
            )
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(
                f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = of_part("base_constraint.is_discrete", "Whether the region is.")

    @property
    def event_dim(self) -> int:
        """As many more as are side by side."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        """Whether all of each group lie in the region."""
        each = self.base_constraint.check(value)
        ndims = self.reinterpreted_batch_ndims
        if each.dim() < ndims:
            needed = self.base_constraint.event_dim + ndims
            raise ValueError(f"Expected value.dim() >= {needed} but got {value.dim()}")
        return each.reshape(each.shape[: each.dim() - ndims] + (-1,)).all(-1)

    def __repr__(self) -> str:
        name = type(self).__name__[1:]
        return f"{name}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture, whose components lie along one more dimension."""

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(
                f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
            )
        self.base_constraint = base_constraint

    is_discrete = of_part("base_constraint.is_discrete", "Whether the region of the components is.")
    event_dim = of_part("base_constraint.event_dim", "As the components have it.")

    def check(self, value: Tensor) -> Tensor:
        """Whether the value could be drawn from each of the components."""
        own = self.event_dim
        each = self.base_constraint.check(value.unsqueeze(-1 - own))
        if value.dim() < own:
            raise ValueError(f"Expected value.dim() >= {own} but got {value.dim()}")
        batch = value.dim() - own
        return each.reshape(each.shape[:batch] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Parts(Constraint):
    """Regions for the parts of a value along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        """Whether any part is."""
        return any(c.is_discrete for c in self.cseq)

    def refuse_dim(self, value: Tensor) -> None:
        """Refuses values that do not have the dimension."""
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )


class _Cat(_Parts):
    """Pieces of these lengths one after the other, each in its own region."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    @property
    def event_dim(self) -> int:
        """That of the piece that has most."""
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        """The answers of all pieces, one after the other."""
        self.refuse_dim(value)
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        checks = [
            c.check(value.narrow(self.dim, start, length))
            for c, start, length in zip(self.cseq, starts, self.lengths)
        ]
        return torch.cat(checks, self.dim)


class _Stack(_Parts):
    """Slices along a dimension, each in its own region."""

    @property
    def event_dim(self) -> int:
        """That of the slice that has most, and one more if the dimension is among them."""
        dim = max(c.event_dim for c in self.cseq)
        return dim + (self.dim + dim < 0)

    def check(self, value: Tensor) -> Tensor:
        """The answers of all slices."""
        self.refuse_dim(value)
        slices = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        checks = [c.check(v) for v, c in zip(slices, self.cseq)]
        return torch.stack(checks, self.dim)


# -- numbers ---------------------------------------------------------------------------------------


class _Bounded(Constraint):
    """A region between bounds, which it names."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{type(self).__name__[1:]}({bounds})"


class _Above(_Bounded):
    def __init__(self, lower_bound: Value) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound: Value) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    def __init__(self, lower_bound: Value, upper_bound: Value) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _IntegerInterval(_Between):
    """Whole numbers, both bounds among them."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    """Whole numbers up to the bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Whole numbers from the bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """Every number that is one: not NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(_Above):
    """Above the bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """From the bound on."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Below):
    """Below the bound."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Between the bounds, or at one."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """From the lower bound to below the upper one."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


# -- vectors ---------------------------------------------------------------------------------------


class _OneHot(Constraint):
    """One 1 among zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    """Numbers from 0 on that add up to 1 (within 10⁻⁶)."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Counts that add up to the bound at most."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Value) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


# -- matrices --------------------------------------------------------------------------------------


class _Matrix(Constraint):
    event_dim = 2


class _LowerTriangular(_Matrix):
    """Zeros above the diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).view(value.shape[:-2] + (-1,)).min(-1)[0]


class _LowerCholesky(_Matrix):
    """Lower triangular, with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        triangular = lower_triangular.check(value)
        return triangular & (value.diagonal(dim1=-2, dim2=-1) > 0).min(-1)[0]


class _CorrCholesky(_Matrix):
    """Cholesky factors of correlations: besides, every row has length 1."""

    def check(self, value: Tensor) -> Tensor:
        tolerance = torch.finfo(value.dtype).eps * value.size(-1) * 10  # rounding of a sum
        lengths = torch.linalg.norm(value.detach(), dim=-1)
        return lower_cholesky.check(value) & (lengths - 1.0).abs().le(tolerance).all(dim=-1)


class _Square(_Matrix):
    """As many rows as columns."""

    def check(self, value: Tensor) -> Tensor:
        rows, columns = value.shape[-2], value.shape[-1]
        return torch.full(value.shape[:-2], rows == columns, dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    """Equal to its transpose (within 10⁻⁶)."""

    def check(self, value: Tensor) -> Tensor:
        is_square = super().check(value)
        if not is_square.all():
            return is_square
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric, with no eigenvalue below 0."""

    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        return torch.linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric, with a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        return torch.linalg.cholesky_ex(value).info.eq(0)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
