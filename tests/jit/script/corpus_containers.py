"""Programs about lists, tuples, dictionaries and objects."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

import toytorch as torch
from tests.jit.script.case import T, V, X, calls


@calls((3,))
def list_literals(n: int):
    return [n, n + 1], [1.5], ["a", "b"], [[n], [2, 3]], [True]


@calls(([3, 1, 2],))
def list_methods(xs: List[int]):
    xs = xs.copy()
    xs.append(5)
    xs.insert(0, 9)
    xs.extend([7, 7])
    last = xs.pop()
    first = xs.pop(0)
    xs.remove(1)
    xs.reverse()
    return xs, last, first, xs.index(5), xs.count(7), len(xs)


@calls(([3, 1], [2, 5]))
def lists_of_tuples(xs: List[int], ys: List[int]):
    zs = [(x + 5, y - 2) for x, y in zip(xs, ys)]
    zs.append((0, len(zs)))
    return zs, (4, 1) in zs


@calls(([3, 1, 2],))
def list_sorting(xs: List[int]):
    ys = sorted(xs)
    zs = sorted(xs, reverse=True)
    ws = xs.copy()
    ws.sort()
    return ys, zs, ws


@calls(([3, 1, 2, 5],))
def list_indexing(xs: List[int]):
    return xs[0], xs[-1], xs[1:3], xs[::2], xs[:-1], xs[2:]


@calls(([3, 1, 2],))
def list_writes(xs: List[int]):
    ys = xs + [4]
    ys[0] = 10
    ys[-1] += 5
    del ys[1]
    return ys


@calls(([3, 1, 2],), ([4],))
def list_reductions(xs: List[int]):
    return sum(xs), min(xs), max(xs), len(xs)


@calls(([1.5, 2.5],))
def float_lists(xs: List[float]):
    return sum(xs), min(xs), max(xs) / 2


@calls(([True, False],), ([True],))
def bool_lists(xs: List[bool]):
    return any(xs), all(xs)


@calls(([3, 1, 2],))
def list_comprehension(xs: List[int]):
    return [x * 2 for x in xs], [x for x in xs if x > 1], [i for i in range(3)]


@calls(([3, 1, 2],))
def nested_comprehension(xs: List[int]):
    return [x + y for x in xs for y in range(2)], [[x, y] for x in xs for y in [1] if x != y]


@calls((4,))
def comprehension_scope(n: int):
    x = 100
    ys = [x * 2 for x in range(n)]
    return x, ys


@calls(([1, 2], [3, 4]))
def zipping(a: List[int], b: List[int]):
    s = 0
    for x, y in zip(a, b):
        s += x * y
    return s


@calls((["a", "b"],))
def enumerating(xs: List[str]):
    out: List[str] = []
    for i, x in enumerate(xs):
        out.append(f"{i}{x}")
    for j, x in enumerate(xs, 5):
        out.append(f"{j}{x}")
    return out


@calls(([1, 2, 3], ["a", "b"]))
def zip_of_three(a: List[int], b: List[str]):
    out: List[str] = []
    for i, (x, y) in enumerate(zip(a, b)):
        out.append(f"{i}{x}{y}")
    return out


@calls(([1, 2, 3],))
def membership(xs: List[int]):
    return 2 in xs, 9 in xs, 9 not in xs, 2 in (1, 2)


@calls(([1, 2], [1, 2]), ([1], [2]))
def list_equality(a: List[int], b: List[int]):
    return a == b, a != b


@calls(([1, 2],))
def list_arithmetic(a: List[int]):
    return a + [3], a * 2, 2 * a


@calls(([1, 2],))
def list_augmented(a: List[int]):
    b = a.copy()
    b += [5]
    return b


@calls(([1, 2, 3],))
def list_reversed(a: List[int]):
    out: List[int] = []
    for x in reversed(a):
        out.append(x)
    return out


@calls(([[1, 2], [3]],))
def nested_lists(xs: List[List[int]]):
    out: List[int] = []
    for row in xs:
        for x in row:
            out.append(x)
    return out, xs[0][1], len(xs[1])


@calls(([3, 4],))
def list_unpacking(xs: List[int]):
    a, b = xs
    return a * 10 + b


@calls((4,))
def range_list(n: int):
    return list(range(n)), list(range(1, n))


@calls(([1, None, 3],))
def optional_elements(xs: List[Optional[int]]):
    s = 0
    for x in xs:
        if x is not None:
            s += x
    return s


@calls((3, "a"))
def tuples(n: int, s: str):
    t = (n, s, 2.5)
    return t[0], t[-1], t[1:], len(t)


@calls(((1, "a"),))
def tuple_argument(t: Tuple[int, str]):
    n, s = t
    return s * n, t[0]


@calls(((1, (2, "x")),))
def nested_tuples(t: Tuple[int, Tuple[int, str]]):
    a, (b, c) = t
    return a + b, c


@calls((1,))
def starred(n: int):
    a, *b, c = (n, 2, 3, 4)
    return a, b, c


@calls((1, 2))
def tuple_addition(a: int, b: int):
    t = (a,) + (b, 3)
    return t


@calls((1,), (5,))
def tuple_in_branches(n: int):
    if n > 2:
        t = (n, "big")
    else:
        t = (-n, "small")
    a, b = t
    return b, a


@calls((3,))
def tuple_carried(n: int):
    t = (0, 1)
    for _ in range(n):
        a, b = t
        t = (b, a + b)
    return t[0]


@calls(((1, 2), (1, 2)), ((1, 2), (2, 1)))
def tuple_equality(a: Tuple[int, int], b: Tuple[int, int]):
    return a == b


@calls(({"a": 1, "b": 2},))
def dict_methods(d: Dict[str, int]):
    e = d.copy()
    e["c"] = 3
    e["a"] += 10
    x = e.pop("b")
    return e, x, len(e), "a" in e, "z" in e, e.get("z"), e.get("z", 5), e.setdefault("q", 8)


@calls(({"a": 1, "b": 2},))
def dict_views(d: Dict[str, int]):
    return list(d.keys()), list(d.values()), sum(d.values()), list(d.items())


@calls(({"a": 1, "b": 2},))
def dict_loops(d: Dict[str, int]):
    s = ""
    n = 0
    for k in d:
        s += k
    for k, v in d.items():
        s += k
        n += v
    for v in d.values():
        n += v
    return s, n


@calls((3,))
def dict_literals(n: int):
    d = {"a": n, "b": 2}
    e: Dict[int, str] = {}
    e[n] = "x"
    return d["a"] + d["b"], e[n]


@calls((4,))
def dict_comprehension(n: int):
    return {i: i * i for i in range(n)}


@calls((["a", "b", "a"],))
def counting(words: List[str]):
    found: Dict[str, int] = {}
    for w in words:
        if w in found:
            found[w] += 1
        else:
            found[w] = 1
    return found


@calls(({1: [1, 2]},))
def dict_of_lists(d: Dict[int, List[int]]):
    d = d.copy()
    d[1].append(3)
    d[2] = [7]
    d.update({3: [8]})
    del d[1]
    return d


@calls(({1: 2},))
def dict_clear(d: Dict[int, int]):
    e = d.copy()
    e.clear()
    return len(e), len(d)


@calls((X,))
def tensor_dict(x):
    d = {"a": x, "b": x * 2}
    d["c"] = d["a"] + d["b"]
    return d["c"]


@calls((X,))
def tensor_list(x):
    parts = [x, x * 2]
    parts.append(x + 1)
    return torch.cat(parts), torch.stack(parts).sum(0), len(parts)


@calls((X,))
def default_lists(x):
    xs = []
    for i in range(2):
        xs.append(x * i)
    return xs


@calls(([1, 2, 3],))
def annotate_call(xs: List[int]):
    ys = torch.jit.annotate(List[int], [])
    for x in xs:
        ys.append(x * 2)
    return ys


class Pair(NamedTuple):
    left: int
    right: str


@calls((3,))
def named_tuple(n: int):
    p = Pair(n, "b")
    q = Pair(left=n + 1, right="c")
    return p.left + q.left, p.right + q[1]


@calls((Pair(1, "z"),))
def named_argument(p: Pair):
    left, right = p
    return left, p.right


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.n = start
        self.seen = [start]

    def add(self, k: int) -> int:
        self.n += k
        self.seen.append(k)
        return self.n

    def twice(self):
        return self.add(1) + self.add(1)


@calls((3,))
def scripted_class(n: int):
    c = Counter(n)
    a = c.add(2)
    b = c.twice()
    return a, b, c.n, c.seen


@calls(([3, 4],))
def list_of_objects(xs: List[int]):
    total = 0
    for x in xs:
        c = Counter(x)
        total += c.add(1)
    return total


@calls(([1, 2, 3, 4],))
def sum_generator(xs: List[int]):
    return sum([x * x for x in xs]), any([x > 3 for x in xs]), all([x > 0 for x in xs])


@calls((["b", "a"],))
def strings_sorted(xs: List[str]):
    return sorted(xs), "".join(xs)


@calls(([1, 2, 3],))
def aliasing(xs: List[int]):
    ys = [0]
    zs = ys
    zs.append(len(xs))
    return ys, zs


@calls((2, 3))
def matrix_of_lists(n: int, m: int):
    rows: List[List[int]] = []
    for i in range(n):
        row: List[int] = []
        for j in range(m):
            row.append(i * j)
        rows.append(row)
    return rows


@calls(([5, 3, 8],))
def bubble_sort(xs: List[int]):
    ys = xs.copy()
    for i in range(len(ys)):
        for j in range(len(ys) - 1 - i):
            if ys[j] > ys[j + 1]:
                ys[j], ys[j + 1] = ys[j + 1], ys[j]
    return ys


@calls(([1, 3, 5, 7, 9], 7), ([1, 3], 2))
def binary_search(xs: List[int], wanted: int):
    low, high = 0, len(xs) - 1
    while low <= high:
        middle = (low + high) // 2
        if xs[middle] == wanted:
            return middle
        if xs[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1
