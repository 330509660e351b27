"""Pictures of networks and optimizers: trees of modules, signals through layers, walks."""

from __future__ import annotations

import math
from typing import Any

import pytest

import toytorch as torch
from tests.viz.helpers import parsed, texts
from toytorch import nn, viz
from toytorch.viz.draw.axes import Panel
from toytorch.viz.draw.levels import level_lines


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Embedding(5, 2)
        self.write = nn.Linear(2, 5, bias=False)
        self.write.weight = self.read.weight
        self.norm = nn.BatchNorm1d(2)
        self.twice = nn.Sequential(self.read, nn.ReLU())


def test_a_tree_shows_every_module_once_and_shared_parameters_by_name() -> None:
    picture = viz.module_tree(Tied())
    shown = texts(picture.svg)
    assert "read / 0" in shown
    assert "= read.weight" in shown
    assert shown.count("5×2") == 1
    assert "2, buffer" in shown
    assert repr(picture) == "<Tied: 6 modules, 3 parameters, 14 numbers to learn>"


def test_a_frozen_parameter_is_not_counted() -> None:
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    picture = viz.module_tree(layer)
    assert "2, frozen" in texts(picture.svg)
    assert "4 numbers" in repr(picture)


def test_a_large_tree_is_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        viz.module_tree(nn.Sequential(*[nn.ReLU() for _ in range(9)]), limit=9)


def stack(std: float) -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(20, 20, bias=False), nn.Tanh())])
    net.apply(lambda m: nn.init.normal_(m.weight, std=std) if isinstance(m, nn.Linear) else None)
    return net


def test_a_signal_is_followed_and_leaves_no_hooks() -> None:
    nets = {"small": stack(0.02), "large": stack(3.0)}
    steps = viz.signal(nets, torch.ones(4, 20), kind=nn.Tanh)
    assert len(steps) == 7
    assert steps.captions[0].startswith("The input. Root of the mean square: small: 1; large: 1.")
    assert "large: 0.98" in steps.captions[-1]
    assert not any(m._forward_hooks for net in nets.values() for m in net.modules())
    parsed(steps.svg(3))
    assert steps.html == viz.signal(nets, torch.ones(4, 20), kind=nn.Tanh).html


def test_a_signal_needs_layers_and_survives_nan() -> None:
    with pytest.raises(ValueError, match="no layer"):
        viz.signal({"a": nn.ReLU()}, torch.ones(1), kind=nn.Tanh)
    parsed(viz.signal({"a": nn.ReLU()}, torch.tensor([math.nan, math.inf])).svg())


def bowl(x: Any, y: Any) -> Any:
    return x * x + 4 * y * y


def test_walks_are_those_of_the_optimizers() -> None:
    def scheduled(parameters: list[Any]) -> Any:
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    walkers = {"plain": lambda p: torch.optim.SGD(p, lr=0.1), "halved": scheduled}
    steps = viz.walks(bowl, walkers, (1.0, 1.0), steps=4)
    assert len(steps) == 5
    assert steps.captions[0] == "The start. Loss of plain: 5; halved: 5."
    # x ← 0.8 x and y ← 0.2 y
    assert steps.captions[1] == "Step 1. Loss of plain: 0.8; halved: 0.8."
    assert "0.05" in texts(steps.svg(1))
    assert steps.html == viz.walks(bowl, walkers, (1.0, 1.0), steps=4).html


def test_a_walk_may_leave_the_picture() -> None:
    steps = viz.walks(bowl, {"wild": lambda p: torch.optim.SGD(p, lr=2.0)}, (1.0, 1.0), steps=60)
    parsed(steps.svg())
    with pytest.raises(ValueError, match="nobody walks"):
        viz.walks(bowl, {}, (1.0, 1.0))


def test_level_lines_of_a_circle_lie_on_it() -> None:
    places = [n / 10 - 1 for n in range(21)]
    values = [[x * x + y * y for x in places] for y in places]
    pieces = level_lines(places, places, values, 0.5)
    assert len(pieces) > 20
    assert all(abs(math.hypot(*p) - 0.5**0.5) < 0.01 for piece in pieces for p in piece)


def test_a_panel_keeps_what_lies_outside_on_its_edge() -> None:
    panel = Panel(0, 0, 10, 10, (0, 1), (0, 1))
    assert panel.at(-5, math.nan) == (0.0, 0.0)
    assert not panel.holds(0.5, math.nan)
    assert panel.holds(1, 0)
