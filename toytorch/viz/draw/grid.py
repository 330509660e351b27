"""Where boxes stand: an order within rows that has few crossings, then x positions.

Orders are found by barycentres (Sugiyama, Tagawa and Toda, 1981), positions by least squares under
the rule that neighbours keep their distance. An arrow that passes rows has an item, a bend, in each
of them, so it is kept clear of boxes like any other item.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

_BEND = 10.0  # the room an arrow takes in a row that it passes


class Grid:
    """Rows of items: the boxes, then one bend for each row that an edge passes."""

    def __init__(
        self,
        sizes: Sequence[tuple[float, float]],
        edges: Sequence[tuple[int, int]],
        row_of: list[int],
        gap_x: float,
    ) -> None:
        self.sizes = list(sizes)
        self.row_of = list(row_of)
        self.boxes = len(sizes)
        self.gap_x = gap_x
        self.chains: list[list[int]] = []  # per edge: its items from top to bottom
        for upper, lower in edges:
            chain = [upper]
            for row in range(row_of[upper] + 1, row_of[lower]):
                chain.append(len(self.sizes))
                self.sizes.append((_BEND, 0.0))
                self.row_of.append(row)
            self.chains.append([*chain, lower])
        count = len(self.sizes)
        self.above: list[list[int]] = [[] for _ in range(count)]
        self.below: list[list[int]] = [[] for _ in range(count)]
        for chain in self.chains:
            for upper, lower in pairwise(chain):
                self.below[upper].append(lower)
                self.above[lower].append(upper)
        self.rows: list[list[int]] = [[] for _ in range(max(self.row_of) + 1)]
        self.x = [0.0] * count

    # order ---------------------------------------------------------------------------------------

    def order(self) -> None:
        """Fill the rows from left to right, with few crossings."""
        self._first_order()
        place = self._places()
        best, fewest = [list(row) for row in self.rows], self._crossings(place)
        for sweep in range(16):
            down = sweep % 2 == 0
            near = self.above if down else self.below
            span = range(1, len(self.rows)) if down else range(len(self.rows) - 2, -1, -1)
            for r in span:
                centre = {
                    item: sum(place[n] for n in near[item]) / len(near[item])
                    if near[item]
                    else float(place[item])
                    for item in self.rows[r]
                }
                self.rows[r].sort(key=centre.__getitem__)
                for at, item in enumerate(self.rows[r]):
                    place[item] = at
            crossings = self._crossings(place)
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
            if not fewest:
                break
        self.rows = best

    def _first_order(self) -> None:
        """Walk down from the sources, left input first: that is how the graph reads."""
        seen = [False] * len(self.sizes)
        sources = [item for item in range(len(self.sizes)) if not self.above[item]]
        stack = sources[::-1]
        while stack:
            item = stack.pop()
            if seen[item]:
                continue
            seen[item] = True
            self.rows[self.row_of[item]].append(item)
            stack.extend(reversed(self.below[item]))

    def _places(self) -> list[int]:
        place = [0] * len(self.sizes)
        for row in self.rows:
            for at, item in enumerate(row):
                place[item] = at
        return place

    def _crossings(self, place: list[int]) -> int:
        total = 0
        for row in self.rows:
            ends: list[int] = []
            for item in row:
                targets = sorted(place[lower] for lower in self.below[item])
                total += sum(len(ends) - bisect_right(ends, target) for target in targets)
                for target in targets:
                    insort(ends, target)
        return total

    # positions -----------------------------------------------------------------------------------

    def place(self) -> None:
        """Choose each item's centre x: near its neighbours in other rows, clear of its own row."""
        for row in self.rows:
            x = 0.0
            for at, item in enumerate(row):
                x += self._distance(row[at - 1], item) if at else 0.0
                self.x[item] = x
        last = len(self.rows) - 1
        sweeps = min(max(150_000 // len(self.sizes), 24), 240)
        for sweep in range(sweeps):
            both = sweep >= 8  # first pull from one side at a time, then settle between the two
            down = sweep % 2 == 0
            for r in range(last + 1) if down else range(last, -1, -1):
                self._settle(self.rows[r], up=both or down, below=both or not down)
        self._straighten()
        left = min(self.x[i] - self.sizes[i][0] / 2 for i in range(len(self.x)))
        self.x = [x - left for x in self.x]

    def _distance(self, left: int, right: int) -> float:
        gap = self.gap_x if left < self.boxes and right < self.boxes else self.gap_x * 0.6
        return (self.sizes[left][0] + self.sizes[right][0]) / 2 + gap

    def _pull(self, item: int, other: int) -> float:
        # long arrows are kept straight first, for a bend in mid-air says nothing; then arrows that
        # are the only one at both their ends, so that a chain stands upright and forks spread
        upper, lower = (other, item) if self.row_of[other] < self.row_of[item] else (item, other)
        bends = (item >= self.boxes) + (other >= self.boxes)
        if bends:
            return 2.0 if bends == 1 else 8.0
        return 6.0 if len(self.below[upper]) == len(self.above[lower]) == 1 else 1.0

    def _settle(self, row: list[int], *, up: bool, below: bool) -> None:
        """Move a row to the least-squares positions that keep order and distance.

        With the distances subtracted the rule is "not decreasing", so pooling adjacent violators
        (Ayer and others, 1955) gives the exact answer in one pass.
        """
        pools: list[tuple[float, float, int]] = []  # (weighted mean, weight, members)
        offsets: list[float] = []
        offset = 0.0
        for at, item in enumerate(row):
            offset += self._distance(row[at - 1], item) if at else 0.0
            offsets.append(offset)
            near = (self.above[item] if up else []) + (self.below[item] if below else [])
            weight = sum(self._pull(item, other) for other in near)
            if weight:
                wish = sum(self._pull(item, other) * self.x[other] for other in near) / weight
            else:
                wish, weight = self.x[item], 0.1
            mean, members = wish - offset, 1
            while pools and pools[-1][0] >= mean:
                before, its_weight, size = pools.pop()
                mean = (before * its_weight + mean * weight) / (its_weight + weight)
                weight += its_weight
                members += size
            pools.append((mean, weight, members))
        at = 0
        for mean, _, members in pools:
            for _ in range(members):
                self.x[row[at]] = mean + offsets[at]
                at += 1

    def _straighten(self) -> None:
        """Stand chains upright and give long arrows few bends, as far as the boxes beside allow.

        Down a chain, the free intervals of successive rows are intersected for as long as anything
        is left; all items of such a stretch then take one x.
        """
        at = self._places()
        runs = self._runs()
        for run in [*runs, *reversed(runs)]:
            stretch: list[int] = []
            low, high = 0.0, 0.0
            for item in [*run, -1]:
                # at the end, an interval that meets no other closes the last stretch
                new_low, new_high = self._free(item, at[item]) if item >= 0 else (1.0, 0.0)
                if stretch and max(low, new_low) <= min(high, new_high):
                    stretch.append(item)
                    low, high = max(low, new_low), min(high, new_high)
                    continue
                if len(stretch) > 1:
                    mean = sum(self.x[i] for i in stretch) / len(stretch)
                    for member in stretch:
                        self.x[member] = min(max(mean, low), high)
                stretch, low, high = [item], new_low, new_high

    def _runs(self) -> list[list[int]]:
        """Return the chains of items joined by edges that are alone at both their ends."""
        down = [
            below[0] if len(below) == 1 and len(self.above[below[0]]) == 1 else -1
            for below in self.below
        ]
        joined = set(down)
        runs = []
        for item in range(len(self.x)):
            if item not in joined and down[item] >= 0:
                run = [item]
                while down[run[-1]] >= 0:
                    run.append(down[run[-1]])
                runs.append(run)
        return runs

    def _free(self, item: int, at: int) -> tuple[float, float]:
        """Return how far an item may move between its neighbours in the row."""
        row = self.rows[self.row_of[item]]
        low, high = self.x[item] - 1e4, self.x[item] + 1e4
        if at:
            low = self.x[row[at - 1]] + self._distance(row[at - 1], item)
        if at + 1 < len(row):
            high = self.x[row[at + 1]] - self._distance(item, row[at + 1])
        return min(low, self.x[item]), max(high, self.x[item])
