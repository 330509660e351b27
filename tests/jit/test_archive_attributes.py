"""What archives keep beside parameters: attributes, memory that is shared, strides, a state."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from toytorch.jit.archive_parts import lying

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def modules(m: Any) -> Any:
    """Classes of modules of one of the packages."""

    class Held(m.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            p = self.p = m.nn.Parameter(m.arange(25.0).view(5, 5))
            self.q = m.nn.Parameter(p.detach()[3])
            self.r = m.nn.Parameter(m.rand(11, 5)[1:6])
            self.w = m.nn.Parameter(m.rand(2, 3, 4, 4).to(memory_format=m.channels_last))
            self.a = m.ones(2)
            self._private = 2.5
            self.items = [m.ones(1), m.zeros(2)]
            self.big = 2**40
            self.mixed = (1, 2.5, "a")
            self.table = {"a": 1}
            self.place = m.device("cpu")
            self.none = None
            self.other = object()
            self.linear = m.nn.Linear(2, 3)

        def forward(self, x):
            return x + self.a.sum() + self.q.sum()

    class State(m.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tensor = m.ones(2)
            self.n = 1

        @m.jit.export
        def __getstate__(self):
            return (self.tensor * 3, self.n, self.training)

        @m.jit.export
        def __setstate__(self, state):
            self.tensor = state[0] + 1
            self.n = state[1] + 5
            self.training = state[2]

        def forward(self, x):
            return x + self.tensor * self.n

    return Held, State


def again(m: Any, module: Any) -> Any:
    file = io.BytesIO()
    m.jit.save(module, file)
    file.seek(0)
    return m.jit.load(file)


def plain(value: Any) -> Any:
    """A value without the package it is of."""
    if hasattr(value, "stride"):
        memory = value.untyped_storage().nbytes()
        return tuple(value.shape), value.stride(), value.storage_offset(), memory, value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return str(value) if type(value).__name__ == "device" else value


NAMES = ["a", "_private", "items", "big", "mixed", "table", "place", "none", "other"]


@pytest.mark.parametrize("traced", [False, True])
def test_attributes_memory_and_strides(traced: bool) -> None:
    found = []
    for m in (tt, torch):
        m.manual_seed(0)
        module = modules(m)[0]()
        made = m.jit.trace(module, m.ones(2)) if traced else m.jit.script(module)
        loaded = again(m, again(m, made))
        shared = loaded.p.untyped_storage().data_ptr() == loaded.q.untyped_storage().data_ptr()
        loaded.p.data[3].fill_(9.0)
        found.append(
            (
                shared,
                plain([loaded.p, loaded.q, loaded.r, loaded.w]),
                [plain(getattr(loaded, name, "absent")) for name in NAMES],
                getattr(loaded.linear, "out_features", "absent"),
                list(loaded.state_dict()),
                plain(loaded(m.ones(2))),
            )
        )
    assert found[0] == found[1]


def test_a_state_of_ones_own() -> None:
    found = []
    for m in (tt, torch):
        made = m.jit.script(modules(m)[1]()).eval()
        loaded = again(m, made)
        found.append((plain(loaded.tensor), loaded.n, loaded.training, plain(loaded(m.ones(2)))))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("shape", "offset", "strides"), [((2, 2), 1, [2, 1]), ((2,), 0, [4]), ((2,), 0, [1, 1])]
)
def test_a_memory_that_is_too_small_is_refused(
    shape: tuple[int, ...], offset: int, strides: list[int]
) -> None:
    flat = np.zeros(4, np.float32)
    assert lying(flat, (2, 2), {"offset": 0, "strides": [1, 2]}).strides == (4, 8)
    with pytest.raises(ValueError, match="beyond its memory"):
        lying(flat, shape, {"offset": offset, "strides": strides})
