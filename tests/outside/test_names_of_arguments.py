"""Arguments by the names that PyTorch, older PyTorch and NumPy have for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import What, alike_in_memory, alike_rounded


@pytest.mark.parametrize(
    "what",
    [
        lambda m: m.reciprocal_(self=m.ones(2)),
        lambda m: m.clamp_(self=m.ones(2), min=2),
        lambda m: m.squeeze_(self=m.ones(2)) if hasattr(m, "squeeze_") else m.relu_(self=m.ones(2)),
        lambda m: m.clamp_(input=m.ones(2), min=2),
        lambda m: m.pow(self=2, exponent=m.ones(2)),
        lambda m: m.xlogy(self=2, other=m.ones(2)),
        lambda m: m.zero_(x=m.ones(2)),
        lambda m: m.norm_except_dim(m.ones(2, 3), axis=-2),
        lambda m: m.rsub(m.ones(2), 1e-3, -1),
        lambda m: m.ones(2).qscheme(),
        lambda m: m.hspmm(m.eye(2), m.ones(2, 2)),
        lambda m: m.native_norm(m.ones(2)),
    ],
)
def test_names(what: What) -> None:
    alike_rounded(what, words=False)


NUMBERS_FIRST = [
    "add", "sub", "mul", "div", "floor_divide", "remainder", "pow", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "xlogy", "special.xlog1py",
    "special.zeta", "dist", "ldexp", "equal", "kron",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["float32", "int64"])
@pytest.mark.parametrize("word", ["input", "self", "x"])
@pytest.mark.parametrize("name", NUMBERS_FIRST)
def test_a_number_is_self_or_input_as_pytorch_has_it(name: str, word: str, kind: str) -> None:
    for first in (2, "a tensor"):

        def call(m: Any) -> Any:
            function = m
            for part in name.split("."):
                function = getattr(function, part)
            x = m.tensor([1, 3], dtype=getattr(m, kind))
            other = {"exponent" if name == "pow" else "other": x}
            return function(**{word: 2 if first == 2 else x}, **other)  # noqa: B023  # called in this turn

        alike_rounded(call, words=False)


@pytest.mark.parametrize("name", ["trace", "diag", "cov", "fft.fft2", "flatten", "is_conj"])
def test_a_number_is_no_tensor_by_name_either(name: str) -> None:
    def call(m: Any) -> Any:
        function = m
        for part in name.split("."):
            function = getattr(function, part)
        return function(input=2)

    alike_rounded(call, words=False)


@pytest.mark.parametrize("name", ["unique", "unique_consecutive", "norm"])
def test_functions_of_python_know_no_words_of_numpy(name: str) -> None:
    for word in ("axis", "dim"):
        alike_in_memory(lambda m: getattr(m, name)(m.ones(3), **{word: 0}))  # noqa: B023  # see above
        alike_in_memory(lambda m: getattr(m.ones(3), name)(**{word: 0}))  # noqa: B023  # see above


# -- names of arguments ----------------------------------------------------------------------------


FIRST = [
    "det",
    "inverse",
    "slogdet",
    "matrix_power",
    "linalg.det",
    "linalg.inv",
    "linalg.slogdet",
    "linalg.eigh",
    "linalg.eigvalsh",
    "linalg.cond",
    "linalg.norm",
    "linalg.cholesky",
    "linalg.pinv",
    "linalg.matrix_rank",
    "linalg.tensorinv",
    "linalg.svdvals",
    "linalg.lstsq",
    "linalg.matrix_norm",
    "abs_",
    "detach",
    "detach_",
    "zero_",
    "nn.functional.one_hot",
    "lu_solve",
    "split",
    "cosine_embedding_loss",
    "triplet_margin_loss",
    "hinge_embedding_loss",
    "cdist",
    "pairwise_distance",
    "linalg.vander",
    "linalg.vecdot",
]


@pytest.mark.parametrize("word", ["input", "self", "x", "a", "x1", "A"])
@pytest.mark.parametrize("name", FIRST)
def test_the_name_of_the_first_argument(name: str, word: str) -> None:
    more: dict[str, Any] = {
        "matrix_power": {"n": 1}, "linalg.tensorinv": {"ind": 1}, "split": {"dim": 0},
    }.get(name, {})  # fmt: skip

    def call(m: Any) -> Any:
        function = m
        for part in name.split("."):
            function = getattr(function, part)
        x = m.tensor([1, 2]) if name.endswith("one_hot") else m.eye(2)
        return type(function(**{word: x}, **more)).__name__

    alike_in_memory(call)


def test_split_is_the_split_of_what_it_is_given() -> None:
    alike_in_memory(lambda m: m.split("a-b", "-"))
    alike_in_memory(lambda m: m.split(m.arange(4), 2))
    alike_in_memory(lambda m: m.split(m.arange(4), split_size=2))


# -- methods whose list of integers may be given one by one -----------------------------------------

ONE_BY_ONE = [
    (name, given)
    for name in dir(torch.Tensor)
    if not name.startswith("_")
    for given in [(0, 1), (1, 2), (2, 1, 2), (1, 1, 2, 4)]
]


def made_by(m: Any, name: str, *given: Any) -> Any:
    """The shapes of what a method gives; the type of its error."""
    made, refused = attempt(lambda: getattr(m.ones(1, 2, 4), name)(*given))
    if refused is not None:
        return type(refused)
    parts = made if isinstance(made, (tuple, list)) else [made]
    return [tuple(x.shape) if isinstance(x, m.Tensor) else x for x in parts]


def test_integers_one_by_one() -> None:
    """Where PyTorch's method gives the same for f(0, 1) and f((0, 1)), so does ours."""
    seen = set()
    for name, given in ONE_BY_ONE:
        want = made_by(torch, name, *given)
        if not isinstance(want, type) and want == made_by(torch, name, given):
            assert made_by(tt, name, *given) == want, (name, given)
            seen.add(name)
    assert len(seen) > 15, seen


@pytest.mark.parametrize(
    "what",
    [
        lambda m: m.ones(1, 1).squeeze(0, 1.5),
        lambda m: m.ones(1, 1).count_nonzero(0, 1.0),
        lambda m: m.ones(1).broadcast_to(3, 1.0),
        lambda m: m.ones(1, 4).hsplit(1, 2.0),
        lambda m: m.ones(1).broadcast_to(3).shape,
    ],
)
def test_integers_one_by_one_are_integers(what: What) -> None:
    alike_rounded(what)


def test_functions_take_a_list() -> None:
    for m in (torch, tt):
        for given in [(3, 1), (3,)]:
            with pytest.raises(TypeError):
                m.broadcast_to(m.ones(1), *given)
        with pytest.raises(TypeError):
            m.hsplit(m.ones(1, 4), 1, 2)
