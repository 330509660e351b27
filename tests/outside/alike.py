"""What both packages say of the same program, and ways to say that it is the same.

They differ in how closely they look. `same` takes plain values, `same_or_refused` classes of errors,
too, `same_words` their words; `alike` takes results and compares elements to four digits and strides,
`alike_in_memory` all digits, `alike_rounded` nodes and words.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.oracle import attempt, told, torch, tt

BOTH = (torch, tt)


def steps(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape), tuple(x.stride()), x.storage_offset()


def same(what: Callable[[Any], Any]) -> None:
    """That both sides say the same of what a function makes of the package."""
    theirs, ours = (what(m) for m in BOTH)
    assert ours == theirs


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda m: m.arange(24.0).reshape(2, 3, 4),
    "reversed": lambda m: m.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0),
    "first two": lambda m: m.arange(24.0).reshape(3, 2, 4).permute(1, 0, 2),
    "expanded": lambda m: m.arange(3.0).reshape(1, 3, 1).expand(2, 3, 4),
    "row": lambda m: m.arange(4.0),
    "every other": lambda m: m.arange(48.0).reshape(2, 3, 8)[..., ::2],
    "integers": lambda m: m.arange(24).reshape(4, 3, 2).permute(2, 1, 0),
    "halves": lambda m: m.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0).half(),
    "nothing": lambda m: m.zeros(4, 0, 2).permute(2, 1, 0),
}


def rounded(x: Any) -> Any:
    """What can be seen of a result, in plain values."""
    if isinstance(x, (tuple, list)):
        return [rounded(v) for v in x]
    if not isinstance(x, (torch.Tensor, tt.Tensor)):
        return x
    dense = x.detach().to_dense()
    node = type(x.grad_fn).__name__.rstrip("0123456789") if x.grad_fn is not None else None
    elements = np.round(np.asarray(dense.double().numpy(), np.float64), 4).tolist()
    return str(x.dtype)[-7:], tuple(x.shape), x.requires_grad, node, str(elements)


What = Callable[[Any], Any]


def told_rounded(m: Any, what: What) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, refused = attempt(lambda: rounded(what(m)))
    return made if refused is None else (type(refused).__name__, str(refused).split("\n")[0])


def alike_rounded(what: What, words: bool = True) -> None:
    want, got = told_rounded(torch, what), told_rounded(tt, what)
    if not words and isinstance(want, tuple) and isinstance(want[0], str):
        want, got = want[0], got[0]
    assert got == want


def elements_and_steps(made: Any) -> Any:
    """What can be compared of results: elements, types, sizes and strides."""
    if isinstance(made, (torch.Tensor, tt.Tensor)):
        dtype = str(made.dtype).rpartition(".")[2]
        return repr(made.detach().tolist()), dtype, tuple(made.shape), tuple(made.stride())
    if isinstance(made, (tuple, list)):
        return [elements_and_steps(m) for m in made]
    return made


def alike_in_memory(what: Callable[[Any], Any], words: bool = False) -> None:
    """That both sides give the same, or refuse it with the same class of error (and words)."""
    theirs, ours = (attempt(what, m) for m in (torch, tt))
    if theirs[1] is None or ours[1] is None:
        assert told(ours[1]) == told(theirs[1])
    elif words:
        assert told(ours[1]).replace("toytorch", "torch") == told(theirs[1])
    assert type(ours[1]).__name__ == type(theirs[1]).__name__
    assert elements_and_steps(ours[0]) == elements_and_steps(theirs[0])


def seen(m: Any, made: Any) -> Any:
    """What a program sees of results: types, shapes, strides, elements to four digits."""
    if isinstance(made, (tuple, list)):
        return [seen(m, v) for v in made]
    if not isinstance(made, m.Tensor):
        return str(made) if isinstance(made, m.dtype) else made
    x = made.detach()
    x = m.view_as_real(x.clone().resolve_conj()) if x.is_complex() else x
    values = [f"{round(v, 5) + 0.0:.4g}" for v in x.reshape(-1).double().tolist()]
    steps = [s for s, n in zip(made.stride(), made.shape) if n > 1] if made.numel() else []
    return str(made.dtype).rpartition(".")[2], tuple(made.shape), steps, values, made.requires_grad


def outcome(m: Any, what: Callable[[Any], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, refused = attempt(lambda: what(m))
    return type(refused).__name__ if refused is not None else seen(m, made)


def alike(what: Callable[[Any], Any], *about: Any) -> None:
    """That both sides give the same, or refuse it with the same class of error."""
    assert outcome(tt, what) == outcome(torch, what), about


def alike_for(what: Callable[..., Any], *given: Any) -> None:
    """`alike` for a function that is given these values too."""
    alike(lambda m: what(m, *given), *given)


def numbers(m: Any, shape: tuple[int, ...], dtype: str, step: int = 3) -> Any:
    count = math.prod(shape)
    return ((m.arange(count) * step % 5) - 1).reshape(shape).to(getattr(m, dtype))


def whats(*functions: What) -> tuple[What, ...]:
    """Functions, of a type that is known."""
    return functions


def same_or_refused(what: What) -> None:
    """That both sides give the same, or refuse it with the same class of error."""

    def told(m: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made, refused = attempt(lambda: what(m))
        return made if refused is None else type(refused).__name__

    theirs, ours = told(torch), told(tt)
    assert ours == theirs


def node(x: Any) -> Any:
    return type(x.grad_fn).__name__ if x.grad_fn is not None else None


def answer(what: Callable[[Any], Any], m: Any) -> Any:
    """What a program gives, or the class and the words of its refusal; its warnings are let through."""
    try:
        return what(m)
    except Exception as refused:  # whatever it raises is compared
        return type(refused).__name__, str(refused).replace("toytorch", "torch").strip()


def same_words(what: Callable[[Any], Any]) -> None:
    """That both sides give the same, or refuse it with the same words."""
    assert answer(what, tt) == answer(what, torch)


def warned(what: Callable[[Any], Any], m: Any) -> tuple[Any, list[str]]:
    """What a program gives or how it is refused, and the first words of its warnings."""
    was = m.is_warn_always_enabled()
    m.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            made = answer(what, m)
    finally:
        m.set_warn_always(was)
    said = [str(w.message).partition(" (Triggered")[0][:80] for w in seen]
    return made, [text for text in said if "TypedStorage" not in text]
