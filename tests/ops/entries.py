"""What commands do with each entry of PyTorch's database of operators, other than the tests."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any

from tests.ops.test_database import ABSENT, ENTRIES, ours


def resize(sizes: dict[str, int]) -> None:
    """Sets the dimensions of the database's samples, by the names that it gives them."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal"):
            vars(module).update({k: n for k, n in sizes.items() if hasattr(module, k)})


def each(
    work: Callable[[str, Any, Any], Any],
    kind: Any,
    seconds: int,
    text: str = "",
    leave_out: Collection[str] = (),
) -> Iterator[tuple[str, Any]]:
    """(name, what `work(name, entry, our function)` gives) of entries for `kind` with `text` in their
    names. Entries that take longer than so many seconds, or raise, are printed."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for name in sorted(ENTRIES.keys() - ABSENT.keys() - set(leave_out)):
        info, function = ENTRIES[name], ours(ENTRIES[name])
        if text not in name or function is None or kind not in info.dtypes:
            continue
        signal.alarm(seconds)
        try:
            yield name, work(name, info, function)
        except (KeyboardInterrupt, MemoryError) as error:
            print(f"{name}: {type(error).__name__}")  # too long, or too large
        except Exception as error:  # samples that are written for the database's own sizes
            print(f"{name}: no samples, {type(error).__name__}")
        finally:
            signal.alarm(0)


__all__ = ["each", "resize"]
