"""Runs random programs on both sides: what must agree, and the least program that does not.

`python -m tests.autograd.program_check FIRST COUNT` groups the disagreements of many.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.autograd.program_draw import draw
from tests.autograd.programs import LACKING, Line, Run, execute
from tests.oracle import ORACLE, SUBJECT, Side, attempt, differences, steps, told, torch

WRITTEN = "modified by an inplace operation"
FRAGILE = re.compile(  # jumps where values differ by a rounding error
    r"[<>]|==|!=|//|%|floor|ceil|round|trunc|frac|sign|sgn|arg|max|min|sort|topk|mod|rem|median"
    r"|quantile|kthvalue|mode|unique|bucket|search|heavi|hist|long|bool|int|uint8|copysign|shrink"
    r"|relu|clamp|abs|angle|isclose|threshold|nonzero|hard|atan2|svd|eig|qr"
)


@dataclass
class Disagreement:
    """How the sides differ (`what`), where (a line's number), and in which words."""

    what: str
    where: int
    text: str

    def kind(self, lines: list[Line]) -> tuple[str, str]:
        return self.what, lines[self.where].step if self.where >= 0 else ""


def disagreement(lines: list[Line]) -> Disagreement | None:
    """The first way in which toytorch does not do as PyTorch does."""
    runs = execute(lines, ORACLE), execute(lines, SUBJECT)
    found = compare(lines, *runs)
    if found and found.what in ("value", "grad", "fate", "facts") and fragile(lines):
        runs = Run(ORACLE), Run(SUBJECT)
        for i, line in enumerate(lines):
            for run in runs:
                run.step(line)
            if runs[0].fates != runs[1].fates:
                break
            bad = synchronise(*runs)
            if bad:
                return Disagreement("value", i, f"after {line.text}: {bad}")
        return compare(lines, *runs)
    return found


def fragile(lines: list[Line]) -> bool:
    return any(FRAGILE.search(line.text) for line in lines)


def synchronise(want: Run, got: Run) -> str:
    """Gives the subject PyTorch's bits where they differ by rounding alone."""
    for name, w in want.tensors().items():
        g = got.tensors().get(name)
        if g is None or tuple(w.shape) != tuple(g.shape) or differences(w, g, slack=5):
            return f"{name}: {'; '.join(differences(w, g, slack=5))}"
        a, b = ORACLE.numpy(w), SUBJECT.numpy(g)
        if a.dtype == b.dtype and a.tobytes() != b.tobytes() and b.flags.writeable:
            b[...] = a
    return ""


def compare(lines: list[Line], want: Run, got: Run) -> Disagreement | None:
    for i, (a, b) in enumerate(zip(want.fates, got.fates, strict=True)):
        if a != b:
            return Disagreement(
                "fate", i, f"{told(got.errors[i])}, in PyTorch: {told(want.errors[i])}"
            )
    theirs, ours = want.tensors(), got.tensors()
    makers = {name: i for i, line in enumerate(lines) for name in line.makes}
    if list(theirs) != list(ours):
        return Disagreement("names", -1, f"{list(ours)}, in PyTorch: {list(theirs)}")
    for name in theirs:
        bad = differences(theirs[name], ours[name], slack=5)
        if bad:
            return Disagreement("value", makers[name], f"{name}: {'; '.join(bad)}")
    a, b = facts(want), facts(got)
    for name in theirs:
        for fact in a[name]:
            if fact == "base" and "unnamed" in (a[name][fact], b[name][fact]):
                continue  # a result that is itself a view of what an op made on the way
            if a[name][fact] != b[name][fact]:
                return Disagreement(
                    f"fact {fact}", makers[name],
                    f"{name}: {fact} is {b[name][fact]}, in PyTorch {a[name][fact]}",
                )  # fmt: skip
    return compare_gradients(lines, theirs, ours)


def facts(run: Run) -> dict[str, dict[str, Any]]:
    """What can be asked of each tensor besides its values."""
    pool = run.tensors()
    owners: dict[int, str] = {}
    known = {id(v): k for k, v in reversed(pool.items())}
    shares = Counter(x.untyped_storage().data_ptr() for x in pool.values())
    out = {}
    for name, x in pool.items():
        base = x._base
        store = x.untyped_storage()
        memory = owners.setdefault(store.data_ptr(), name) if store.nbytes() else "nothing"
        shown = shares[store.data_ptr()] > 1 and bool(x.numel())
        out[name] = {
            "needs grad": x.requires_grad,
            "leaf": _asked(lambda x=x: x.is_leaf),
            "writes": x._version - run.born[name],  # PyTorch writes some fresh results, too
            "base": known.get(id(base), "unnamed") if shown and base is not None else None,
            "memory": memory if x.numel() else "nothing",
            "offset": x.storage_offset() if shown else 0,
            "strides": steps(x) if x.numel() else (),
        }
    return out


def _asked(f: Any) -> Any:
    value, refused = attempt(f)
    return type(refused).__name__ if refused else value


def compare_gradients(
    lines: list[Line], theirs: dict[str, Any], ours: dict[str, Any]
) -> Disagreement | None:
    """First and, of every third program, second gradients of all results at once.

    Where PyTorch refuses that (a saved value was written to), each result has its turn.
    """
    leaf = {k: attempt(lambda v=v: v.is_leaf)[0] for k, v in theirs.items()}
    inputs = [k for k, v in theirs.items() if v.requires_grad and leaf[k]]
    results = [k for k, v in theirs.items() if v.requires_grad and leaf[k] is False]
    twice = len(lines) % 3 == 0
    found = one_gradient(lines, theirs, ours, results, inputs, twice)
    if found is None or found.what != "refused":
        return found
    for name in results:
        found = one_gradient(lines, theirs, ours, [name], inputs, False)
        if found is not None and found.what != "refused":
            return found
    return None


def one_gradient(
    lines: list[Line], theirs: dict[str, Any], ours: dict[str, Any], results: list[str],
    inputs: list[str],
    twice: bool,
) -> Disagreement | None:  # fmt: skip
    (w, refused), (g, failure) = (
        attempt(gradients, side, [pool[k] for k in results], [pool[k] for k in inputs], twice)
        for side, pool in ((ORACLE, theirs), (SUBJECT, ours))
    )
    if type(refused) is not type(failure):
        if any(words in str(refused) for words in LACKING):
            return None
        if all("is not implemented" in str(e) for e in (refused, failure)):
            return None  # either of two
        if failure is None and WRITTEN in str(refused) and unharmed(lines, results, inputs, g):
            return None
        return Disagreement("grad error", -1, f"{told(failure)}, in PyTorch: {told(refused)}")
    if refused is not None:
        return Disagreement("refused", -1, told(refused))
    single = any(x.dtype in (torch.float32, torch.complex64) for x in theirs.values())
    slack = 1e4 if single else 20.0  # gradients that went through single precision
    for name, x, y in zip(inputs * 2, w, g, strict=True):
        if x is not None and not torch.isfinite(x).all():
            continue  # at a pole
        double = x is not None and x.dtype in (torch.float64, torch.complex128)
        bad = differences(x, y, slack=slack if double else 20)
        if bad:
            return Disagreement("grad", -1, f"of {results} to {name}: {'; '.join(bad)}")
    return None


def unharmed(lines: list[Line], results: list[str], inputs: list[str], got: Any) -> bool:
    """Whether writes changed nothing that toytorch saved, though PyTorch saved more.

    The gradients are those of a run in which every saved tensor is a copy.
    """
    with SUBJECT.root.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        pool = execute(lines, SUBJECT).names
        want = gradients(SUBJECT, [pool[k] for k in results], [pool[k] for k in inputs], False)
    n = len(inputs)  # of second gradients, saved copies would hide where they come from
    return all(
        x is y or (x is not None and y is not None and np.allclose(
            SUBJECT.numpy(x), SUBJECT.numpy(y), 1e-6, 1e-8, equal_nan=True))
        for x, y in zip(want[:n], got[:n], strict=True)
    )  # fmt: skip


def gradients(side: Side, results: list[Any], inputs: list[Any], twice: bool) -> list[Any]:
    """Gradients of results with respect to the inputs, and of those gradients where asked."""
    if not results or not inputs:
        return [None] * (2 * len(inputs))
    cotangents = [side.cotangent(r, 0.1 * i) for i, r in enumerate(results)]
    grad = side.root.autograd.grad
    first = grad(
        results, inputs, cotangents, allow_unused=True, create_graph=twice, retain_graph=True
    )
    out = [None if g is None else g.detach() for g in first]
    again = [(g, side.cotangent(g, 0.7)) for g in first if g is not None and g.requires_grad]
    if twice and again:
        out += grad([g for g, _ in again], inputs, [c for _, c in again], allow_unused=True)
    return out + [None] * (2 * len(inputs) - len(out))  # None agrees with zeros


# -- telling ------------------------------------------------------------------------------


def shrink(lines: list[Line]) -> list[Line]:
    """The fewest lines that still disagree in the same way."""
    found = disagreement(lines)
    assert found is not None
    what, again = found.what, True
    while again:
        again = False
        for i in reversed(range(len(lines))):
            fewer = lines[:i] + lines[i + 1 :]
            if "NameError" in execute(fewer, ORACLE).fates:
                continue
            left = disagreement(fewer)
            if left is not None and left.what == what:
                lines, again = fewer, True
                break
    return lines


def script(lines: list[Line]) -> str:
    """The program as a Python script; each line that PyTorch refuses is in a `try`."""
    fates = execute(lines, ORACLE).fates
    body = [
        f"try:\n    {line.text}\nexcept Exception as e:\n    print(repr(e))  # {fate} in PyTorch"
        if fate else line.text
        for line, fate in zip(lines, fates, strict=True)
    ]  # fmt: skip
    return "\n".join(["import toytorch as torch  # or torch", "F = torch.nn.functional", *body])


def check(seed: int) -> None:
    """Assert that the program of a seed agrees, or show the least that does not."""
    lines = draw(seed)
    if disagreement(lines):
        least = shrink(lines)
        found = disagreement(least)
        assert found is None, f"seed {seed}: {found.what}: {found.text}\n\n{script(least)}\n"


def main(first: int, count: int, shown: int = 3) -> None:
    """Group the disagreements of many programs: see the top."""
    groups: dict[Any, list[tuple[int, list[Line]]]] = {}
    tally: Counter[str] = Counter()
    for seed in range(first, first + count):
        lines = draw(seed)
        tally["programs"] += 1
        tally["lines"] += len(lines)
        found = disagreement(lines)
        if found:
            tally["disagree"] += 1
            groups.setdefault(found.kind(lines), []).append((seed, lines))
    print(dict(tally))
    seen = set()
    for kind, programs in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"\n== {len(programs)} {kind}")
        for seed, lines in sorted(programs, key=lambda p: len(p[1]))[:shown]:
            least = shrink(lines)
            found = disagreement(least)
            signature = tuple(line.step for line in least)
            if found and signature not in seen:
                seen.add(signature)
                print(f"-- seed {seed}: {found.what}: {found.text[:300]}")
                print("\n".join("   " + line.text for line in least))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
