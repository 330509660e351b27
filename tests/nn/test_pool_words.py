"""Pools with chance and back: what they refuse, what they make of nothing, and how results lie."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt


def programs(T: Any, n: int) -> dict[str, Any]:
    f = getattr(T.nn.functional, f"fractional_max_pool{n}d")
    Pool = getattr(T.nn, f"FractionalMaxPool{n}d")
    image = T.ones((2, 4) + (10,) * n)

    def with_samples(*shape: int, kernel: Any = 2, out: Any = 2) -> Any:
        return f(image, kernel, output_size=out, _random_samples=T.ones(*shape) * 0.5)

    last = T.channels_last if n == 2 else T.channels_last_3d
    x = (
        (T.arange(float(2 * 3 * 6**n)) * 7 % 11)
        .reshape((2, 3) + (6,) * n)
        .contiguous(memory_format=last)
    )
    pool = getattr(T.nn.functional, f"max_pool{n}d")

    def back() -> Any:
        y, places = pool(x, 2, return_indices=True)
        return getattr(T.nn.functional, f"max_unpool{n}d")(y, places, 2)

    return {
        "no channels": lambda: Pool(2, output_size=5)(T.ones((1, 0) + (10,) * n)),
        "no width": lambda: Pool(2, output_size=5)(T.ones((3,) + (10,) * (n - 1) + (0,))),
        "no images": lambda: Pool(2, output_size=5)(T.ones((0, 3) + (10,) * n)),
        "no result": lambda: Pool(2, output_size=(0,) * n)(image),
        "kernel": lambda: with_samples(2, 4, n, kernel=()),
        "sizes": lambda: with_samples(2, 4, n, out=(2,) * (n + 1)),
        "too large": lambda: with_samples(2, 4, n, kernel=20),
        "negative": lambda: with_samples(2, 4, n, out=-2),
        "samples of images": lambda: with_samples(1, 4, n),
        "samples of channels": lambda: with_samples(2, 3, n),
        "samples of dimensions": lambda: with_samples(2, 4, n + 1),
        "back": back,
    }


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", programs(tt, 2))
def test_as_in_pytorch(name: str, n: int) -> None:
    found = []
    for T in (torch, tt):
        try:
            made = programs(T, n)[name]()
            found.append((tuple(made.shape), made.stride(), made.tolist()))
        except RuntimeError as error:
            found.append(str(error))
    assert found[1] == found[0]


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_maxima_along_a_line_lie_in_memory_as_in_pytorch(
    turned: bool, grad: bool, places: bool
) -> None:
    def seen(t: Any) -> Any:
        x = t.arange(72.0).view(2, 6, 6)
        x = (x.transpose(1, 2) if turned else x).requires_grad_(grad)
        y = t.nn.functional.max_pool1d(x, 2, return_indices=places)
        made = y if places else (y,)
        return [(m.tolist(), m.stride(), type(m.grad_fn).__name__) for m in made]

    assert seen(tt) == seen(torch)
