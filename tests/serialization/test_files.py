"""`save` and `load`: the same values in PyTorch and here, shared memory, places, whole files."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import attempt, names, torch
from toytorch.serialization import PicklingError, UnpicklingError, load, safe_globals, save

tt: Any = pytest.importorskip("toytorch")
KINDS = names(
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
)


def through(value: Any, write: Any = save, read: Any = load, **how: Any) -> Any:
    """A value after a journey through a file."""
    file = io.BytesIO()
    write(value, file)
    file.seek(0)
    return read(file, **how)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["here", "to torch", "from torch"])
def test_every_dtype(kind: str, way: str) -> None:
    source = torch if way == "from torch" else tt
    x = source.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(source, kind))
    got = through(x, source.save, torch.load if way == "to torch" else load)
    assert str(got.dtype) == f"torch.{kind}"
    assert got.tolist() == x.tolist()


def plain(m: Any) -> dict[str, Any]:
    """One of everything that a file holds."""
    return {
        "none": None,
        "true": True,
        "numbers": [
            0,
            255,
            256,
            -1,
            1 << 31,
            -(1 << 31),
            1 << 80,
            -(1 << 90),
            1.5,
            float("inf"),
            2 - 1j,
        ],
        "text": "ä\n\U0001f600\ud800",
        "bytes": b"a\xff",
        "array": bytearray(b"x"),
        "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "set": {1, "a"},
        "ordered": OrderedDict(b=1, a=2),
        "count": Counter("aab"),
        7: [[], {}],
        (1, "k"): "tuple",
        "size": m.Size([2, 3]),
        "dtype": m.bfloat16,
        "device": m.device("cuda", 1),
        "cpu": m.device("cpu"),
        "many": list(range(600)),
        "words": [str(i) for i in range(600)],
    }


@pytest.mark.parametrize(("source", "target"), [(tt, tt), (tt, torch), (torch, tt)])
def test_plain_values(source: Any, target: Any) -> None:
    got = through(plain(source), source.save, target.load)
    want = plain(target)
    assert got == want
    assert [type(v) for v in got.values()] == [type(v) for v in want.values()]


def test_protocol_4_of_pytorch() -> None:
    file = io.BytesIO()
    torch.save({"x": torch.ones(2), "s": "text", "b": b"ab", "set": {1}}, file, pickle_protocol=4)
    file.seek(0)
    got = load(file)
    assert (got["x"].tolist(), got["s"], got["b"], got["set"]) == ([1, 1], "text", b"ab", {1})


@pytest.mark.parametrize(("source", "target"), [(tt, tt), (tt, torch), (torch, tt)])
@pytest.mark.parametrize("mmap", [None, True])
def test_views_share_and_keep_their_layout(
    source: Any, target: Any, mmap: Any, tmp_path: Path
) -> None:
    x = source.arange(24.0)
    views = [x, x[2:9:3], x.reshape(4, 6).t(), x[:1].expand(5, 1), x[3], source.ones(0, 2)]
    source.save(views, tmp_path / "x.pt")
    got = target.load(tmp_path / "x.pt", mmap=mmap)
    for a, b in zip(views, got):
        assert (a.tolist(), a.stride(), a.storage_offset()) == (
            b.tolist(),
            b.stride(),
            b.storage_offset(),
        )
    got[0][2] = 99
    assert got[1][0].item() == 99 and got[2][2, 0].item() == 99
    assert target.load(tmp_path / "x.pt")[0][2].item() == 2  # mapped memory is copied on write


def test_one_tensor_is_one_object() -> None:
    x = tt.ones(2)
    a, (b, c) = through([x, [x, x[:1]]])
    assert a is b and c is not a
    loop: list[Any] = [1]
    loop.append(loop)
    got = through(loop)
    assert got[1] is got


def test_gradients_and_attributes() -> None:
    x = tt.ones(2, requires_grad=True)
    frozen = tt.nn.Parameter(tt.ones(1), requires_grad=False)
    named = tt.nn.Parameter(tt.ones(3))
    named.note, x.tag = "first", 5
    for read in (load, torch.load):
        a, b, c, d = through([x, frozen, named, (x * 2)], read=read)
        assert [t.requires_grad for t in (a, b, c, d)] == [True, False, True, True]
        assert (type(b).__name__, type(c).__name__) == ("Parameter", "Parameter")
        assert (c.note, a.tag) == ("first", 5) and a.is_leaf and d.is_leaf


@pytest.mark.parametrize(("source", "target"), [(tt, tt), (tt, torch), (torch, tt)])
def test_training_state_goes_on(source: Any, target: Any) -> None:
    def make(m: Any) -> Any:
        net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.BatchNorm1d(4), m.nn.Linear(4, 1))
        return net, m.optim.Adam(net.parameters(), lr=0.1)

    net, optimizer = make(source)
    net(source.ones(5, 3) * source.arange(5.0)[:, None]).sum().backward()
    optimizer.step()
    got = through(
        {"net": net.state_dict(), "optimizer": optimizer.state_dict()}, source.save, target.load
    )
    other, optimizer_2 = make(target)
    other.load_state_dict(got["net"])
    optimizer_2.load_state_dict(got["optimizer"])
    assert got["net"]._metadata.keys() == net.state_dict()._metadata.keys()
    for a, b in zip(net.parameters(), other.parameters()):
        assert a.tolist() == b.tolist() and b.requires_grad
    assert optimizer_2.state_dict()["state"][0]["step"].item() == 1


@pytest.mark.parametrize(("source", "target"), [(tt, tt), (tt, torch), (torch, tt)])
def test_sparse(source: Any, target: Any) -> None:
    got = through(source.eye(3).to_sparse(), source.save, target.load)
    assert got.is_sparse and got.to_dense().tolist() == source.eye(3).tolist()


def test_lazy_conjugates_of_pytorch() -> None:
    x = torch.tensor([1 + 2j, 3 - 1j])
    a, b = through([x, x.conj()], torch.save, load)
    assert (a.tolist(), b.tolist()) == (x.tolist(), x.conj().tolist())
    assert through(x.conj().imag, torch.save, load).tolist() == [-2, 1]
    for m in (tt, torch):
        x = m.ones(4)
        with pytest.raises(RuntimeError, match="view the same data as different types"):
            m.save([x, x.view(m.int32)], io.BytesIO())


def older(m: Any) -> dict[str, Any]:
    """What the old layout has to keep: views, half types, conjugates, places of elements."""
    x = m.arange(6.0)
    z = m.tensor([1 + 2j, 3 - 1j])
    return {
        "x": x,
        "v": x[1::2],
        "h": x.bfloat16(),
        "conj": z.conj() if m is torch else z.conj().resolve_conj(),
        "none": m.empty(0, 3),
        "sparse": m.eye(3).to_sparse(),
        "rows": m.eye(3).to_sparse_csr(),
        "learned": m.nn.Parameter(m.ones(2)),
    }


BETA = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")


@BETA
@pytest.mark.parametrize("way", ["here", "to torch", "from torch"])
@pytest.mark.parametrize("place", [None, "cpu", {"cuda:0": "cpu"}, lambda storage, where: storage])
def test_old_layout(way: str, place: Any) -> None:
    m = torch if way == "from torch" else tt
    file = io.BytesIO(b"before")
    file.seek(6)
    m.save(older(m), file, _use_new_zipfile_serialization=False)
    m.save("next", file, _use_new_zipfile_serialization=False)
    file.seek(6)
    read = torch.load if way == "to torch" else load
    got = read(file, map_location=place)
    assert read(file) == "next"
    for name, value in older(torch).items():
        dense, want = got[name], value
        if want.layout is not torch.strided:
            dense, want = dense.to_dense(), want.to_dense()
        assert (dense.tolist(), dense.stride()) == (want.tolist(), want.stride()), name
        assert str(dense.dtype) == str(want.dtype)
        assert got[name].requires_grad == value.requires_grad
    got["x"][1] = 9
    assert got["v"][0].item() == 9


def test_old_layout_in_other_places() -> None:
    file = io.BytesIO()
    torch.save({"x": torch.ones(3)}, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert load(file, map_location="meta")["x"].device.type == "meta"
    file.seek(0)
    with pytest.raises(RuntimeError, match="Attempting to deserialize"):
        load(file, map_location="cuda")


def test_old_layout_of_modules() -> None:
    file = io.BytesIO()
    source = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    torch.save(source, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    with pytest.raises(UnpicklingError):
        load(file)
    file.seek(0)
    net = load(file, weights_only=False)
    assert repr(net) == repr(source)
    assert net[0].weight.tolist() == source[0].weight.tolist()


@BETA
def test_damaged_old_layout() -> None:
    file = io.BytesIO()
    torch.save(older(torch), file, _use_new_zipfile_serialization=False)
    data = file.getvalue()
    for end in range(0, len(data), 7):
        with pytest.raises((UnpicklingError, RuntimeError, EOFError), match="BytesIO"):
            load(io.BytesIO(data[:end]))
    for n in range(0, len(data), 5):  # whatever comes of it, no other class of error
        damaged = bytearray(data)
        damaged[n] ^= 1 << n % 8
        with contextlib.suppress(UnpicklingError, RuntimeError, EOFError):
            load(io.BytesIO(bytes(damaged)), weights_only=bool(n % 2))
    for module in (tt, torch):
        for text in (b"hello world\n", pickle.dumps({"a": 1}), b""):
            with pytest.raises(Exception) as caught:
                module.load(io.BytesIO(text), weights_only=False)
            assert isinstance(caught.value, (UnpicklingError, RuntimeError, EOFError, KeyError))


def test_who_allows_more_than_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """An explicit word, a module for pickles, or the environment; the last may also forbid."""

    def answers(m: Any, **how: Any) -> str:
        file = io.BytesIO()
        m.save(m.nn.ReLU(), file)
        file.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return attempt(lambda: type(m.load(file, **how)).__name__)

    for name in ("", "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        for how in (
            {},
            {"weights_only": True},
            {"weights_only": False},
            {"pickle_module": pickle},
            {"pickle_module": pickle, "weights_only": True},
            {"pickle_module": pickle, "weights_only": False},
        ):
            with monkeypatch.context() as patch:
                if name:
                    patch.setenv(name, "1")
                ours, theirs = answers(tt, **how), answers(torch, **how)
            assert str(ours)[:25] == str(theirs)[:25], (name, how)


def test_other_byte_order() -> None:
    from toytorch.serialization.archive import Writer
    from toytorch.serialization.pickler import Pickler

    file, pickler = io.BytesIO(), Pickler()
    writer = Writer(file)
    writer.add("data.pkl", pickler.dump(tt.tensor([1, 256])))
    writer.add("version", b"3\n")
    writer.add("byteorder", b"big")
    writer.add("data/0", tt.tensor([1, 256]).numpy().astype(">i8").view("uint8"))
    writer.close()
    file.seek(0)
    assert load(file).tolist() == [1, 256]


# -- places ---------------------------------------------------------------------------------------


def test_map_location() -> None:
    x = torch.ones(2)
    file = io.BytesIO()
    torch.save(x, file)
    on_gpu = io.BytesIO(_with_place(file.getvalue()))
    asked = []

    def ask(storage: Any, where: str) -> Any:
        asked.append((storage.nbytes(), where))
        return storage

    for where in ("cpu", tt.device("cpu"), {"cuda:0": "cpu"}, ask):
        assert load(on_gpu, map_location=where).tolist() == [1, 1]
    assert asked == [(8, "cuda:0")]
    if not tt.cuda.is_available():
        for where in (None, {"cuda:1": "cpu"}, lambda storage, where: None):
            with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA"):
                load(on_gpu, map_location=where)
    with pytest.raises(UnpicklingError, match="map_location should return a storage"):
        load(on_gpu, map_location=lambda storage, where: 3)


def _with_place(data: bytes) -> bytes:
    """An archive of one tensor as a GPU's program would have written it."""
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"X\x03\0\0\0cpu", b"X\x06\0\0\0cuda:0"))
    return out.getvalue()


