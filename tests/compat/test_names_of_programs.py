"""Names that public programs import, beside those that they call."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
import warnings
from typing import Any

import pytest

from tests.oracle import SELFTEST, names, torch, tt


def test_reductions_of_process_groups_have_names() -> None:
    def said(t: Any) -> Any:
        kinds = importlib.import_module(f"{t.__name__}.distributed").ReduceOp
        named = [n for n in dir(torch.distributed.ReduceOp) if n.isupper()]
        return [str(getattr(kinds, n)) for n in named]

    assert said(tt) == said(torch)


def test_gradients_are_laid_end_to_end_and_taken_apart() -> None:
    def said(t: Any) -> Any:
        tools = importlib.import_module(f"{t.__name__}._utils")
        parts = [t.arange(6.0).view(2, 3).t(), t.ones(()), t.zeros(0, 2), t.full((3,), 7.0)]
        flat = tools._flatten_dense_tensors(parts)
        made = tools._unflatten_dense_tensors(flat, parts)
        made[3].add_(1)  # they are views
        return flat.tolist(), [(type(made).__name__, p.tolist(), p.stride()) for p in made]

    assert said(tt) == said(torch)


@pytest.mark.parametrize(
    "name",
    names(
        "cuda.amp.grad_scaler.GradScaler cuda.amp.autocast_mode.autocast "
        "cuda.amp.autocast_mode.custom_fwd cuda.amp.autocast_mode.custom_bwd "
        "cpu.amp.grad_scaler.GradScaler cpu.amp.autocast_mode.autocast "
        "amp.autocast_mode.custom_fwd amp.autocast_mode.is_autocast_available"
    ),
)
def test_modules_of_autocast_are_where_pytorch_has_them(name: str) -> None:
    module, _, word = name.rpartition(".")
    assert hasattr(importlib.import_module(f"torch.{module}"), word)
    package, _, file = module.rpartition(".")
    run_under_its_name(
        f"from torch.{module} import {word}\n"
        f"from torch.{package} import {file} as m\n"
        f"assert m.{word} is {word}"
    )


def test_settings_of_inductor_may_be_set() -> None:
    run_under_its_name(
        "import torch._inductor.config as config\n"
        "config.coordinate_descent_tuning = True\n"
        "import torch\nassert torch._inductor.config is config"
    )


def run_under_its_name(script: str) -> None:
    """A script in which `torch` is the package under test, in a process of its own."""
    start = "" if SELFTEST else "from toytorch.alias import install\ninstall()\n"
    done = subprocess.run([sys.executable, "-c", start + script], capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_functions_may_be_allowed_in_files() -> None:
    for name in ("relu", "gelu", "silu"):
        for t in (torch, tt):
            held = getattr(t.nn.functional, name)
            layer = t.nn.TransformerEncoderLayer(4, 2, 8, activation=held)
            file = io.BytesIO()
            t.save(layer, file)
            file.seek(0)
            kinds = {type(m) for m in layer.modules()}
            with t.serialization.safe_globals([held, *kinds]):
                assert t.load(file).activation is held


def test_numbers_of_tensors_with_a_history_warn_where_it_is_kept() -> None:
    def said(t: Any) -> list[str]:
        x = t.ones((), requires_grad=True) * 2
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with t.no_grad():
                float(x), int(x)
        return [str(w.message) for w in found]

    assert said(tt) == said(torch) == []


def test_the_older_switch_of_attention_warns() -> None:
    def said(t: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with t.backends.cuda.sdp_kernel(enable_flash=False):
                flash = t.backends.cuda.flash_sdp_enabled()
            with t.nn.attention.sdpa_kernel(t.nn.attention.SDPBackend.MATH):
                pass
        return [str(w.message) for w in found] + [str(flash)]

    assert said(tt) == said(torch)


def test_lazy_tensors_share_a_class() -> None:
    def said(t: Any) -> list[bool]:
        parameter = importlib.import_module(f"{t.__name__}.nn.parameter")
        layer = t.nn.LazyBatchNorm1d()
        kinds = [*layer.parameters(), *layer.buffers(), t.nn.Parameter(t.ones(1))]
        return [isinstance(v, parameter.UninitializedTensorMixin) for v in kinds]

    assert said(tt) == said(torch)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_list_the_names_of_their_weights(kind: str) -> None:
    def said(t: Any) -> list[str]:
        names_of = getattr(t.nn, kind)(2, 3, num_layers=2, bidirectional=True)._flat_weights_names
        return list(names_of)

    assert said(tt) == said(torch)


def test_switches_of_libraries_that_do_not_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are there, can be set, and are put back; a call that waits for a device does not run."""
    # PyTorch's own testing tools, which another file may have imported, forbid it. The flag is a
    # global of the module's functions; ``torch.backends`` itself is an object that stands before it.
    flags = torch.backends.flags_frozen.__globals__
    monkeypatch.setitem(flags, "__allow_nonbracketed_mutation_flag", True)

    def said(t: Any) -> Any:
        found = []
        for library, switch in (
            ("mkldnn", "enabled"),
            ("cudnn", "enabled"),
            ("mkldnn", "deterministic"),
        ):
            module = importlib.import_module(f"{t.__name__}.backends.{library}")
            before = getattr(module, switch)
            setattr(module, switch, not before)
            found.append((before, getattr(module, switch)))
            setattr(module, switch, before)
        for library in ("mkl", "mkldnn"):
            module = importlib.import_module(f"{t.__name__}.backends.{library}")
            with module.verbose(module.VERBOSE_OFF):
                found.append(module.VERBOSE_ON)
        ran: list[int] = []
        return found, t.cuda._lazy_call(lambda: ran.append(1)), ran

    assert said(tt) == said(torch)


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_classes_of_storages_by_their_names() -> None:
    def said(t: Any) -> Any:
        tools = importlib.import_module(f"{t.__name__}.serialization")
        kinds = t.FloatStorage, type(t.HalfStorage(2)), type(t.ones(2).untyped_storage())
        return [tools.normalize_storage_type(k) is getattr(t, k.__name__) for k in kinds]

    assert said(tt) == said(torch) == [True] * 3
