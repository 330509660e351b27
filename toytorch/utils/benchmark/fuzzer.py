"""Tensors of random sizes and layouts, to time with; like `torch.utils.benchmark.Fuzzer`."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from toytorch.core.random import manual_seed
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import dtype as dtype_class
from toytorch.facts.dtype import float32
from toytorch.ops.creation.random import rand, randint

Parameters: TypeAlias = dict[str, Any]
TRIES = 1000


class Distribution(enum.Enum):
    """What numbers between two bounds are drawn from, by name."""

    uniform, loguniform = range(2)


class FuzzedParameter:
    """A number to draw: between `minval` and `maxval`, both included, "uniform" or "loguniform"; or one
    of the keys of a dictionary, whose values are their probabilities.

    A `strict` parameter is drawn once and kept, while others are drawn again until all fit.
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[object, float] | None = None,
        strict: bool = False,
    ) -> None:
        if isinstance(distribution, dict):
            if any(share < 0 for share in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            if abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
            for bound, value in (("minval", minval), ("maxval", maxval)):
                if value is not None:
                    raise AssertionError(
                        f"When passing a custom distribution, '{bound}' must be None"
                    )
        elif distribution not in Distribution.__members__:
            raise AssertionError(f"Unknown distribution: {distribution}")
        self.name, self.strict = name, strict
        self._low, self._high, self._distribution = minval, maxval, distribution

    def sample(self, state: np.random.RandomState) -> Any:
        """A value, drawn from NumPy's generator."""
        if isinstance(self._distribution, dict):
            shares = tuple(self._distribution.values())
            return list(self._distribution)[state.choice(np.arange(len(shares)), p=shares)]
        low: Any = self._low
        high: Any = self._high
        if self._distribution == Distribution.loguniform.name:
            drawn = int(2 ** state.uniform(low=np.log2(low), high=np.log2(high)))
            return min(max(drawn, low), high)
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class ParameterAlias:
    """Says that a parameter is to have the value of another one.

    >>> ParameterAlias("rows")
    ParameterAlias[alias_to: rows]
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A tensor to make: sizes and steps are numbers, or names of parameters.

    probability_contiguous  how often its elements lie in rows; else its dimensions are permuted
    steps                   each so many elements of a larger tensor is one of this
    min_elements, max_elements, max_allocation_bytes  what parameters have to lead to
    dim_parameter           the parameter that says how many of the sizes count
    tensor_constructor      makes it, of (size=, dtype=, **parameters), in place of `rand`
    """

    def __init__(
        self,
        name: str,
        size: Sequence[str | int],
        steps: Sequence[str | int] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: dtype_class = float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:
        self.name = name
        self._size, self._steps, self._dims = size, steps or (), dim_parameter
        self._contiguous, self._dtype, self._cuda = probability_contiguous, dtype, cuda
        self._elements = (min_elements or 0, math.inf if max_elements is None else max_elements)
        self._bytes = math.inf if max_allocation_bytes is None else max_allocation_bytes
        self._make = tensor_constructor or self.default_tensor_constructor

    @staticmethod
    def default_tensor_constructor(
        size: Sequence[int], dtype: dtype_class, **kwargs: object
    ) -> Tensor:
        """Numbers from 0 to 1, or integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return rand(tuple(size), dtype=dtype)
        return randint(1, 127, tuple(size), dtype=dtype)

    def _sizes(self, params: Parameters) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sizes and steps of these parameters; both are 1 in dimensions that are not named."""
        dims = len(self._size) if self._dims is None else params[self._dims]

        def resolved(values: Sequence[str | int]) -> tuple[int, ...]:
            found = [params[v] if isinstance(v, str) else v for v in values][:dims]
            return (*found, *[1] * (dims - len(found)))

        return resolved(self._size), resolved(self._steps)

    def satisfies_constraints(self, params: Parameters) -> bool:
        """Whether a tensor of these parameters is neither too small nor too large."""
        size, steps = self._sizes(params)
        low, high = self._elements
        room = math.prod(size) * math.prod(steps) * self._dtype.itemsize
        return low <= math.prod(size) <= high and room <= self._bytes

    def _make_tensor(
        self, params: Parameters, state: np.random.RandomState
    ) -> tuple[Tensor, dict[str, Any]]:
        """The tensor, and what it is like."""
        size, steps = self._sizes(params)
        whole = tuple(n * step for n, step in zip(size, steps))
        made = self._make(size=whole, dtype=self._dtype, **params)
        made = made.cuda() if self._cuda else made
        order = np.arange(len(size))
        if state.rand() > self._contiguous:
            while len(size) > 1 and (order == np.arange(len(size))).all():
                order = state.permutation(made.dim())
            made = made.permute(order.tolist()).contiguous().permute(np.argsort(order).tolist())
        tensor = made[tuple(slice(0, end, step) for end, step in zip(whole, steps))]
        return tensor, {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Draws parameters, and tensors whose sizes they are.

    >>> sizes = [FuzzedParameter(name, 1, 64, "loguniform") for name in ("rows", "columns")]
    >>> fuzzer = Fuzzer(sizes, [FuzzedTensor("x", ("rows", "columns"))], seed=0)
    >>> [tuple(tensors["x"].shape) for tensors, about, params in fuzzer.take(3)]
    [(19, 12), (6, 40), (7, 29)]
    """

    def __init__(
        self,
        parameters: Iterable[FuzzedParameter | Iterable[FuzzedParameter]],
        tensors: Iterable[FuzzedTensor | Iterable[FuzzedTensor]],
        constraints: Iterable[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        if seed is None:
            seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64))
        self._seed, self._constraints = seed, list(constraints or ())
        self._parameters, self._tensors = flat(parameters), flat(tensors)
        shared = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if shared:
            raise ValueError(f"Duplicate names in parameters and tensors: {shared}")
        self._rejections = self._total = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, Any], Parameters]]:
        """n times: tensors by name, what each is like, and the parameters."""
        state = np.random.RandomState(self._seed)
        manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield {k: t for k, (t, _) in made.items()}, {k: a for k, (_, a) in made.items()}, params

    @property
    def rejection_rate(self) -> float:
        """The share of drawn parameters that did not fit."""
        return self._rejections / self._total if self._total else 0.0

    def _generate(self, state: np.random.RandomState) -> Parameters:
        strict: Parameters = {}
        for _ in range(TRIES):
            params: Parameters = {}
            for p in self._parameters:
                params[p.name] = strict[p.name] if p.name in strict else p.sample(state)
                if p.strict:
                    strict[p.name] = params[p.name]
            params = resolved(params)
            self._total += 1
            fits = all(wanted(params) for wanted in self._constraints)
            if fits and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def flat(values: Iterable[Any]) -> list[Any]:
    """Values, of which some may be lists of values."""
    return [v for each in values for v in (each if isinstance(each, Iterable) else [each])]


def resolved(params: Parameters) -> Parameters:
    """Parameters with the values of those they are to be like; ValueError where these go in a circle."""

    def value(name: str) -> Any:
        found = params[name]
        for _ in params:
            if not isinstance(found, ParameterAlias):
                return found
            found = params[found.alias_to]
        raise ValueError(f"ParameterAlias cycle detected\n{params}")

    return {name: value(name) for name in params}