# -- refusals of save -----------------------------------------------------------------------------


class Mine:
    """A class of the user."""

    def __init__(self, x: Any) -> None:
        self.x = x


def test_refuses_what_cannot_be_named(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    save(1, path)
    for value in (lambda: 1, [type("Hidden", (), {})()], (i for i in ()), sys):
        ours, theirs = (
            attempt(m.save, value, path if m is tt else io.BytesIO())[1] for m in (tt, torch)
        )
        assert type(ours).__name__ == type(theirs).__name__
        assert str(ours).split(" at 0x")[0] == str(theirs).split(" at 0x")[0]
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(PicklingError, match="nested so deeply"):
        save(deep, path)
    assert load(path) == 1 and os.listdir(tmp_path) == ["x.pt"]
    with pytest.raises(RuntimeError, match=r"Parent directory .*nowhere does not exist"):
        save(1, tmp_path / "nowhere" / "x.pt")
    with pytest.raises(AttributeError, match="write"):
        save(1, 3)


def test_classes_that_the_user_allows() -> None:
    with safe_globals([Mine]):
        got = through(Mine(tt.ones(2)))
        data = io.BytesIO()
        save(Mine(3), data)
    assert type(got) is Mine and got.x.tolist() == [1, 1]
    with pytest.raises(UnpicklingError, match=r"Unsupported global: GLOBAL .*\.Mine was not an"):
        load(io.BytesIO(data.getvalue()))


# -- whole files ----------------------------------------------------------------------------------

SAVER = """
import sys, toytorch as tt
path, n = sys.argv[1], 0
big = tt.ones(400_000)
while n < 100_000:
    n += 1
    tt.save({"n": n, "x": big * n}, path)
    print(n, flush=True)
"""


def test_killed_while_saving(tmp_path: Path) -> None:
    """Ten programs are killed while they save again and again; the file is always whole."""
    path = tmp_path / "x.pt"
    for turn in range(int(os.environ.get("TOYTORCH_KILLS", "10"))):
        program = subprocess.Popen([sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE)
        try:
            assert program.stdout is not None
            program.stdout.readline()
            time.sleep(0.003 * turn)
        finally:
            program.send_signal(signal.SIGKILL)
            program.wait(10)
            program.stdout.close()  # type: ignore[union-attr]
        got = load(path)
        assert got["x"].numel() == 400_000 and (got["x"] == got["n"]).all().item()


def test_failing_write_keeps_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "x.pt"
    save(1, path)
    path.chmod(0o640)
    (tmp_path / "link").symlink_to(path)

    def fail(*args: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as m:
        m.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            save(2, path)
    assert load(path) == 1 and sorted(os.listdir(tmp_path)) == ["link", "x.pt"]
    save(3, tmp_path / "link")
    assert load(path) == 3 and (tmp_path / "link").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640


def test_tensors_without_memory() -> None:
    for m in (tt, torch):
        for n in (tt, torch):
            x = m.ones(2, 3, device="meta", dtype=m.float16, requires_grad=True).t()
            for value in (x, m.nn.Parameter(x.detach())):
                got = through(value, m.save, n.load)
                assert (got.device.type, got.stride(), str(got.dtype)) == (
                    "meta",
                    (1, 3),
                    "torch.float16",
                )
                assert got.requires_grad and tuple(got.shape) == (3, 2)
    assert pickle.loads(pickle.dumps(x.detach() if m is tt else tt.ones(2, device="meta"))).is_meta


def test_pickles_of_pytorch(tmp_path: Path) -> None:
    """Programs for PyTorch open with `pickle` what PyTorch's tensors were pickled to."""
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    net.act = torch.relu
    z = torch.tensor([1 + 2j])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sparse rows, in beta
        values = {
            "view": torch.arange(4.0).view(2, 2).t(),
            "half": torch.ones(2).bfloat16(),
            "conj": z.conj(),
            "sparse": torch.eye(2).to_sparse(),
            "rows": torch.eye(2).to_sparse_csr(),
            "learned": torch.nn.Parameter(torch.ones(2)),
            "net": net,
            "state": net.state_dict(),
            "meta": torch.ones(2, device="meta"),
            "draws": torch.Generator().manual_seed(3),
            "optimizer": torch.optim.Adam(net.parameters()),
        }
    program = tmp_path / "program.py"
    program.write_text(
        "import pickle, sys, torch\n"
        "v = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(v['view'], v['half'], v['conj'], v['sparse'], v['rows'], v['learned'], v['net'])\n"
        "print(list(v['state']), v['net'].act(v['net'].eval()(torch.ones(1, 2))).tolist())\n"
        "print(v['meta'].shape, torch.rand(2, generator=v['draws']), v['optimizer'])\n"
    )
    for protocol in (0, 2, 5):
        (tmp_path / "data").write_bytes(pickle.dumps(values, protocol))
        told = [
            subprocess.run(
                [sys.executable, "-W", "ignore", *how, program, tmp_path / "data"],
                capture_output=True, text=True, check=True,
            ).stdout
            for how in ([], ["-m", "toytorch"])
        ]  # fmt: skip
        assert told[0] == told[1]
