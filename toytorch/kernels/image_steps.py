"""Copies of images into another order of memory, as steps of a chain.

Images come as (N, C, H, W) in one of two orders. Kernels of convolution read and write lines of
pixels, (N, H, W, C), some with zeros at both ends of a line, or with channels past the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from toytorch.facts.hints import Shape
from toytorch.kernels.chain import Step
from toytorch.kernels.copy import Copy, inner_of
from toytorch.kernels.memory_format import transposition
from toytorch.loops.llvm.builder import BLOCK
from toytorch.loops.runtime import jit

Dim = tuple[int, int, int]  # a size, and the steps in what is written and in what is read


def pack(
    source: str, images: Shape, last: bool, item: int, to: str, line: int, left: int, wide: int
) -> Step:
    """Images (n, C, H, W), with their channels last or not, into (n, H, line, wide): `left` pixels
    from the beginning of a line."""
    n, c, h, w = images
    pixel = wide * item
    places = (0, to, left * pixel), (1, source, 0)
    outer = n, h * line * pixel, c * h * w * item
    if last:
        lines = h, line * pixel, w * c * item
        if wide == c:
            return copy(item, (outer, lines, (1, 0, 0), (w * c, item, item)), places)
        return copy(item, (outer, lines, (w, pixel, c * item), (c, item, item)), places)
    if line == w:
        h, w, line = 1, h * w, h * w
    lines = h, line * pixel, w * item
    plane = images[2] * images[3] * item
    if min(c, w) < BLOCK:
        return copy(item, (outer, lines, (c, item, plane), (w, pixel, item)), places)
    return transpose(item, (*outer, *lines, c, w, pixel, plane), places)


def unpack(source: str, images: Shape, last: bool, item: int, to: str, wide: int) -> Step:
    """Lines (n, H, W, wide) into images (n, C, H, W), with their channels last or not."""
    n, c, h, w = images
    pixel, plane = wide * item, h * w * item
    places = (0, to, 0), (1, source, 0)
    outer, one = (n, c * plane, h * w * pixel), (1, 0, 0)
    if last:
        return copy(item, (outer, one, (h * w, c * item, pixel), (c, item, item)), places)
    if min(c, h * w) < BLOCK:
        return copy(item, (outer, one, (c, plane, item), (h * w, item, pixel)), places)
    return transpose(item, (*outer, *one, h * w, c, plane, pixel), places)


def copy(item: int, dims: Sequence[Dim], places: tuple[tuple[int, str, int], ...]) -> Step:
    """A copy along four dimensions."""
    (n0, n1, rows, length), (t0, t1, t2, t3), (s0, s1, s2, s3) = zip(*dims)
    words = (0, 0, n1, 1, rows, rows, length, 1 << 62, t0, t1, t2, t3, s0, s1, s2, s3)
    work = n0 * n1 * rows * length * item // 4 * jit.TRAFFIC * 2
    return Step(Copy.kernel(item * 8, inner_of(item, t3, s3)), words, places, n0 * n1, work)


def transpose(item: int, words: tuple[int, ...], places: tuple[tuple[int, str, int], ...]) -> Step:
    """A transposition of matrices, in words of `memory_format`."""
    count, _, _, lines, _, _, rows, columns, _, _ = words
    work = count * lines * rows * columns * item // 4 * jit.TRAFFIC * 2
    call, turns = transposition("f" if item == 4 else "d", *words)
    return Step(call, (0, 0, *words), places, turns, work)
