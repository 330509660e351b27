"""hash() in compiled code, and what reading a program raises under the names of torch.jit.frontend."""

from __future__ import annotations

import importlib

import pytest

from tests.oracle import tt


def same_pairs(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return hash(a) == hash(b)


def same_words(a: str, b: str) -> bool:
    return hash(a) == hash(b)


def of_list(t: tuple[int, list[int]]) -> int:
    return hash(t)


def test_hashes() -> None:
    pairs = tt.jit.script(same_pairs)
    assert pairs((1, 2), (1, 2)) and not pairs((1, 2), (2, 1))
    words = tt.jit.script(same_words)
    assert words("a", "a") and not words("a", "b")
    with pytest.raises(RuntimeError, match="unhashable type"):
        tt.jit.script(of_list)((1, [1]))


def test_names_of_errors() -> None:
    frontend = importlib.import_module(f"{tt.__name__}.jit.frontend")
    assert issubclass(frontend.NotSupportedError, frontend.FrontendError)
    with pytest.raises(frontend.FrontendError):
        tt.jit.script(with_class)


def with_class(x):
    class Inner:
        pass

    return x
