"""The safetensors layout, alone and beside the safetensors package where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

import toytorch as tt
from toytorch.serialization import safetensors


def state() -> dict[str, tt.Tensor]:
    """A tensor of every type the layout has, and the odd shapes."""
    found = {k.name: tt.arange(6).reshape(2, 3).to(k) for k in safetensors.NAMES}
    return found | {"empty": tt.ones(0, 3), "scalar": tt.tensor(2.5), "ä": tt.ones(1)}


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save_file(state(), path, {"format": "pt"})
    for got in (safetensors.load_file(path), safetensors.load(path.read_bytes())):
        assert got.keys() == state().keys()
        for name, want in state().items():
            assert got[name].dtype is want.dtype and got[name].shape == want.shape
            assert got[name].tolist() == want.tolist()
    assert safetensors.load_metadata(path) == {"format": "pt"}
    data = path.read_bytes()
    assert int.from_bytes(data[:8], "little") % 8 == 0
    assert data == safetensors.save(state(), {"format": "pt"})


def test_bytes_are_those_of_the_layout() -> None:
    header = b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}   '
    wanted = len(header).to_bytes(8, "little") + header + b"\x01\x02"
    assert safetensors.save({"a": tt.tensor([1, 2]).to(tt.uint8)}) == wanted


def test_refusals() -> None:
    x = tt.ones(2, 3)
    for bad, error, what in [
        ({"a": x, "b": x[0]}, RuntimeError, "share memory"),
        ({"a": x.t()}, ValueError, "non contiguous"),
        ({"a": 3}, ValueError, "expected torch.Tensor"),
        ({"a": tt.eye(2).to_sparse()}, ValueError, "sparse"),
        ({"a": x.to(tt.complex128)}, safetensors.SafetensorError, "no name for torch.complex128"),
        ({"__metadata__": x}, ValueError, "cannot be called"),
        ([x], ValueError, "Expected a dict"),
    ]:
        with pytest.raises(error, match=what):
            safetensors.save(bad)
    with pytest.raises(safetensors.SafetensorError, match="str to str"):
        safetensors.save({"a": x}, {"a": 1})


def test_beside_the_package() -> None:
    other = pytest.importorskip("safetensors.torch")
    plain = {k: v for k, v in state().items() if k != "complex64"}
    theirs = other.load(safetensors.save(plain))
    assert {k: v.tolist() for k, v in theirs.items()} == {k: v.tolist() for k, v in plain.items()}
    ours = safetensors.load(other.save(theirs))
    assert {k: v.tolist() for k, v in ours.items()} == {k: v.tolist() for k, v in plain.items()}
