"""Names that libraries import from PyTorch's files: they are there, and do what PyTorch's do."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import SELFTEST, attempt, torch, tt

if SELFTEST:
    pytest.skip("compares toytorch with PyTorch", allow_module_level=True)

from toytorch.alias import is_there
from toytorch.compat import _further, _pickled, _state_dicts
from toytorch.compat._absent import ABSENT, ANSWERS, attribute, module_of
from toytorch.core.public_modules import PLACES, module_of_moved

FURTHER = [(module, name) for module in _further.FURTHER for name in _further.names_of(module)]
NAMES = [(module, name) for module, (_, names) in ABSENT.items() for name in names.split()]


@pytest.mark.parametrize(("module", "name"), FURTHER)
def test_pytorch_has_it_too(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own files
@pytest.mark.parametrize(("module", "name"), NAMES)
def test_names_alone_are_pytorchs(module: str, name: str) -> None:
    # PyTorch can be built without this part, and then it lacks some of these names.
    if not module.startswith("torch.distributed") or torch.distributed.is_available():
        assert hasattr(importlib.import_module(module), name)
    assert attribute(module, name).__module__ == module


def test_modules_of_the_table_are_pytorchs() -> None:
    for module in {*ABSENT, *ANSWERS}:
        if not module.startswith("torch.distributed"):
            importlib.import_module(module)


def test_modules_of_moved_names() -> None:
    """`from torch.optim.adamw import AdamW` finds what stands in another file here."""
    for place in sorted(p for p in PLACES if not is_there(p)):
        theirs, ours = importlib.import_module(place), module_of_moved(place)
        assert all(hasattr(theirs, n) and hasattr(ours, n) for n in ours.__all__), place


def test_classes_to_inherit_from() -> None:
    """A library's class below one that is not there can be made; an object of it says what is missing."""
    place = "torch._subclasses"
    kind = attribute(f"{place}.functional_tensor", "FunctionalTensorMode")
    with pytest.raises(NotImplementedError, match=r"torch\.jit\.trace"):
        type("Own", (kind,), {})()
    assert module_of(place).functional_tensor is module_of(f"{place}.functional_tensor")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module_of(place).nothing


def test_required() -> None:
    found = importlib.import_module("torch.optim.optimizer").required
    assert repr(_further.FURTHER["torch.optim.optimizer"]["required"]) == repr(found)


@pytest.mark.parametrize("differentiable", [True, False])
def test_steps_record_if_asked_to(differentiable: bool) -> None:
    def run(m: Any, wrap: Any) -> bool:
        class Own:
            def __init__(self) -> None:
                self.defaults = {"differentiable": differentiable}

            @wrap
            def step(self) -> bool:
                return bool(m.is_grad_enabled())

        with m.no_grad():
            return bool(Own().step())

    theirs = importlib.import_module("torch.optim.optimizer")._use_grad_for_differentiable
    assert run(tt, _further._use_grad_for_differentiable) == run(torch, theirs) == differentiable


def test_views_as_pairs() -> None:
    def run(m: Any, view: Any) -> list[tuple[int, ...]]:
        params, grads = [m.ones(2, dtype=m.complex64), m.ones(3)], [m.ones(2) * 1j, m.ones(3)]
        view(params, grads)
        return [tuple(t.shape) for t in (*params, *grads)]

    theirs = importlib.import_module("torch.optim.optimizer")._view_as_real
    assert run(tt, _further._view_as_real) == run(torch, theirs)


SPARSE = """
FloatTensor(torch.tensor([[0, 1], [1, 0]]), torch.ones(2), (2, 2))
FloatTensor(torch.tensor([[0, 1], [1, 0]]), torch.ones(2))
DoubleTensor(2, 3)
LongTensor(torch.Size([2, 3]))
FloatTensor()
"""


@pytest.mark.parametrize("text", SPARSE.strip().splitlines())
@pytest.mark.filterwarnings("ignore")
def test_older_sparse_constructors(text: str) -> None:
    kinds = _further.FURTHER["torch.sparse"]
    got = eval(text, {"torch": tt, **kinds})
    want = eval(text, {"torch": torch, **vars(torch.sparse)})
    assert repr(got).replace("toytorch", "torch") == repr(want)
    for name, kind in kinds.items():
        assert isinstance(got, kind) == isinstance(want, getattr(torch.sparse, name)), name
    assert not isinstance(got.to_dense(), kinds["FloatTensor"])


@pytest.mark.parametrize("value", [1, "cuda:1", "cpu", "cuda"])
@pytest.mark.parametrize("allow_cpu", [True, False])
def test_numbers_of_devices(value: Any, allow_cpu: bool) -> None:
    want, refused = attempt(torch._utils._get_device_index, value, allow_cpu=allow_cpu)
    got, failed = attempt(_further._get_device_index, value, allow_cpu=allow_cpu)
    assert (got, str(failed)) == (want, str(refused))


