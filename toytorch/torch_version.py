"""The version as a text that compares as versions do: "2.10" is more than "2.9"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from toytorch.version import __version__ as _number

FORM = re.compile(
    r"""v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>\d*))?
    (?:-(?P<post_n>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_m>\d*))?
    (?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?""",
    re.VERBOSE | re.IGNORECASE,
)
PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


def order(text: str) -> tuple[Any, ...]:
    """What to compare versions by (PEP 440); ValueError for a text that is none.

    >>> order("2.0a1") < order("2.0") < order("2.0+cpu") < order("2.0.post1") < order("2.0.1")
    True
    """
    found = FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"Invalid version: '{text}'")
    part = {k: v.lower() if v else v for k, v in found.groupdict().items()}
    release = [int(n) for n in part["release"].split(".")]
    while len(release) > 1 and not release[-1]:
        release.pop()
    is_post = part["post_n"] is not None or part["post"] is not None
    is_dev = part["dev"] is not None
    if part["pre"]:
        pre: tuple[Any, ...] = (0, PRE.get(part["pre"], part["pre"]), int(part["pre_n"] or 0))
    else:
        pre = (-1,) if is_dev and not is_post else (1,)  # 2.0.dev1 comes before 2.0a1
    post = int(part["post_n"] or part["post_m"] or 0) if is_post else -1
    dev = (0, int(part["dev_n"] or 0)) if is_dev else (1,)
    local = tuple(
        (1, int(s), "") if s.isdigit() else (0, 0, s)
        for s in re.split("[-_.]", part["local"] or "")
        if s
    )
    return int(part["epoch"] or 0), tuple(release), pre, post, dev, local


def _comparing(method: str) -> Any:
    """A method that compares versions; where one is none, texts."""

    def compare(self: str, other: object) -> Any:
        try:
            theirs = order(_text(other))
            return getattr(order(self), method)(theirs)
        except ValueError:
            return getattr(str, method)(self, other)

    return compare


class TorchVersion(str):
    """A version that is a text, and compares with texts, tuples and other packages' versions.

    >>> TorchVersion("2.13.0+toytorch") >= "2.9", TorchVersion("2.13.0") >= (2, 9)
    (True, True)
    """

    __slots__ = ()

    __lt__, __le__, __gt__, __ge__, __eq__ = map(
        _comparing, ("__lt__", "__le__", "__gt__", "__ge__", "__eq__")
    )
    __hash__ = str.__hash__


def _text(other: object) -> str:
    if isinstance(other, str):
        return other
    if isinstance(other, Iterable):
        return ".".join(map(str, other))
    if type(other).__name__ == "Version":  # of the package packaging, or a copy of it
        return str(other)
    raise ValueError(f"Invalid version: {other!r}")


__version__ = TorchVersion(_number)

__all__ = ["TorchVersion"]
