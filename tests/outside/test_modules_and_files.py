"""Modules, their hooks and states, optimizers that divide by the scale, files."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import same_words, warned

# -- calls -----------------------------------------------------------------------------------------


# -- modules ---------------------------------------------------------------------------------------


def hooks_as_given(m: Any) -> Any:
    def before(module: Any, args: Any) -> None: ...

    def after(module: Any, args: Any, kwargs: Any, out: Any) -> None: ...

    layer = m.nn.Linear(2, 2)
    layer.register_forward_pre_hook(before)
    layer.register_forward_hook(after, with_kwargs=True, always_call=True)
    layer(m.ones(2))
    return (
        next(iter(layer._forward_pre_hooks.values())) is before,
        list(layer._forward_hooks_with_kwargs.values()),
        list(layer._forward_hooks_always_called.values()),
    )


def base_last(m: Any) -> Any:
    class Mixin:
        def __init__(self, size: int = 1) -> None:
            self.size = size

    class Layer(m.nn.Module, Mixin):  # type: ignore[misc]
        call_super_init = True

    class Other(m.nn.Module, Mixin):  # type: ignore[misc]
        pass

    return Layer(size=3).size, hasattr(Other(), "size")


def hook_of_two_kinds(m: Any) -> None:
    def hook(module: Any, state: Any, prefix: str, metadata: Any) -> None: ...

    layer = m.nn.Linear(2, 2)
    layer.register_state_dict_post_hook(hook)
    layer._register_state_dict_hook(hook)


def pruned_twice(m: Any) -> Any:
    layer = m.nn.Linear(4, 4)
    prune = importlib.import_module(f"{m.__name__}.nn.utils.prune")
    prune.l1_unstructured(layer, "weight", amount=0.25)
    prune.l1_unstructured(layer, "weight", amount=0.5)
    (hook,) = layer._forward_pre_hooks.values()
    return type(hook).__name__, len(hook), int(layer.weight_mask.sum())


@pytest.mark.parametrize("what", [hooks_as_given, base_last, hook_of_two_kinds, pruned_twice])
def test_modules(what: Callable[[Any], Any]) -> None:
    same_words(what)


def test_loading_leaves_nothing_for_the_collector() -> None:
    net = tt.nn.Sequential(tt.nn.Linear(2, 2), tt.nn.LSTM(2, 2))
    state = net.state_dict()
    gc.collect()
    net.load_state_dict(state)
    assert gc.collect() == 0


@pytest.mark.parametrize("passed", [False, True])
def test_optimizers_that_divide_by_the_scale(passed: bool) -> None:
    def steps(m: Any) -> Any:
        seen: list[Any] = []

        class Plain(m.optim.Optimizer):  # type: ignore[misc]
            _step_supports_amp_scaling = True

            def step(self, closure: Any = None) -> None:
                seen.append((self.grad_scale.item(), self.found_inf.item()))

        class Told(Plain):
            def step(self, closure: Any = None, *, grad_scaler: Any = None) -> None:
                seen.append((type(grad_scaler).__name__, hasattr(self, "grad_scale")))

        layer = m.nn.Linear(2, 1)
        optimizer = (Told if passed else Plain)(layer.parameters(), {})
        scaler = m.amp.GradScaler("cpu", init_scale=2.0)
        scaler.scale(layer(m.ones(1, 2)).sum()).backward()
        scaler.step(optimizer)
        if not passed:
            scaler.update()
        return (
            seen,
            scaler.get_scale(),
            layer.weight.grad.tolist(),
            vars(optimizer).get("found_inf"),
        )

    assert warned(steps, tt) == warned(steps, torch)


# -- what is taken now -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")
def test_prefixes_of_state_dicts() -> None:
    found = []
    for m in (tt, torch):
        net = m.nn.Sequential(m.nn.Sequential(m.nn.BatchNorm1d(2)))
        state = net.state_dict()
        m.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "0.")
        found.append((list(state), dict(state._metadata)))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")
def test_tensors_of_files(tmp_path: Path) -> None:
    found = []
    for m in (tt, torch):
        file = str(tmp_path / m.__name__)
        a = m.from_file(file, True, 4, dtype=m.int16).fill_(3)
        b = m.from_file(file, shared=True, size=2, dtype=m.int16)
        b[0] = 5
        c = m.from_file(file, size=4, dtype=m.int16)
        c[1] = 7
        found.append((a.tolist(), b.tolist(), c.tolist(), Path(file).read_bytes()))
    assert found[0] == found[1]


MAPPED = {
    "fewer bytes": lambda m, f: m.from_file(f, size=5).numel(),
    "far fewer": lambda m, f: m.from_file(f, size=10**12).numel(),
    "negative": lambda m, f: m.from_file(f, size=-1).numel(),
    "negative, shared": lambda m, f: m.from_file(f, shared=True, size=-1).numel(),
    "not there": lambda m, f: m.from_file(f + "0", size=1).numel(),
    "a folder": lambda m, f: m.from_file("/", shared=True, size=1).numel(),
    "nothing": lambda m, f: m.from_file(f).numel(),
    "nothing of nothing": lambda m, f: m.from_file(f + "0", shared=True).numel(),
    "bytes": lambda m, f: m.UntypedStorage.from_file(f, False, 17).nbytes(),
    "all bytes": lambda m, f: m.UntypedStorage.from_file(f).nbytes(),
    "typed": lambda m, f: m.FloatStorage.from_file(f, False, 5).size(),
    "longer, shared": lambda m, f: m.from_file(f, shared=True, size=5).tolist()[-1],
}


@pytest.mark.parametrize("ask", [("/", False, 1), ("/dev/null", True, 1)])
def test_what_is_no_file_is_not_mapped(ask: tuple[Any, ...]) -> None:
    for m in (tt, torch):
        with pytest.raises(RuntimeError, match=f"file <{ask[0]}>"):
            m.from_file(*ask)


def test_the_count_of_batches_is_one_number() -> None:
    for m in (tt, torch):
        state = m.nn.BatchNorm1d(2).state_dict()
        for shape in ((), (1,), (0,), (3,), (1, 1)):
            state["num_batches_tracked"] = m.ones(shape, dtype=m.int64)
            norm = m.nn.BatchNorm1d(2)
            if len(shape) < 2 and state["num_batches_tracked"].numel() == 1:
                norm.load_state_dict(state)
                assert norm.num_batches_tracked.shape == () and int(norm.num_batches_tracked) == 1
            else:
                with pytest.raises(RuntimeError, match="size mismatch for num_batches_tracked"):
                    norm.load_state_dict(state)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("name", MAPPED)
def test_files_that_are_not_what_was_asked_for(name: str, tmp_path: Path) -> None:
    """No memory is taken for bytes that a file lacks, and no file changes that is only read."""
    found = []
    for m in (tt, torch):
        file = tmp_path / "numbers"
        file.write_bytes(bytes(16))
        said = attempt(MAPPED[name], m, str(file))
        found.append((repr(said), len(file.read_bytes())))
    assert found[0] == found[1]
