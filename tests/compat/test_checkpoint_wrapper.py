"""Wrappers that compute activations again, in a single process: parameters keep their names."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import SELFTEST, torch, tt

if SELFTEST or not torch.distributed.is_available():
    pytest.skip("compares with PyTorch's torch.distributed", allow_module_level=True)

PLACE = "distributed.algorithms._checkpoint.checkpoint_wrapper"


def both() -> list[Any]:
    return [
        (m, importlib.import_module(f"{n}.{PLACE}"))
        for m, n in ((tt, "toytorch"), (torch, "torch"))
    ]


def net(m: Any) -> Any:
    block = m.nn.Sequential(m.nn.Linear(4, 4), m.nn.GELU(), m.nn.Linear(4, 4))
    made = m.nn.Sequential(block, m.nn.Sequential(m.nn.Linear(4, 4), m.nn.Tanh()))
    for i, p in enumerate(made.parameters()):
        with m.no_grad():
            p.copy_(m.sin(m.arange(p.numel(), dtype=m.float32) + i).reshape(p.shape))
    return made


CHOICES = {
    "all": {},
    "linear": {"check_fn": "linear"},
    "sequential": {"check_fn": "sequential"},
    "large": {"auto_wrap_policy": lambda module, recurse, nonwrapped_numel: nonwrapped_numel >= 20},
}


@pytest.mark.parametrize("kind", ["CheckpointWrapper", "OffloadWrapper"])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.filterwarnings("ignore")  # of pinned memory without a GPU
def test_gradients_names_and_states(choice: str, kind: str) -> None:
    found = []
    for m, w in both():
        options = dict(CHOICES[choice])
        if "check_fn" in options:
            wanted = {"linear": m.nn.Linear, "sequential": m.nn.Sequential}[options["check_fn"]]
            options["check_fn"] = lambda module, wanted=wanted: isinstance(module, wanted)
        model = net(m)
        plain = set(model.state_dict())
        w.apply_activation_checkpointing(model, checkpoint_wrapper_fn=getattr(w, kind), **options)
        x = m.cos(m.arange(8, dtype=m.float32)).reshape(2, 4).requires_grad_()
        model(x).sum().backward()
        assert set(model.state_dict()) == plain
        print_out = str(model).replace("toytorch", "torch")
        assert str(model.load_state_dict(net(m).state_dict())) == "<All keys matched successfully>"
        found.append((print_out, x.grad.tolist(), [n for n, _ in model.named_modules()]))
        found[-1][2].extend(n for n, _ in model.named_parameters())
        found[-1][2].extend(n for n, _ in model[0].named_parameters())
    (ours, grads, modules), (theirs, wanted_grads, wanted_modules) = found
    assert (ours, modules) == (theirs, wanted_modules)
    assert torch.allclose(torch.tensor(grads), torch.tensor(wanted_grads), atol=1e-5)


@pytest.mark.parametrize("way", ["REENTRANT", "NO_REENTRANT"])
def test_arguments_by_name(way: str) -> None:
    found = []
    for m, w in both():

        class Scaled(m.nn.Module):
            def forward(self, x: Any, *, by: Any, times: int = 1) -> Any:
                return (x * by * times).square()

        made = w.checkpoint_wrapper(Scaled(), w.CheckpointImpl[way])
        x, by = m.ones(2, requires_grad=True), m.full((2,), 0.5, requires_grad=True)
        made(x, by=by, times=2).sum().backward()
        found.append((x.grad.tolist(), by.grad.tolist(), made.training, type(made).__name__))
    assert found[0] == found[1]


def test_a_wrapped_list_is_indexed_and_missing_names_are_refused() -> None:
    for m, w in both():
        made = w.checkpoint_wrapper(net(m))
        assert isinstance(made[1], m.nn.Sequential)
        with pytest.raises(AttributeError, match="nothing"):
            _ = made.nothing


def test_record_writes_the_error_for_the_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = importlib.import_module("toytorch.distributed.elastic.multiprocessing.errors").record

    @record
    def main() -> None:
        raise ValueError("no data")

    with pytest.raises(ValueError, match="no data"):
        main()
    place = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(place))
    with pytest.raises(ValueError, match="no data"):
        main()
    assert json.loads(place.read_text())["message"]["message"] == "ValueError: no data"
    assert [p.name for p in tmp_path.iterdir()] == ["error.json"]