def plus_or_minus(x):  # no hints: one would name one package's tensors
    return x + 1 if bool(x.sum() > 0) else x - 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripted_where_a_trace_runs() -> None:
    """The branch that the example does not take is in the graph all the same."""

    def run(m: Any, wrap: Any) -> list[Any]:
        pick = wrap(plus_or_minus)
        traced = m.jit.trace(lambda x: pick(x) * 2, (m.ones(2),))
        return [traced(v * m.ones(2)).tolist() for v in (1, -1)] + [pick(m.ones(2)).tolist()]

    assert run(tt, _further.script_if_tracing) == run(torch, torch.jit.script_if_tracing)


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_parts_of_files() -> None:
    def run(m: Any, tensor: Any, parameter: Any) -> list[Any]:
        made = tensor(m.arange(6.0).storage(), 1, (2, 2), (2, 1), True, {})
        p = parameter(m.ones(2), False, {})
        return [made.tolist(), made.requires_grad, type(p).__name__, p.requires_grad]

    theirs = torch._utils
    assert run(tt, _pickled._rebuild_tensor_v2, _pickled._rebuild_parameter) == run(
        torch, theirs._rebuild_tensor_v2, theirs._rebuild_parameter
    )


STREAMS = """
torch.Stream()
torch.Stream('cpu').query()
torch.Stream() == torch.Stream()
torch.Stream().record_event()
torch.Stream().wait_event(torch.Event())
torch.Stream().device, torch.Stream().stream_id, torch.Stream().device_index
torch.Event()
torch.Event().query()
torch.Event().record()
torch.Event().elapsed_time(torch.Event())
torch.Stream('foo')
torch.device('mps'), torch.device('xpu:1'), torch.device('hpu').type
torch.device('gpu')
torch.ones(2, device='xpu')
torch.get_autocast_dtype('mps'), torch.get_autocast_dtype('hpu')
torch.amp.is_autocast_available('xpu')
torch.amp.custom_fwd(device_type='mps') is not None
torch.backends.cpu.get_cpu_capability() in ('DEFAULT', 'AVX2', 'AVX512')
torch._C._is_torch_function_mode_enabled()
torch._C._are_functorch_transforms_active()
torch.vmap(lambda x: x * torch._C._are_functorch_transforms_active())(torch.ones(2))
torch._C._get_default_device()
torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
torch._C._disabled_torch_function_impl(torch.sin, (), (torch.zeros(1),), {})
"""


@pytest.mark.parametrize("text", STREAMS.strip().splitlines())
def test_same_answers(text: str) -> None:
    def ask(T: Any) -> str:
        return repr(eval(text, {"torch": T}))

    (want, refused), (got, failed) = attempt(ask, torch), attempt(ask, tt)
    assert (type(failed), str(failed).replace("toytorch", "torch")) == (type(refused), str(refused))
    if "DispatchKeySet" not in text and refused is None:
        assert str(got).replace("toytorch", "torch") == want


def test_no_casting_within_a_guard() -> None:
    def run(m: Any) -> list[str]:
        key = m._C.DispatchKeySet(m._C.DispatchKey.AutocastCPU)
        a = m.ones(2, 2)
        with m.autocast("cpu"):
            with m._C._ExcludeDispatchKeyGuard(key):
                inside = str((a @ a).dtype)
            return [inside, str((a @ a).dtype), str(m.is_autocast_enabled("cpu"))]

    assert run(tt) == run(torch)


ATTRIBUTES = """
import functools, sys, torch
for name, module in list(sys.modules.items()):
    first, *parts = name.split(".")
    if first == "torch" and functools.reduce(lambda m, p: getattr(m, p, 0), parts, torch) is module:
        print(name)
"""
MODULES = """
import sys
import toytorch.alias
toytorch.alias.install()
import torch
for name in sys.argv[1:]:
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    assert found.__name__ == "torch." + name, found
    assert found is sys.modules["torch." + name], name
try:
    torch.optim.adamw  # which PyTorch deletes
except AttributeError as error:
    assert str(error) == "module 'torch.optim' has no attribute 'adamw'", error
"""


def test_modules_are_attributes_before_they_are_imported() -> None:
    """PyTorch has imported them by itself; nobody has written `import torch.utils.weak`."""
    asked = [sys.executable, "-c", ATTRIBUTES]
    theirs = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    compat = {
        f"torch.{f.parent.name}.{f.stem}" for f in Path(tt.__file__).parent.glob("compat/utils/*")
    }
    places = [n for n in theirs if n in PLACES or is_there(n) or n in compat]
    assert {"torch.amp.autocast_mode", "torch.utils._python_dispatch"} <= {*places}
    names = [n.removeprefix("torch.") for n in places if n.count(".") and "._" not in n[:7]]
    subprocess.run([sys.executable, "-c", MODULES, *names], check=True)


