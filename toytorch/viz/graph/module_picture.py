"""A network as a tree: its modules, and what each of them holds itself."""

from __future__ import annotations

from typing import Any

from toytorch.nn import Module
from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import PLAIN, Box, Row, arrow, legend, moved, tinted
from toytorch.viz.draw.layout import layered
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Scene

MARGIN = 26.0
_BUFFER = "buffer"


def module_tree(model: Module, *, limit: int = 40) -> Picture:
    """Draw a module, its children, and the parameters and buffers that each of them registers.

    A module that two others share stands there once, with two arrows; of a parameter with two
    names, the second says what the first one was. Raises ValueError for more than `limit` modules.

    >>> from toytorch import nn
    >>> module_tree(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))
    <Sequential: 4 modules, 4 parameters, 21 numbers to learn>
    """
    names: dict[int, list[str]] = {}
    modules: list[Module] = []
    edges: list[tuple[int, int]] = []
    place: dict[int, int] = {}
    _collect(model, type(model).__name__, names, modules, place, edges)
    if len(modules) > limit:
        raise ValueError(
            f"{len(modules)} modules are too many for one picture: draw a part, or "
            f"raise limit={limit}"
        )
    paths = {id(m): path for path, m in model.named_modules()}
    known: dict[int, str] = {}
    boxes = [_box(m, names[id(m)], paths[id(m)], known) for m in modules]
    placed = layered([c.size for c in boxes], edges, gap_y=34.0)
    parameters = list(model.parameters())
    numbers = sum(p.numel() for p in parameters if p.requires_grad)
    summary = (
        f"{type(model).__name__}: {_many(len(modules), 'module')}, "
        f"{_many(len(parameters), 'parameter')}, {numbers:,} numbers to learn"
    )
    return Picture(_scene(modules, boxes, placed, summary), f"<{summary}>")


def _collect(
    module: Module,
    name: str,
    names: dict[int, list[str]],
    modules: list[Module],
    place: dict[int, int],
    edges: list[tuple[int, int]],
) -> None:
    place[id(module)] = len(modules)
    names[id(module)] = [name]
    modules.append(module)
    here = place[id(module)]
    for child_name, child in module._modules.items():
        if child is None:
            continue
        if id(child) in place:
            names[id(child)].append(child_name)
        else:
            _collect(child, child_name, names, modules, place, edges)
        edges.append((here, place[id(child)]))


def _box(module: Module, names: list[str], path: str, known: dict[int, str]) -> Box:
    rows = []
    for name, value in module._parameters.items():
        if value is None:
            continue
        full = f"{path}.{name}" if path else name
        first = known.setdefault(id(value), full)
        told = "×".join(map(str, value.shape)) or "one number"
        if first != full:
            told = f"= {first}"
        elif not value.requires_grad:
            told += ", frozen"
        rows.append(Row(name, told, swatch=first == full))
    rows += [
        Row(name, f"{'×'.join(map(str, value.shape)) or '1'}, {_BUFFER}")
        for name, value in module._buffers.items()
        if value is not None
    ]
    kind = type(module).__name__
    return Box(" / ".join(names), [] if names == [kind] else [kind], rows)


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("s" if count != 1 else "")


def _scene(modules: list[Module], boxes: list[Box], placed: Any, summary: str) -> Scene:
    key, key_width, key_height = legend(
        [
            ("module", PLAIN, False),
            ("module with parameters of its own", tinted(palette.BLUE), False),
        ]
    )
    wide = max(placed.width, key_width) + 2 * MARGIN
    scene = Scene(wide, placed.height + 2 * MARGIN + key_height + 26, summary)
    dx, dy = (wide - placed.width) / 2, MARGIN
    shapes: list[Any] = []
    for route in placed.routes:
        shapes += arrow(route, palette.EDGE, 1.4)
    for module, box, (x, y) in zip(modules, boxes, placed.corners):
        owns = any(p is not None for p in module._parameters.values())
        shapes += box.draw(x, y, tinted(palette.BLUE) if owns else PLAIN, palette.SKY)
    scene.add(*moved(shapes, dx, dy))
    scene.add(*moved(key, MARGIN, placed.height + MARGIN + 20))
    scene.ground()
    return scene
