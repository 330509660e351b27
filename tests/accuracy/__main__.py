"""Prints, for each function and type, the largest error, PyTorch's, and what is too far off."""

from __future__ import annotations

import os
import sys
import time

from tests.accuracy import measure, sums
from tests.accuracy.functions import FUNCTIONS

POINTS = int(os.environ.get("TOYTORCH_POINTS", "1600"))


def main(words: list[str]) -> int:
    wrong = tried = 0
    for kind, names in (("function", FUNCTIONS), ("sum", sums.CASES)):
        for name in names:
            if words and not any(w in name for w in words):
                continue
            for type in ("float32", "float64"):
                start = time.perf_counter()
                if kind == "function":
                    bad, ours, theirs = measure.compare(name, FUNCTIONS[name], type, POINTS)
                else:
                    bad, ours, theirs = sums.compare(name, type)
                tried += 1
                wrong += bool(bad)
                took = time.perf_counter() - start
                print(
                    f"{name:32} {type}  {ours:10.3g} ulp, PyTorch {theirs:10.3g}  "
                    f"{'WRONG' if bad else ''} ({took:.1f} s)",
                    flush=True,
                )
                for line in bad[:4]:
                    print("    " + line)
                if len(bad) > 4:
                    print(f"    and {len(bad) - 4} more")
    print(f"{tried - wrong} of {tried} within bounds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