IMPORTED = """
torch.distributions.multivariate_normal Distribution
torch.distributions.normal broadcast_all
torch.distributions.bernoulli Number nan lazy_property probs_to_logits
torch.distributions.half_cauchy inf TransformedDistribution AbsTransform
torch.optim.lr_scheduler Optimizer Any Tensor
torch.optim.sparse_adam Optimizer ParamsT SparseAdam
torch.nn.modules.module OrderedDict Optional Union Parameter device
torch.nn.modules.activation xavier_uniform_ constant_
torch.nn.modules.transformer Tensor Module ModuleList
torch.utils.data.dataloader Dataset Sampler Generic
torch.utils.data.distributed Sampler TypeVar
"""


def test_names_that_files_import(tmp_path: Path) -> None:
    lines = [line.split() for line in IMPORTED.strip().splitlines()]
    program = "".join(f"from {m} import {', '.join(names)}\n" for m, *names in lines)
    program += "from torch.nn.modules import conv\nprint(hasattr(conv, 'nonsense'))\n"
    path = tmp_path / "program.py"
    path.write_text(program)
    for runner in ([], ["-m", "toytorch"]):
        made = subprocess.run([sys.executable, *runner, str(path)], capture_output=True, text=True)
        assert (made.stdout, made.returncode) == ("False\n", 0), made.stderr


def test_functions_shown_beside_others_are_not_asked() -> None:
    """Once a subclass has appeared, all functions ask it; those who do the asking must not."""
    program = """
import toytorch.alias
toytorch.alias.install()
import torch
from torch.nn.functional import handle_torch_function, has_torch_function
class Own(torch.Tensor): pass
x = torch.ones(2).as_subclass(Own)
print(type(torch.relu(x)).__name__, has_torch_function((x,)), x.detach().sum().item())
"""
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert found.stdout == "Own True 2.0\n"


def test_the_finder_alone_gives_the_name() -> None:
    """Tools put it before the others, and import nothing else first."""
    program = """
import sys
from toytorch.alias import ALIAS
sys.meta_path.insert(0, ALIAS)
import torch
from torch.optim.optimizer import required
print(torch.__name__, required)
"""
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], capture_output=True,
        text=True, timeout=60, check=True,
    )  # fmt: skip
    assert found.stdout == "torch <required parameter>\n"


def test_places_of_entries() -> None:
    rows, columns = [0, 0, 2, 3], [1, 2, 0, 1]

    def found(root: Any, space: Any) -> Any:
        packed = space._convert_indices_from_coo_to_csr
        spread = space._convert_indices_from_csr_to_coo
        ends = packed(root.tensor(rows), 4)
        made = [
            ends,
            packed(root.tensor(rows), 6, out_int32=True),
            packed(root.tensor(rows)[:0], 2),
        ]
        made += [
            spread(ends, root.tensor(columns), transpose=t, out_int32=t) for t in (False, True)
        ]
        made.append(spread(root.stack([ends] * 2), root.tensor([columns] * 2)))
        refused = [attempt(lambda x=x: packed(x, 4))[1] for x in (ends[None], ends.double())]
        return [(t.tolist(), str(t.dtype).split(".")[1]) for t in made], list(map(repr, refused))

    assert found(tt, _further) == found(torch, torch)


@pytest.mark.filterwarnings("ignore")  # PyTorch's, of states of some modules
@pytest.mark.parametrize("options", [
    {}, {"strict": False}, {"full_state_dict": True}, {"full_state_dict": True, "strict": False},
    {"ignore_frozen_params": True}, {"cpu_offload": True}, {"broadcast_from_rank0": True},
    {"keep_submodule_prefixes": False}, {"full_state_dict": True, "broadcast_from_rank0": True},
])  # fmt: skip
def test_states_of_models_in_one_process(options: dict[str, Any]) -> None:
    def found(root: Any, space: Any) -> Any:
        wanted, said = space.StateDictOptions(**options), []
        net = root.nn.Sequential(root.nn.Linear(2, 1), root.nn.BatchNorm1d(1))
        net[0].bias.requires_grad_(False)
        for parameter in net.parameters():
            parameter.data.fill_(2)
        whole = {n: root.ones_like(v) for n, v in net.state_dict().items()}
        for given in (whole, {"0.weight": whole["0.weight"]}, {}, {**whole, "other": root.ones(1)}):
            said.append(
                repr(attempt(lambda g=given: space.set_model_state_dict(net, g, options=wanted)))
            )
        for some in (None, {net[0]}):
            state = attempt(
                lambda s=some: space.get_model_state_dict(net, submodules=s, options=wanted)
            )
            said.append(
                str(state[0] and {n: v.tolist() for n, v in state[0].items()}) + repr(state[1])
            )
        return said

    theirs = importlib.import_module("torch.distributed.checkpoint.state_dict")
    assert found(tt, _state_dicts) == found(torch, theirs)


def test_types_of_few_bits() -> None:
    for name in (f"{sign}int{n}" for n in range(1, 8) for sign in ("", "u")):
        ours, theirs = getattr(tt, name), getattr(torch, name)
        assert (str(ours), ours.itemsize, ours.is_signed) == (
            str(theirs), theirs.itemsize, theirs.is_signed)  # fmt: skip
