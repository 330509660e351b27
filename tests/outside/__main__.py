"""`python -m tests.outside --seeds 0:1000 [--shrink]`: prints each difference as a short program."""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter, defaultdict

from tests.oracle import ORACLE, SUBJECT
from tests.outside import compare
from tests.outside.search import Found, look, shorter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="FIRST:END")
    parser.add_argument("--shrink", action="store_true", help="shorten what is printed")
    parser.add_argument("--each", type=int, default=2, help="programs printed of each group")
    parser.add_argument("--messages", action="store_true", help="compare the words of errors, too")
    parser.add_argument("--warnings", action="store_true", help="compare classes of warnings, too")
    options = parser.parse_args()
    compare.MESSAGES_COMPARED, compare.WARNINGS_COMPARED = options.messages, options.warnings
    if options.warnings:  # what is said once has been said while the program was drawn
        for side in (ORACLE, SUBJECT):
            side.root.set_warn_always(True)
    first, _, end = options.seeds.partition(":")
    warnings.simplefilter("ignore")
    groups: dict[str, list[Found]] = defaultdict(list)
    began = time.perf_counter()
    for seed in range(int(first), int(end)):
        found = look(seed)
        if found is not None:
            if options.shrink and len(groups[found.group]) < options.each:
                found = shorter(found)
            groups[found.group].append(found)
    for name, members in sorted(groups.items(), key=lambda kv: -len(kv[1])):
        print(f"=== {len(members)} {name}: seeds {[m.program.seed for m in members][:12]}")
        for m in members[: options.each]:
            lines = m.program.lines if options.shrink else m.program.lines[: m.line + 1]
            print("\n".join("    " + s for line in lines for s in line.split("\n")))
            print(f"  {m.difference.path}: PyTorch {m.difference.expected[:400]}")
            print(f"  {' ' * len(m.difference.path)}  ours    {m.difference.got[:400]}")
    count = int(end) - int(first)
    total = sum(map(len, groups.values()))
    kinds = Counter(k.partition(":")[0] for k, v in groups.items() for _ in v)
    print(f"{count} programs, {total} with a difference, in {len(groups)} groups; {dict(kinds)}")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
