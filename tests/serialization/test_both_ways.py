"""What PyTorch and toytorch write for each other: files of many kinds of values, and plain pickles."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import torch, tt

pytestmark = pytest.mark.filterwarnings("ignore")
DISTRIBUTIONS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "Bernoulli": lambda m: (0.5,),
    "Beta": lambda m: (1.0, 2.0),
    "Binomial": lambda m: (3, 0.5),
    "Categorical": lambda m: (m.ones(3),),
    "Dirichlet": lambda m: (m.ones(3),),
    "FisherSnedecor": lambda m: (1.0, 2.0),
    "HalfNormal": lambda m: (1.0,),
    "Kumaraswamy": lambda m: (1.0, 1.0),
    "LKJCholesky": lambda m: (2, 1.0),
    "LogNormal": lambda m: (0.0, 1.0),
    "LowRankMultivariateNormal": lambda m: (m.zeros(2), m.ones(2, 1), m.ones(2)),
    "MultivariateNormal": lambda m: (m.zeros(2), m.eye(2)),
    "Normal": lambda m: (m.zeros(2), m.ones(2)),
    "OneHotCategorical": lambda m: (m.ones(3),),
    "RelaxedBernoulli": lambda m: (m.tensor(1.0), m.tensor([0.3])),
    "StudentT": lambda m: (3.0,),
    "Uniform": lambda m: (0.0, 1.0),
    "VonMises": lambda m: (0.0, 1.0),
    "Weibull": lambda m: (1.0, 2.0),
}


def draws(d: Any, m: Any) -> Any:
    m.manual_seed(0)
    return d, d.sample((2,))


def trained(m: Any, name: str) -> Any:
    m.manual_seed(0)
    net = m.nn.Linear(2, 3)
    optimizer = getattr(m.optim, name)(net.parameters(), lr=0.1)
    for _ in range(2):
        net(m.ones(1, 2)).square().sum().backward()
        optimizer.step()
    return optimizer


VALUES: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    **{  # how to make a value of a package, and what is asked of what was read
        name: (lambda m, n=name, a=args: getattr(m.distributions, n)(*a(m)), draws)
        for name, args in DISTRIBUTIONS.items()
    },
    "transformed": (
        lambda m: m.distributions.TransformedDistribution(
            m.distributions.Normal(0.0, 1.0),
            [m.distributions.ExpTransform(), m.distributions.AffineTransform(1.0, 2.0)],
        ),
        draws,
    ),
    "mixture": (
        lambda m: m.distributions.MixtureSameFamily(
            m.distributions.Categorical(m.ones(2)), m.distributions.Normal(m.zeros(2), m.ones(2))
        ),
        draws,
    ),
    "constraints": (
        lambda m: [m.distributions.constraints.positive, m.distributions.constraints.simplex],
        lambda v, m: [str(v), v[0].check(m.tensor([1.0, -1.0]))],
    ),
    **{
        name: (lambda m, n=name: trained(m, n), lambda v, m: (v, str(v.state_dict())))
        for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam")
    },
    "generator": (
        lambda m: m.Generator().manual_seed(5),
        lambda v, m: (v.initial_seed(), m.rand(2, generator=v)),
    ),
    "packed": (lambda m: m.nn.utils.rnn.pack_sequence([m.ones(3), m.ones(2)]), lambda v, m: v),
    "largest": (lambda m: m.tensor([[1.0, 2.0]]).max(1), lambda v, m: (v, v.indices)),
    "lazy": (lambda m: m.nn.LazyLinear(3).weight, lambda v, m: type(v).__name__),
    "buffer": (lambda m: m.nn.Buffer(m.ones(2)), lambda v, m: v.tolist()),
    "averaged": (
        lambda m: m.optim.swa_utils.AveragedModel(m.nn.Linear(1, 1)),
        lambda v, m: v,
    ),
    "data": (
        lambda m: m.utils.data.Subset(m.utils.data.TensorDataset(m.arange(3)), [1]),
        lambda v, m: v[0],
    ),
    "sampler": (lambda m: m.utils.data.RandomSampler([1, 2]), lambda v, m: len(v)),
    "layouts": (lambda m: [m.strided, m.jagged, m.sparse_csr], lambda v, m: v),
    "starts": (
        lambda m: [m.nn.init.xavier_uniform_, m.nn.init.zeros_],
        lambda v, m: (m.manual_seed(0), v[0](m.empty(2, 2)))[1],
    ),
    "functions": (
        lambda m: [m.matmul, m.einsum, m.norm, m.linalg.norm, m.fft.fft, m.special.erf],
        lambda v, m: [
            v[0](m.eye(2), m.ones(2)), v[3](m.ones(4)), v[4](m.ones(2)), v[5](m.ones(1)),
        ],
    ),
}  # fmt: skip


PLAIN = [frozenset([(1, "a")]), {"b": bytearray(b"ab")}, {1, 2}, b"abc", "é", 1 << 70]


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("zipped", [True, False])
def test_plain_values_of_every_protocol_of_pickle(protocol: int, zipped: bool) -> None:
    file = io.BytesIO()
    value = [*PLAIN, torch.arange(3.0)]
    torch.save(value, file, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    assert repr(tt.load(file, weights_only=False)) == repr(value)


def test_a_storage_by_itself_is_one_of_numbers() -> None:
    for source in (tt, torch):
        file = io.BytesIO()
        source.save([source.arange(3.0).untyped_storage(), source.arange(3.0).storage()], file)
        read = [m.load(io.BytesIO(file.getvalue())) for m in (tt, torch)]
        assert repr(read[0]) == repr(read[1])


def said(answer: Any) -> str:
    return re.sub(r"0x[0-9a-f]+", "", repr(answer).replace("toytorch", "torch"))


@pytest.mark.parametrize(("source", "target"), [(tt, torch), (torch, tt), (tt, tt)])
@pytest.mark.parametrize("name", VALUES)
def test_files(name: str, source: Any, target: Any) -> None:
    make, ask = VALUES[name]
    for zipped in (True, False):
        if name == "generator" and not zipped:
            continue  # PyTorch reads memory that is not there yet
        file = io.BytesIO()
        source.save(make(source), file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        got = ask(target.load(file, weights_only=False), target)
        assert said(got) == said(ask(make(torch), torch))


BYTES = [
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e8m0fnu",
    "complex32",
]


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize(("source", "target"), [(tt, torch), (torch, tt), (tt, tt)])
def test_types_without_storages(kind: str, source: Any, target: Any) -> None:
    """Tensors of types of which PyTorch has no storages, two of one memory."""
    package = pytest.importorskip("ml_dtypes", reason="the package with most of these types")
    if not hasattr(package, kind) and kind not in BYTES[:3]:
        pytest.skip(f"this version of ml_dtypes has no {kind}")
    whole = source.tensor([1.0, 2.0, 4.0]).to(getattr(source, kind))
    source.save((whole[1:], whole), file := io.BytesIO())
    file.seek(0)
    part, again = target.load(file)
    assert part.dtype is getattr(target, kind) and part.tolist() == [2, 4]
    assert part.storage_offset() == 1 and part.untyped_storage() == again.untyped_storage()


PROGRAM = """
import pickle, sys, torch, warnings
warnings.simplefilter("ignore")
torch.manual_seed(0)
if sys.argv[1] == "write":
    x = torch.arange(6.0).reshape(2, 3)
    learned = torch.nn.Parameter(torch.ones(2))
    learned.note = "kept"
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    optimizer = torch.optim.Adam(net.parameters())
    values = [x.t(), x[1:], x.requires_grad_(), learned, net, net.state_dict(), optimizer,
              torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr(), torch.ones(2, device="meta"),
              torch.ones(2).bfloat16(), torch.ones(2).half(), torch.float16,
              torch.tensor([1j]).conj(), torch.Generator().manual_seed(3), torch.ones(2, 2).max(0),
              torch.Size([2]), torch.device("cpu"), torch.distributions.Normal(0.0, 1.0)]
    pickle.dump(values, open(sys.argv[2], "wb"), int(sys.argv[3]))
else:
    values = pickle.load(open(sys.argv[2], "rb"))
    print(values[:4], values[3].note, values[4], values[5], values[6], values[7:14])
    print(torch.rand(2, generator=values[14]), *values[15:], values[18].sample())
    print(values[4][0](torch.ones(1, 1, 3, 3)), [(v.stride(), v.is_leaf) for v in values[:4]])
"""


@pytest.mark.parametrize("protocol", [2, 5])
def test_pickles(protocol: int, tmp_path: Path) -> None:
    """A program for PyTorch writes and reads the same pickles on both packages."""
    (tmp_path / "program.py").write_text(PROGRAM)
    told = []
    packages: list[list[str]] = [[], ["-m", "toytorch"]]
    for write in packages:
        for read in packages:
            for how, what in ((write, "write"), (read, "read")):
                done = subprocess.run(
                    [sys.executable, *how, tmp_path / "program.py", what, tmp_path / "data",
                     str(protocol)],
                    capture_output=True, text=True,
                )  # fmt: skip
                assert not done.returncode, done.stderr
            told.append(said(done.stdout))
    assert len(set(told)) == 1
