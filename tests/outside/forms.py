"""Every way to write a call: each argument by position, and each by PyTorch's name for it.

Arguments are those of PyTorch's database of operators; names are those of its schemas and, for
functions written in Python, of their signatures. `python -m tests.outside.forms` prints what PyTorch
takes and toytorch refuses.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.oracle import ORACLE, SUBJECT, Side, torch, tt
from tests.outside import signatures
from tests.outside.running import limited

NAMESPACES = ("", "nn.functional", "linalg", "fft", "special")
# NumPy's words, which PyTorch's parser takes wherever it takes its own.
WORDS = {"dim": "axis", "keepdim": "keepdims", "input": "x", "other": "x2"}


class Form(NamedTuple):
    path: str  # "torch.sum", ".sum" (a method)
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        some = ["…"] * len(self.args) + [f"{k}=" for k in self.kwargs]
        return f"{self.path}({', '.join(some)})"


def found(root: Any, path: str) -> Any:
    """What a path names on a side; None where there is nothing."""
    value = root.Tensor if path[0] == "." else root
    for part in path.removeprefix("torch").strip(".").split("."):
        value = getattr(value, part, None)
    return value


@functools.cache
def parameters(path: str) -> list[tuple[str, ...]]:
    """The names of the arguments, for each signature that PyTorch has under a path."""
    name = path.rpartition(".")[2]
    target = found(torch, path)
    lists = []
    try:
        given = inspect.signature(target).parameters.values()
        if all(p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.KEYWORD_ONLY for p in given):
            lists.append(tuple(p.name for p in given))
    except (TypeError, ValueError):
        pass  # a function in C has none
    home = path.split(".")[-2] if path.count(".") > 1 else ""
    schema = f"{home}_{name}" if home in signatures.HOMES else name
    first = "self" if path[0] == "." else "input"
    for s in signatures.by_name().get(schema, ()):
        words = tuple(a.name for a in s.arguments)
        lists.append(tuple(first if w == "self" else w for w in words))
    return list(dict.fromkeys(lists))


def paths(info: Any) -> list[str]:
    """How programs reach an entry of the database."""
    name = info.name.rpartition(".")[2]
    likely = [signatures.where(info), f".{name}", f".{name}_", f"torch.{name}_"]
    likely += [f"torch.nn.functional.{name}", f"torch.special.{name}"]
    return [p for p in dict.fromkeys(likely) if p and callable(found(torch, p))]


def forms(info: Any, most: int = 3) -> Iterator[Form]:
    """The calls of an entry's first samples, each written in every way."""
    dtype = next(
        (d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if d in info.dtypes),
        None,
    )
    if dtype is None:
        return
    torch.manual_seed(0)
    for s in itertools.islice(info.sample_inputs("cpu", dtype), most):
        given = (s.input, *s.args)
        for path in paths(info):
            for names in parameters(path) or [()]:
                if len(names) < len(given) or set(s.kwargs) - set(names):
                    continue
                for k in range(len(given), -1, -1):
                    if path[0] == "." and not k:
                        continue  # a method is called on something
                    more = dict(zip(names[k:], given[k:]))
                    if set(more) & set(s.kwargs):
                        continue
                    yield Form(path, given[:k], {**more, **s.kwargs})
                    other = {WORDS.get(n, n): v for n, v in {**more, **s.kwargs}.items()}
                    if other.keys() != {**more, **s.kwargs}.keys():
                        yield Form(path, given[:k], other)


def tried(side: Side, form: Form) -> Exception | None:
    """What a call raised on a side, on copies of its arguments."""
    memo: dict[int, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            target: Callable[..., Any] = found(side.root, form.path)
            args = side.carry(list(form.args), memo)
            with limited():
                target(*args, **side.carry(form.kwargs, memo))
        except Exception as e:
            return e
    return None


# What PyTorch takes and we do not, on purpose.
LEFT = {
    ".to": "a harness carries no memory formats",
    "torch.nn.functional.triplet_margin_with_distance_loss": "its sample hands over PyTorch's module",
    "torch.linalg.eigvalsh": "the name of PyTorch's schema, where it takes the one of its help text",
    "nn.Container": "deprecated since 0.2 and taken out of every program",
    "nn.NLLLoss2d": "the older name, whose signature PyTorch hides",
    **{
        f"nn.LazyConv{kind}{n}d": "takes the same, some of them as *rest and **options"
        for kind in ("", "Transpose")
        for n in (1, 2, 3)
    },
    "optim.AdamW": "foreach, maximize and capturable come in another order, by keyword only",
}


def refused(
    entries: list[Any] | None = None,
) -> tuple[int, dict[str, list[tuple[Form, Exception]]]]:
    """How many forms PyTorch takes, and those that toytorch refuses, by function."""
    count, wrong, seen = 0, defaultdict(list), set[str]()
    for info in signatures.database() if entries is None else entries:
        try:
            some = list(forms(info))
        except Exception:
            continue  # samples that need what this build of PyTorch lacks
        for form in some:
            key = f"{form}{[type(a).__name__ for a in form.args]}"
            if key in seen or tried(ORACLE, form) is not None:
                continue
            seen.add(key)
            count += 1
            if form.path not in LEFT:
                error = tried(SUBJECT, form)
                if error is not None:
                    wrong[form.path].append((form, error))
    return count, dict(wrong)


# -- classes --------------------------------------------------------------------------------------


def classes() -> list[tuple[str, Any, Any]]:
    """Modules and optimizers: their names, and both classes."""
    out = []
    for home, base in (("nn", torch.nn.Module), ("optim", torch.optim.Optimizer)):
        for name in sorted(vars(getattr(torch, home))):
            theirs = getattr(getattr(torch, home), name)
            if inspect.isclass(theirs) and issubclass(theirs, base):
                out.append((f"{home}.{name}", theirs, getattr(getattr(tt, home), name, None)))
    return out


def arguments_of(cls: Any) -> list[str]:
    """The parameters of a class as its users give them, with their defaults."""
    given = inspect.signature(cls).parameters.values()
    return [f"{p.name}={p.default!r}" if p.default is not p.empty else p.name for p in given]


def main() -> None:
    count, wrong = refused()
    for _, members in sorted(wrong.items(), key=lambda kv: -len(kv[1])):
        form, error = members[0]
        print(f"{len(members):4d}  {form}: {type(error).__name__}: {str(error)[:110]}")
    print(f"{count} forms, {sum(map(len, wrong.values()))} refused, of {len(wrong)} functions")
    for name, theirs, ours in classes():
        if ours is None:
            print(f"no {name}")
            continue
        a, b = ([x.replace("toytorch.", "torch.") for x in arguments_of(c)] for c in (theirs, ours))
        if [x.partition("=")[0] for x in a] != [x.partition("=")[0] for x in b][: len(a)]:
            print(f"{name}: {a} {b}")


if __name__ == "__main__":
    main()
