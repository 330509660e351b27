"""Every callable by itself: `python -m tests.outside.each --part 0/8 --times 20`.

The programs of `program.py` draw a name now and then; here every name of PyTorch's schemas, every entry of
its database of operators and every other kind of statement is drawn equally often: on a few leaves,
by itself or in a compiled function, with a question or a write or a derivative after it. So a rule
that one function in a hundred breaks is found in minutes, and not after ten thousand programs.
"""

from __future__ import annotations

import argparse
import functools
import time
import traceback
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterator
from random import Random

from tests.oracle import torch
from tests.outside import compare, signatures
from tests.outside import statements as st
from tests.outside.arguments import tensors
from tests.outside.program import Writer
from tests.outside.running import Program
from tests.outside.search import Found, explained, first_difference, shorter

AFTER = (
    "$ = torch.autograd.grad(@.abs().sum(), [#], allow_unused=True)",
    "$ = torch.autograd.grad(@.abs().sum(), [#], allow_unused=True, create_graph=True)",
    "$ = torch.autograd.grad(@, [#], torch.ones_like(@), allow_unused=True)",
    "@.backward(torch.ones_like(@))", "@.detach_()", "$ = @._is_view(), @._version", "@.mul_(2)",
    "@[0] = 1", "$ = @.view(-1)", "$ = @.data", "@ += @", "$ = @.untyped_storage().nbytes()",
    "$ = @.detach()", "$ = @.is_leaf, @.requires_grad, @.output_nr", "$ = @[-1]", "$ = @ + @",
    "with torch.no_grad():\n    @.add_(1)", "$ = @.requires_grad_()", "$ = @.t()", "$ = copy.deepcopy(@)",
    "$ = @.contiguous()", "$ = @.reshape(-1)", "$ = torch.empty_like(@).copy_(@)", "# *= 2", "#.zero_()",
    "$ = @.untyped_storage().data_ptr() == #.untyped_storage().data_ptr()", "$ = @ * #", "@.squeeze_()",
    "$ = @.float()", "$ = @.sum(0)", "#.detach_()",
)  # fmt: skip


def kinds() -> Iterator[tuple[str, st.Drawer]]:
    """Names of what can be drawn, each with a drawer of its statements."""
    for name in signatures.by_name():
        yield name, functools.partial(st.call, name=name)
    for i, info in enumerate(signatures.database()):
        yield f"sample of {info.name}", functools.partial(st.sampled, entry=i)
    for one in (st.operator, st.indexed, st.view, st.copied, st.asked, st.network, st.loss):
        for k in range(30):
            yield f"{one.__name__} {k}", one


def drawn(seed: int, drawer: st.Drawer, pure: bool) -> Program:
    """Leaves, the statement (in a function at times, if those may hold it), and something after it."""
    rng = Random(seed)
    torch.manual_seed(0)
    writer = Writer(rng)
    for _ in range(30):
        if len(tensors(writer.scope)) >= rng.choice((1, 2, 3)):
            break
        writer.bind(st.leaf(rng, writer.scope))
    if rng.random() < 0.3:
        writer.expression(((st.view, 1), (st.operator, 1), (st.indexed, 1)))
    if rng.random() < 0.15 and pure:
        writer.function(((drawer, 1),))
        return Program(seed, tuple(writer.lines))
    before = set(writer.own)
    writer.kept = 0.1
    for _ in range(6):
        if writer.bind(drawer(rng, writer.scope)):
            break
    writer.kept = 0.5
    for _ in range(2):
        made = [n for n in tensors(writer.scope) if n not in before]
        first = [n for n in tensors(writer.scope) if writer.space[n].requires_grad] or tensors(
            writer.scope
        )
        if not made:
            break
        text = rng.choice(AFTER[:4] * 3 + AFTER).replace("@", rng.choice(made))
        name = writer.name()
        writer.attempt(text.replace("#", rng.choice(first)).replace("$", name))
        writer.own += [name] * (name in writer.space)
    for name in [n for n in tensors(writer.scope) if n not in before][:3]:
        writer.attempt(f"{writer.name()} = {name}._is_view(), {name}._version")
    return Program(seed, tuple(writer.lines))


def looked(label: str, k: int, drawer: st.Drawer) -> Found | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed = zlib.crc32(f"{label} {k}".encode())
        try:
            pure = not label.startswith(("copied", "asked", "network"))
            program = drawn(seed, drawer, pure)
        except RuntimeError:
            return None  # what may not even be asked of some views
    found = first_difference(program)
    return None if found is None or explained(found) else found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="0/1", help="I/N: every Nth name, from the Ith on")
    parser.add_argument("--times", default="0:20", help="FIRST:END programs of each name")
    parser.add_argument("--only", help="a part of the names to draw")
    parser.add_argument("--shrink", action="store_true", help="shorten what is printed")
    parser.add_argument("--messages", action="store_true", help="compare the words of errors, too")
    parser.add_argument("--warnings", action="store_true", help="compare classes of warnings, too")
    options = parser.parse_args()
    compare.MESSAGES_COMPARED, compare.WARNINGS_COMPARED = options.messages, options.warnings
    part, _, parts = options.part.partition("/")
    first, _, end = options.times.partition(":")
    warnings.simplefilter("ignore")
    began, count, wrong = time.perf_counter(), 0, defaultdict[str, int](int)
    listed = [p for p in kinds() if not options.only or options.only in p[0]]
    for label, drawer in listed[int(part) :: int(parts)]:
        for k in range(int(first), int(end)):
            count += 1
            try:
                found = looked(label, k, drawer)
            except Exception:
                print(f"### {label} {k}\n{traceback.format_exc()}", flush=True)
                continue
            if found is None:
                continue
            wrong[found.difference.kind] += 1
            found = shorter(found) if options.shrink else found
            show(label, k, found)
    print(f"{count} programs, {sum(wrong.values())} with a difference; {dict(wrong)}")
    print(f"{time.perf_counter() - began:.0f} s")


def show(label: str, k: int, found: Found) -> None:
    d = found.difference
    print(f"=== {label} {k}: {d.kind}")
    print(
        "\n".join("    " + s for t in found.program.lines[: found.line + 1] for s in t.split("\n"))
    )
    print(f"  {d.path}: PyTorch {d.expected[:300]}")
    print(f"  {' ' * len(d.path)}  ours    {d.got[:300]}", flush=True)


if __name__ == "__main__":
    main()
