"""One access of a warp: the sectors of global memory that it fetches, or the banks that it waits for."""

from __future__ import annotations

from collections.abc import Sequence

from toytorch.viz.draw import palette
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Rect, Scene, Text, heading, remark, tile

SECTOR, BANKS, WORD = 32, 32, 4
MARGIN, ROOM = 22.0, 16  # sectors in a row
CELL, GAP, TALL = 5.2, 7.0, 22.0
BANK, ROW = 24.0, 19.0


def warp_access(
    addresses: Sequence[int | None], *, shared: bool = False, title: str = ""
) -> Picture:
    """Draws what a warp's request for words of four bytes costs.

    `addresses` are the byte addresses of the threads, None for those that take no part. In global
    memory every touched sector of 32 bytes is a box of eight words: those that somebody wants are
    blue, the others are fetched for nothing. In shared memory a column is a bank, and the words
    that are wanted from it stand on each other: every row is a wavefront. Raises ValueError for
    more than 32 threads, for none that takes part, and for addresses that no word has.

    >>> warp_access([8 * t for t in range(32)])
    <warp access: 8 sectors, 50 % of their bytes are wanted>
    >>> warp_access([8 * t for t in range(32)], shared=True)
    <warp access: 2 wavefronts>
    """
    wanted = [a for a in addresses if a is not None]
    if not wanted or len(addresses) > BANKS:
        raise ValueError(f"a warp has up to 32 threads, and one takes part: got {len(wanted)}")
    if any(a < 0 or a % WORD for a in wanted):
        raise ValueError("an address of a word is a multiple of 4, from 0 on")
    return _banks(addresses, title) if shared else _sectors(addresses, title)


def _sectors(addresses: Sequence[int | None], title: str) -> Picture:
    words = {a // WORD for a in addresses if a is not None}
    sectors = sorted({word * WORD // SECTOR for word in words})
    share = WORD * len(words) / (SECTOR * len(sectors))
    count = len(sectors)
    said = f"{count} sector{'s' * (count != 1)}, {share:.0%} of their bytes are wanted"
    said = said.replace("%", " %")
    wide = 8 * CELL + GAP
    rows = -(-count // ROOM)
    scene = Scene(2 * MARGIN + ROOM * wide, MARGIN + 26 + rows * (TALL + 20) + 30, title or said)
    scene.add(heading(MARGIN, MARGIN + 6, _head(title, said)))
    for place, sector in enumerate(sectors):
        x = MARGIN + place % ROOM * wide
        y = MARGIN + 22 + place // ROOM * (TALL + 20)
        for word in range(8):
            hit = sector * 8 + word in words
            fill = palette.BLUE.line if hit else palette.REST
            line = palette.BLUE.line if hit else palette.FAINT
            scene.add(Rect(x + word * CELL, y, CELL, TALL, 0, fill, line, 0.7))
        middle = x + 4 * CELL
        scene.add(remark(middle, y + TALL + 13, str(sector), "middle"))
    _legend(
        scene,
        [("wanted", palette.BLUE.line), ("fetched for nothing", palette.REST)],
        "below each: the sector's number",
    )
    scene.ground()
    return Picture(scene, f"<warp access: {said}>")


def _banks(addresses: Sequence[int | None], title: str) -> Picture:
    columns: list[dict[int, list[int]]] = [{} for _ in range(BANKS)]  # word: threads
    for thread, address in enumerate(addresses):
        if address is not None:
            word = address // WORD
            columns[word % BANKS].setdefault(word, []).append(thread)
    rows = max(map(len, columns))
    said = f"{rows} wavefront{'s' * (rows != 1)}"
    scene = Scene(2 * MARGIN + BANKS * BANK, MARGIN + 46 + rows * ROW + 34, title or said)
    scene.add(heading(MARGIN, MARGIN + 6, _head(title, said)))
    top = MARGIN + 38
    for bank, words in enumerate(columns):
        x = MARGIN + bank * BANK
        scene.add(remark(x + BANK / 2, top - 6, str(bank), "middle"))
        if not words:
            dash = (3.0, 3.0)
            scene.add(Rect(x + 1.5, top, BANK - 3, ROW - 3, 3, "none", palette.FAINT, 0.8, dash))
        for row, threads in enumerate(words.values()):
            hue = palette.RED if row else palette.GREEN
            y = top + row * ROW
            label = str(threads[0]) if len(threads) == 1 else f"×{len(threads)}"
            scene.add(
                tile(x + 1.5, y, BANK - 3, ROW - 3, 3, hue, 1.0),
                Text(x + BANK / 2, y + 12.5, label, palette.SMALL_SIZE, anchor="middle"),
            )
    _legend(
        scene,
        [("first wavefront", palette.GREEN.tint), ("has to wait", palette.RED.tint)],
        "columns: banks; in a box: the thread, or how many want this word",
    )
    scene.ground()
    return Picture(scene, f"<warp access: {said}>")


def _head(title: str, said: str) -> str:
    return f"{title}: {said}" if title else said


def _legend(scene: Scene, parts: list[tuple[str, str]], note: str) -> None:
    x, y = MARGIN, scene.height - 22
    for name, fill in parts:
        scene.add(Rect(x, y, 14, 11, 2, fill, palette.BOX_LINE))
        scene.add(remark(x + 20, y + 10, name))
        x += 34 + 6.4 * len(name)
    scene.add(remark(x + 6, y + 10, note))
