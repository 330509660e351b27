"""Gradients of every entry of PyTorch's database: their layouts, types and nodes.

`python -m tests.outside.grads --part 0/4`: each sample is called with its tensors in several layouts, in turn, and
differentiated in several ways; what comes back is compared as programs see it.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tests.oracle import ORACLE, SUBJECT, Side
from tests.outside import compare, forms, signatures
from tests.outside import statements as st
from tests.outside.running import limited


def turned(x: Any) -> Any:
    """The elements in the opposite order of memory."""
    order = tuple(range(x.dim()))[::-1]
    return x.permute(order).contiguous().permute(order)


def middle(x: Any) -> Any:
    """The elements with the second dimension innermost, as images with channels last are."""
    if x.dim() < 3:
        return x
    order = (0, *range(2, x.dim()), 1)
    back = tuple(order.index(i) for i in range(x.dim()))
    return x.permute(order).contiguous().permute(back)


def gaps(x: Any) -> Any:
    """Every other element of a wider tensor."""
    return x.repeat_interleave(2, -1)[..., ::2] if x.dim() else x


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x, "turned": turned, "middle": middle, "gaps": gaps,
}  # fmt: skip
WAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "ones": lambda m, r, xs: m.autograd.grad(r, xs, m.ones_like(r), allow_unused=True),
    "sum": lambda m, r, xs: m.autograd.grad(r.abs().sum(), xs, allow_unused=True),
    "graph": lambda m, r, xs: m.autograd.grad(
        r.abs().sum(), xs, allow_unused=True, create_graph=True
    ),
}


def tensors(m: Any, x: Any) -> list[Any]:
    if isinstance(x, m.Tensor):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for v in x for t in tensors(m, v)]
    return []


def laid(m: Any, x: Any, layouts: dict[int, str], made: list[Any]) -> Any:
    """An argument whose tensors are leaves of the layouts that their numbers have."""
    if isinstance(x, m.Tensor):
        if not (x.is_floating_point() or x.is_complex()):
            return x
        leaf = LAYOUTS[layouts.get(len(made), "rows")](x.detach()).detach().requires_grad_()
        made.append(leaf)
        return leaf
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        return type(x)(laid(m, v, layouts, made) for v in x)
    return x


def told(side: Side, sample: Any, name: str, layouts: dict[int, str], way: str) -> Any:
    memo: dict[int, Any] = {}
    m, made = side.root, list[Any]()
    args = [laid(m, a, layouts, made) for a in side.carry([sample.input, *sample.args], memo)]
    kwargs = {k: laid(m, v, layouts, made) for k, v in side.carry(sample.kwargs, memo).items()}
    result = forms.found(m, name)(*args, **kwargs)
    results = [r for r in tensors(m, result) if r.requires_grad]
    if not results or not made:
        return None
    out: list[Any] = [facts(side, r) for r in results]
    out += [None if g is None else facts(side, g) for g in WAYS[way](m, results[0], made)]
    return out


def facts(side: Side, g: Any) -> Any:
    steps = [s for s, n in zip(g.stride(), g.shape) if n > 1] if g.numel() else []
    node = type(g.grad_fn).__name__ if g.grad_fn is not None else None
    return (str(g.dtype).rpartition(".")[2], tuple(g.shape), steps, g.requires_grad), node


def differ(a: Any, b: Any) -> str:
    """What differs; "" where nothing does."""
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return "" if a == b else "refusal"
    for x, y in zip(a, b):
        if (x is None) != (y is None):
            return "none"
        if x is None:
            continue
        if x[0] != y[0]:
            return "dtype" if x[0][0] != y[0][0] else "strides" if x[0][2] != y[0][2] else "other"
        if not compare.same_node(x[1], y[1]):
            return "node"
    return ""


def attempt(side: Side, *args: Any) -> Any:
    try:
        with limited(10):
            return told(side, *args)
    except Exception as e:
        return type(e).__name__


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--only", default="")
    parser.add_argument("--nodes", action="store_true", help="print names of nodes, too")
    parser.add_argument("--samples", type=int, default=8)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    part, _, parts = options.part.partition("/")
    count, wrong = 0, defaultdict[tuple[str, str], list[Any]](list)
    for i, info in enumerate(signatures.database()):
        if i % int(parts) != int(part) or (options.only and options.only != info.name):
            continue
        try:
            some = [s for s in st.samples(i) if s.input is not None]
        except Exception:
            continue
        name = signatures.where(info)
        chosen = [s for s in some if any(t.dim() > 1 for t in st.inside(s))][: options.samples]
        for s in chosen or some[:2]:
            n = len([t for t in st.inside(s) if t.is_floating_point() or t.is_complex()])
            for ways in itertools.product(LAYOUTS, repeat=min(n, 2)):
                for way in WAYS:
                    layouts = dict(enumerate(ways))
                    a = attempt(ORACLE, s, name, layouts, way)
                    if a is None or isinstance(a, str):
                        continue
                    b = attempt(SUBJECT, s, name, layouts, way)
                    count += 1
                    what = differ(a, b)
                    if what and (what != "node" or options.nodes):
                        wrong[info.name, what].append((ways, way, s.args, s.kwargs, a, b))
    for (name, what), members in sorted(wrong.items(), key=lambda kv: kv[0][::-1]):
        print(f"{what}: {name} {len(members)}: {members[0][:2]} {str(members[0][2:])[:600]}")
    print(f"{count} calls, {sum(map(len, wrong.values()))} differ, {len(wrong)} kinds")


if __name__ == "__main__":
    main()
