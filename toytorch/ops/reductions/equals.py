"""Which of equal elements come first where a row is not sorted but only divided.

PyTorch leaves that to C++'s `nth_element`, `partial_sort` and `sort`. Here are the methods of GNU's
library (introselect and introsort: Musser 1997), on lists of places and a comparison of places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Before = Callable[[int, int], bool]
SHORT = 16  # rows that are sorted by insertion


def comparison(row: list[Any], largest: bool) -> Before:
    """Whether one place comes before another by the elements there; NaN is the largest."""

    def up(i: int, j: int) -> bool:
        x, y = row[i], row[j]
        return bool((x == x and y != y) or x < y)

    def down(i: int, j: int) -> bool:
        x, y = row[i], row[j]
        return bool((x != x and y == y) or x > y)

    return down if largest else up


def top(row: list[Any], k: int, largest: bool, in_order: bool) -> list[int]:
    """The places of the k largest (or smallest), as `topk` names them."""
    places, before = list(range(len(row))), comparison(row, largest)
    if not k:
        return []
    if k * 64 <= len(row):
        select_by_heap(places, 0, k, len(row), before)
        sort_heap(places, 0, k, before)
    else:
        divide(places, k - 1, before)
        if in_order:
            sort(places, k - 1, before)
    return places[:k]


def divide(places: list[int], k: int, before: Before) -> None:
    """Puts what is k-th in order at k: what is before it comes before, the rest after."""
    first, last = 0, len(places)
    if k >= last:
        return
    depth = 2 * (last.bit_length() - 1)
    while last - first > 3:
        if not depth:
            select_by_heap(places, first, k + 1, last, before)
            places[first], places[k] = places[k], places[first]
            return
        depth -= 1
        cut = part(places, first, last, before)
        first, last = (cut, last) if cut <= k else (first, cut)
    insert(places, first, last, before)


def sort(places: list[int], n: int, before: Before) -> None:
    """Sorts the first n places."""
    if not n:
        return
    pending = [(0, n, 2 * (n.bit_length() - 1))]
    while pending:
        first, last, depth = pending.pop()
        while last - first > SHORT:
            if not depth:
                select_by_heap(places, first, last, last, before)
                sort_heap(places, first, last, before)
                break
            depth -= 1
            cut = part(places, first, last, before)
            pending.append((cut, last, depth))
            last = cut
    insert(places, 0, min(n, SHORT), before)
    for i in range(SHORT, n):
        carry(places, i, before)


def part(places: list[int], first: int, last: int, before: Before) -> int:
    """Divides a part around the median of three, which comes first, and gives where."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    x, y, z = places[a], places[b], places[c]
    if before(x, y):
        m = b if before(y, z) else c if before(x, z) else a
    else:
        m = a if before(x, z) else c if before(y, z) else b
    places[first], places[m] = places[m], places[first]
    pivot, i, j = places[first], first + 1, last
    while True:
        while before(places[i], pivot):
            i += 1
        j -= 1
        while before(pivot, places[j]):
            j -= 1
        if i >= j:
            return i
        places[i], places[j] = places[j], places[i]
        i += 1


def insert(places: list[int], first: int, last: int, before: Before) -> None:
    """Sorts a part by insertion."""
    for i in range(first + 1, last):
        if before(places[i], places[first]):
            places.insert(first, places.pop(i))
        else:
            carry(places, i, before)


def carry(places: list[int], i: int, before: Before) -> None:
    """Carries one place back to where it belongs."""
    value = places[i]
    while before(value, places[i - 1]):
        places[i] = places[i - 1]
        i -= 1
    places[i] = value


def select_by_heap(places: list[int], first: int, mid: int, last: int, before: Before) -> None:
    """Makes a heap of the first places, of what comes before the rest."""
    n = mid - first
    for parent in reversed(range(n // 2)):
        sift(places, first, parent, n, places[first + parent], before)
    for i in range(mid, last):
        if before(places[i], places[first]):
            value, places[i] = places[i], places[first]
            sift(places, first, 0, n, value, before)


def sort_heap(places: list[int], first: int, last: int, before: Before) -> None:
    """Takes a heap apart from its end."""
    for end in range(last - 1, first, -1):
        value, places[end] = places[end], places[first]
        sift(places, first, 0, end - first, value, before)


def sift(places: list[int], first: int, hole: int, n: int, value: int, before: Before) -> None:
    """Lets a hole sink to the bottom of a heap and a value rise from there."""
    top, child = hole, hole
    while child < (n - 1) // 2:
        child = 2 * (child + 1)
        if before(places[first + child], places[first + child - 1]):
            child -= 1
        places[first + hole] = places[first + child]
        hole = child
    if n % 2 == 0 and child == (n - 2) // 2:
        child = 2 * child + 1
        places[first + hole] = places[first + child]
        hole = child
    parent = (hole - 1) // 2
    while hole > top and before(places[first + parent], value):
        places[first + hole] = places[first + parent]
        hole, parent = parent, (parent - 1) // 2
    places[first + hole] = value
