"""`python -m tests.outside.scripts --seeds 0:1000`: prints each script whose sides differ, shortened."""

from __future__ import annotations

import argparse
import importlib
import re
import time
import warnings
from collections import Counter, defaultdict

from tests.outside.scripts.script import script
from tests.outside.scripts.search import look, shorter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:100", help="FIRST:END")
    parser.add_argument("--whole", action="store_true", help="print scripts as they were drawn")
    parser.add_argument("--show", action="store_true", help="print the scripts only")
    parser.add_argument(
        "--each", type=int, default=2, help="scripts printed of each kind of difference"
    )
    options = parser.parse_args()
    groups: dict[str, list[int]] = defaultdict(list)
    first, _, end = options.seeds.partition(":")
    warnings.simplefilter("ignore")
    importlib.import_module("torch._dynamo")  # takes seconds, which no script should be charged
    began, kinds = time.perf_counter(), Counter[str]()
    for seed in range(int(first), int(end)):
        if options.show:
            print(f"=== {seed}\n{script(seed)}")
            continue
        found = look(seed)
        if found is None:
            continue
        drawn, difference = found
        kinds[difference.kind] += 1
        group = re.sub(
            r"[-\d.]+|Size|tuple of|list of",
            "",
            f"{difference.expected[:60]}|{difference.got[:60]}",
        )
        groups[group].append(seed)
        if len(groups[group]) > options.each:
            continue
        if not options.whole:
            drawn, difference = shorter(*found)
        print(f"=== {seed}: {difference.kind}\n{drawn}")
        print(
            f"  PyTorch {difference.expected[:300]}\n  ours    {difference.got[:300]}", flush=True
        )
    for group, seeds in groups.items():
        if len(seeds) > options.each:
            print(f"{group}: seeds {seeds}")
    count = int(end) - int(first)
    print(
        f"{count} scripts, {kinds.total()} with a difference: {dict(kinds)}; {time.perf_counter() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
