"""A script of a seed: a network for some kind of input, a loss, an optimizer, and steps that use them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from tests.oracle import torch
from tests.outside.scripts.grammar import Draw
from tests.outside.scripts.running import start

INPUTS = {  # the kind of layers that take it
    "FLAT": ("torch.randn(4, 3)", "torch.randn(5, 4)", "torch.rand(6, 6)", "torch.randn(3, 8)"),
    "LINE": ("torch.randn(2, 4, 6)", "torch.randn(3, 2, 8)", "torch.randn(2, 3, 4)"),
    "IMAGE": ("torch.randn(2, 4, 6, 6)", "torch.randn(2, 1, 8, 8)", "torch.rand(3, 2, 5, 6)"),
    "VOLUME": ("torch.randn(2, 2, 4, 4, 4)", "torch.randn(1, 1, 3, 4, 5)"),
    "TOKENS": ("torch.randint(0, 12, (3, 5))", "torch.randint(0, 12, (2, 4))"),
}  # fmt: skip
KINDS = {2: "FLAT", 3: "LINE", 4: "IMAGE", 5: "VOLUME"}
LARGEST = 1200  # numbers that a layer may give


class Script(NamedTuple):
    seed: int
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return "\n\n".join(self.parts)


HELPERS = """\
extra = nn.Parameter(torch.ones(2))

def loss_of(net=None):
    out = (net or model)(x)
    return loss_fn(out, y).mean()

def closure():
    opt.zero_grad()
    loss = loss_of()
    loss.backward()
    return loss

def grads(net=None):
    return {n: p.grad for n, p in (net or model).named_parameters()}"""


def script(seed: int) -> Script:
    """The script of a seed."""
    draw = Draw(seed)
    parts = [f"torch.manual_seed({draw.randrange(100)})"]
    if draw.random() < 0.2:
        return Script(seed, (*parts, *(draw.of("FREE") for _ in range(draw.randint(2, 4)))))
    kind = draw.choice(("FLAT", "FLAT", "LINE", "LINE", "IMAGE", "IMAGE", "VOLUME", "TOKENS"))
    given = draw.choice(INPUTS[kind])
    layers, shape = network(draw, kind, given)
    parts.append(f"x = {given}\nsee(x)")
    lines = "".join(f"    {layer},\n" for layer in layers)
    parts.append(f"model = nn.Sequential(\n{lines})\nsee(model)")
    parts.append("see(model(x))")
    loss, _, target = draw.of(draw.choice(losses(shape)), **words(shape)).rpartition(" @ ")
    parts.append(f"loss_fn = {loss}\ny = {target}")
    parts.append(HELPERS)
    parts.append(f"opt = {draw.of('OPT')}\nsee(opt)")
    parts.append(f"sched = {draw.of('SCHED')}\nsee(opt.param_groups[0]['lr'])")
    for _ in range(draw.randint(3, 7)):
        rule = draw.choice(("TRAIN", "TRAIN", "TRAIN", "MODULE", "MODULE", "MISTAKES"))
        parts.append(draw.of(rule, **words(shape)))
    return Script(seed, tuple(parts))


def words(shape: tuple[int, ...]) -> dict[str, object]:
    """What texts say of a shape."""
    inner = ", ".join(map(str, shape))
    return {
        "N": shape[0], "C": shape[1] if len(shape) > 1 else 1, "L": shape[-1], "H": shape[-2] if len(shape) > 1 else 1,
        "OUT": inner + ("," if len(shape) == 1 else ""),
        "REST": ", ".join(map(str, (shape[0], *shape[2:]))) + ("," if len(shape) == 2 else ""),
    }  # fmt: skip


def losses(shape: tuple[int, ...]) -> tuple[str, ...]:
    """The rules of losses for a result of this shape."""
    if len(shape) == 2:
        return "REGRESSION", "CLASSES", "FLATCLASSES"
    return ("REGRESSION", "CLASSES") if len(shape) > 2 else ("REGRESSION",)


def network(draw: Draw, kind: str, given: str) -> tuple[list[str], tuple[int, ...]]:
    """Some layers, each of which takes what the one before gives, and the shape of the result."""
    names = start(torch)
    layers: list[str] = []
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        value = eval(given, names)
        tries, wanted = 0, draw.randint(1, 6)
        while len(layers) < wanted and tries < 30:
            tries += 1
            rule = "TOKENS" if kind == "TOKENS" and not layers else KINDS.get(value.ndim, "ACT")
            text = draw.of(rule, **words(tuple(value.shape)))
            result = fits(text, value, names)
            if result is not None:
                layers.append(text)
                value = result
    return layers, tuple(value.shape)


def fits(text: str, value: Any, names: dict[str, Any]) -> Any:
    """What the layer gives, or None if it refuses the value, or gives too much."""
    try:
        result = eval(text, names)(value)
    except Exception:  # whatever PyTorch says of it
        return None
    fine = isinstance(result, torch.Tensor) and result.is_floating_point() and result.ndim
    return result if fine and 0 < result.numel() <= LARGEST else None
