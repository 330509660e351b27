"""Files that are damaged or mean harm: nothing runs, nothing grows, the error names the file."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

import toytorch as tt
from tests.oracle import torch
from toytorch.serialization import DamagedArchive, UnpicklingError, load, safetensors, save

FUZZ = int(os.environ.get("TOYTORCH_FUZZ", "300"))
REFUSALS = (UnpicklingError, DamagedArchive, EOFError)


def archive(program: bytes, records: dict[str, bytes] | None = None, **how: Any) -> io.BytesIO:
    """An archive around a pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **how) as out:
        out.writestr("archive/data.pkl", program)
        for name, data in {"version": b"3", **(records or {"data/0": bytes(16)})}.items():
            out.writestr(f"archive/{name}", data)
    file.seek(0)
    return file


STORAGE = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpu%stQ"
FLOATS = STORAGE % b"K\x04"


def tensor(
    storage: bytes = FLOATS,
    offset: bytes = b"K\0",
    size: bytes = b"K\x04\x85",
    stride: bytes = b"K\x01\x85",
    grad: bytes = b"\x89",
) -> bytes:
    """A pickle of one tensor."""
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + offset
        + size
        + stride
        + grad
        + b"ccollections\nOrderedDict\n)RtR."
    )


class Evil:
    """Runs a command where a pickle is trusted."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.how = function, args

    def __reduce__(self) -> Any:
        return self.how


RAN: list[str] = []
PROGRAMS = {
    "system": pickle.dumps(Evil(os.system, "touch /tmp/toytorch-hostile"), 2),
    "eval": pickle.dumps([1, Evil(eval, "1")], 4),
    "getattr": pickle.dumps(Evil(getattr, tt.Size, "__class__"), 2),
    "append": b"\x80\x02c__main__\nRAN\nX\x01\0\0\0aa.",
    "torch.load": b"\x80\x02ctorch\nload\nX\x01\0\0\0a\x85R.",
    "dotted": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2.__globals__\n.",
    "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "call a value": b"\x80\x02K\x01)R.",
    "call a dtype": b"\x80\x02ctorch\nfloat32\n)R.",
    "build": b"\x80\x02ctorch\nSize\n)R}X\x01\0\0\0aK\x01sb.",
    "instance": b"(ios\nsystem\n.",
    "object": b"(cos\nsystem\no.",
    "extension": b"\x82\x01.",
    "no such memo": b"\x80\x02h\x05.",
    "empty stack": b"\x80\x02\x85.",
    "no stop": b"\x80\x02N",
    "nothing": b"",
    "only stop": b".",
    "open mark": b"\x80\x02(N.",
    "no mark": b"\x80\x02Nt.",
    "odd dict": b"\x80\x02}(K\x01u.",
    "key": b"\x80\x02}]K\x01s.",
    "append to": b"\x80\x02)K\x01a.",
    "long text": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "long int": b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",
    "negative int": b"\x80\x02\x8b\xff\xff\xff\xff\x01.",
    "bad utf-8": b"\x80\x02X\x01\0\0\0\xff.",
    "gigabytes": b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    "codec": b"\x80\x02c_codecs\nencode\nX\x01\0\0\0aX\x04\0\0\0zlib\x86R.",
    "multiplied": (
        b"\x80\x02](c_codecs\nencode\nq\x01X\xe8\x03\0\0"
        + b"a" * 1000
        + b"X\x06\0\0\0latin1\x86q\x02R"
        + b"h\x01h\x02R" * 5000
        + b"e."
    ),
    "deep key": b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"K\x01s.",
    "wide key": b"\x80\x02})" + b"q\x01h\x01\x86" * 60 + b"K\x01s.",
    "persistent id": b"\x80\x02K\x05Q.",
    "storage of nothing": b"\x80\x02(X\x07\0\0\0storagetQ.",
    "unknown storage": tensor(FLOATS.replace(b"\x000X", b"\x009X")),
    "path": tensor(FLOATS.replace(b"X\x01\0\0\x000", b"X\x09\0\0\0../../etc")),
    "too long": tensor(STORAGE % b"K\x05"),
    "too short": tensor(STORAGE % b"K\x03"),
    "negative count": tensor(STORAGE % b"J\xff\xff\xff\xff"),
    "huge count": tensor(STORAGE % b"\x8a\x09\0\0\0\0\0\0\0\0\x01"),
    "beyond": tensor(size=b"K\x05\x85"),
    "offset": tensor(offset=b"K\x01"),
    "negative offset": tensor(offset=b"J\xff\xff\xff\xff"),
    "huge offset": tensor(offset=b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"),
    "negative size": tensor(size=b"J\xff\xff\xff\xff\x85"),
    "true size": tensor(size=b"\x88\x85"),
    "stride": tensor(stride=b"K\x02\x85"),
    "negative stride": tensor(stride=b"J\xff\xff\xff\xff\x85"),
    "dims": tensor(stride=b"K\x01K\x01\x86"),
    "float size": tensor(size=b"G" + bytes(8) + b"\x85"),
    "overflow": tensor(size=b"\x8a\x06\0\0\0\0\0\x01" * 3 + b"\x87", stride=b"K\0K\0K\0\x87"),
    "no bool": tensor(grad=b"K\x01"),
    "tensor of text": tensor(b"X\x01\0\0\0a"),
}


NN = b"ctorch.nn.modules.linear\nIdentity\n)\x81"
EMPTY = b"X\x0b\0\0\0_parameters}X\x08\0\0\0_buffers}X\x08\0\0\0_modules}X\x08\0\0\0training\x88"
RELU = b"ctorch.nn.functional\nrelu\n"
DTYPE = b"cnumpy\ndtype\nX\x02\0\0\0f8\x89\x88\x87R"
ARRAY = b"cnumpy._core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\x01b\x87R"
BYTES = b"c_codecs\nencode\nX%sX\x06\0\0\0latin1\x86R"


def key(name: str, value: bytes) -> bytes:
    """An entry of a dict."""
    return b"X" + struct.pack("<I", len(name)) + name.encode() + value


def module(*entries: bytes, start: bytes = EMPTY) -> bytes:
    """A pickle of a module with these attributes beside what every module has."""
    return b"\x80\x02" + NN + b"}(" + start + b"".join(entries) + b"ub."


def array(state: bytes) -> bytes:
    """A pickle of an array with a state."""
    return b"\x80\x02" + ARRAY + state + b"b."


def filled(shape: bytes, count: int, kind: bytes = DTYPE) -> bytes:
    """An array's state: a shape, a type, and so many bytes."""
    return (
        b"(K\x01"
        + shape
        + kind
        + b"\x89"
        + BYTES % (struct.pack("<I", count) + bytes(count))
        + b"t"
    )


# What files may name with weights_only=False, put to other uses.
PROGRAMS |= {
    "call a function": b"\x80\x02" + RELU + b"K\x01\x85R.",
    "new function": b"\x80\x02" + RELU + b")\x81.",
    "call a module": b"\x80\x02" + NN + b")R.",
    "module with arguments": b"\x80\x02ctorch.nn.modules.linear\nLinear\nK\x01K\x01\x86\x81.",
    "module called with arguments": b"\x80\x02ctorch.nn.modules.linear\nLinear\nK\x01K\x01\x86R.",
    "forward": module(key("forward", RELU)),
    "call": module(key("__call__", RELU)),
    "class": module(key("__class__", RELU)),
    "compiled": module(key("_compiled", RELU)),
    "dict": module(key("__dict__", b"}")),
    "getattr of module": module(key("__getattr__", RELU)),
    "state dict": module(key("state_dict", RELU)),
    "named": module(key("named_parameters", RELU)),
    "forward hook": module(key("_forward_hooks", b"}K\0" + RELU + b"s")),
    "hook table": module(key("_forward_hooks", RELU)),
    "load hook": module(key("_load_state_dict_pre_hooks", b"}K\0" + RELU + b"s")),
    "no parts": module(start=b""),
    "module of numbers": module(key("_modules", b"}" + key("a", b"K\1s"))),
    "module of functions": module(key("_modules", b"}" + key("a", RELU + b"s"))),
    "parameter of text": module(key("_parameters", b"}" + key("a", b"Ns") + key("b", b"K\1s"))),
    "dotted child": module(key("_modules", b"}" + key("a.b", b"Ns"))),
    "training": module(key("training", b"K\x07")),
    "names": module(key("_non_persistent_buffers_set", b"]")),
    "module within itself": b"\x80\x02"
    + NN
    + b"q\x01}("
    + EMPTY
    + key("_modules", b"}" + key("a", b"h\x01s"))
    + b"ub.",
    "state twice": b"\x80\x02" + NN + b"}(" + EMPTY + b"ub}(" + EMPTY + b"ub.",
    "state of a number": b"\x80\x02" + NN + b"K\x01b.",
    "optimizer of numbers": b"\x80\x02ctorch.optim.sgd\nSGD\n)\x81}K\x01K\x01sb.",
    "optimizer of parts": b"\x80\x02ctorch.optim.sgd\nSGD\n)\x81}"
    + key("state", b"}")
    + b"s"
    + key("step", RELU)
    + b"sb.",
    "optimizer with arguments": b"\x80\x02ctorch.optim.sgd\nSGD\n]\x85\x81.",
    "distribution's method": b"\x80\x02ctorch.distributions.normal\nNormal\n)\x81}"
    + key("log_prob", RELU)
    + b"sb.",
    "distribution called": b"\x80\x02ctorch.distributions.normal\nNormal\n)R}K\x01K\x01sb.",
    "sampler's class": b"\x80\x02ctorch.utils.data.sampler\nRandomSampler\n)\x81}"
    + key("__class__", RELU)
    + b"sb.",
    "generator of text": b"\x80\x02ctorch._C\nGenerator\nX\x03\0\0\0cpu\x85R.",
    "generator's state": b"\x80\x02ctorch._C\nGenerator\nctorch\ndevice\nX\x03\0\0\0cpu\x85R\x85RK\x01b.",
    "named result of numbers": b"\x80\x02ctorch.return_types\nmax\nK\x01\x85R.",
    "packed numbers": b"\x80\x02ctorch.nn.utils.rnn\nPackedSequence\n(K\x01K\x01K\x01K\x01t\x81.",
    "type of a list": b"\x80\x02c__builtin__\ntype\n]\x85R.",
    "three types": b"\x80\x02c__builtin__\ntype\nX\x01\0\0\0a)}\x87R.",
    "long number": b"\x80\x02cdecimal\nDecimal\nX\xff\x0f\0\0" + b"1" * 4095 + b"\x85R.",
    "huge fraction": b"\x80\x02cfractions\nFraction\nX\x0a\0\0\x001e99999999\x85R.",
    "time of text": b"\x80\x02cdatetime\ndatetime\nX\x01\0\0\0a\x85R.",
    "own module": b"\x80\x02ctoytorch.nn.modules.linear\nIdentity\n)\x81.",
    "class of a name": b"\x80\x02ctorch.nn.modules.linear\nIdentity.forward\n.",
    "private function": b"\x80\x02ctorch.nn.functional\n_verify\n.",
    "functional's imports": b"\x80\x02ctorch.nn.functional\nnp\n.",
    "hub": b"\x80\x02ctorch.hub\nload\n.",
    "jit": b"\x80\x02ctorch.jit\nload\n.",
    "from_file": b"\x80\x02ctorch\nfrom_file\n.",
    "torch.save": b"\x80\x02ctorch\nsave\n.",
    "partial": b"\x80\x02cfunctools\npartial\nc__builtin__\nprint\n\x85R.",
    "getattr of an object": b"\x80\x02c__builtin__\ngetattr\n"
    + RELU
    + b"X\x0b\0\0\0__globals__\x86R.",
    "getattr of torch": b"\x80\x02c__builtin__\ngetattr\nctorch._C\n_VariableFunctionsClass\n"
    b"X\x09\0\0\0from_file\x86R.",
    "call a class": b"\x80\x02c__builtin__\nint\nX\x01\0\0\x001\x85R.",
    "eval": b"\x80\x02c__builtin__\neval\nX\x01\0\0\x001\x85R.",
    "default factory": b"\x80\x02ccollections\ndefaultdict\n" + RELU + b"\x85R.",
    "namespace": b"\x80\x02cargparse\nNamespace\n)\x81]b.",
    "namespace with arguments": b"\x80\x02cargparse\nNamespace\nK\x01\x85\x81.",
    "range": b"\x80\x02c__builtin__\nxrange\nX\x01\0\0\x001\x85R.",
    "long deque": b"\x80\x02ccollections\ndeque\n]J\xff\xff\xff\xff\x86R.",
    "objects of NumPy": b"\x80\x02cnumpy\ndtype\nX\x01\0\0\0O\x85R.",
    "type by its fields": b"\x80\x02cnumpy\ndtype\n]X\x01\0\0\0aa\x85R.",
    "type by a long name": b"\x80\x02cnumpy\ndtype\nX\x06\0\0\0f8,f8,\x85R.",
    "fields": b"\x80\x02" + DTYPE + b"(K\x03X\x01\0\0\0<NX\x01\0\0\0aNK\x08K\x08K\0tb.",
    "array without state": b"\x80\x02" + ARRAY + b".",
    "array in a tuple": b"\x80\x02" + ARRAY + b"\x85.",
    "array state": array(b"K\x01"),
    "array of a list": array(b"(K\x01K\x02\x85" + DTYPE + b"\x89]t"),
    "array too short": array(filled(b"K\x02\x85", 8)),
    "array too long": array(filled(b"K\x01\x85", 16)),
    "array of negative size": array(filled(b"J\xff\xff\xff\xff\x85", 8)),
    "huge array": array(filled(b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86", 8)),
    "huge number": array(
        filled(b"J\xff\xff\xff\x7f\x85", 0, b"cnumpy\ndtype\nX\x0a\0\0\0S999999999\x85R")
    ),
    "array twice": b"\x80\x02"
    + ARRAY
    + filled(b"K\x01\x85", 8)
    + b"b"
    + filled(b"K\x01\x85", 8)
    + b"b.",
    "scalar": b"\x80\x02cnumpy._core.multiarray\nscalar\n"
    + DTYPE
    + BYTES % b"\x01\0\0\0a"
    + b"\x86R.",
}


class Plain:
    """Settings of a program."""

    def __init__(self) -> None:
        RAN.append("init")


class Network(tt.nn.Module):  # type: ignore[misc]  # what mypy knows of a Module is Any
    """A network of a program."""

    def __init__(self) -> None:
        RAN.append("init")


def loud(name: str) -> type:
    """A class with a method that tells when it runs."""
    return type(f"Loud{name}", (Plain,), {name: lambda self, *a: RAN.append(name)})


LoudNew, LoudDel, LoudState, LoudHash = map(
    loud, ("__new__", "__del__", "__setstate__", "__hash__")
)
LoudNetwork = type("LoudNetwork", (Network, LoudState), {})
Slotted = type("Slotted", (), {"__slots__": ("a",)})


def shout() -> None:
    """A function of a program."""
    RAN.append("shout")


def own(name: str) -> bytes:
    """A pickle's name for something of this file."""
    return b"c" + __name__.encode() + b"\n" + name.encode() + b"\n"


def network(*entries: bytes) -> bytes:
    """A pickle of a program's network with these attributes beside what every module has."""
    return b"\x80\x02" + own("Network") + b")\x81}(" + EMPTY + b"".join(entries) + b"ub."


# Classes of the program, put to other uses.
PROGRAMS |= {
    "own function": b"\x80\x02" + own("shout") + b".",
    "own function called": b"\x80\x02" + own("shout") + b")R.",
    "own list": b"\x80\x02" + own("RAN") + b".",
    "own class called": b"\x80\x02" + own("Plain") + b")R.",
    "own class with arguments": b"\x80\x02" + own("Plain") + b"K\x01\x85\x81.",
    "own class's method": b"\x80\x02" + own("Plain.__init__") + b".",
    "own class's globals": b"\x80\x02" + own("shout.__globals__") + b".",
    "state of a class": b"\x80\x02" + own("Plain") + b"}" + key("a", b"K\x01") + b"sb.",
    "state of numbers": b"\x80\x02" + own("Plain") + b")\x81}K\x01K\x01sb.",
    "state in a tuple": b"\x80\x02" + own("Plain") + b")\x81N}" + key("a", b"Ns") + b"\x86b.",
    "its class": b"\x80\x02" + own("Plain") + b")\x81}" + key("__class__", own("Network")) + b"sb.",
    "key": b"\x80\x02}" + own("LoudHash") + b")\x81K\x01s.",
    "key in a tuple": b"\x80\x02}K\x01" + own("LoudHash") + b")\x81\x86K\x01s.",
    "in a set": b"\x80\x04\x8f(" + own("LoudHash") + b")\x81\x90.",
    "in a frozenset": b"\x80\x02c__builtin__\nfrozenset\n]" + own("LoudHash") + b")\x81a\x85R.",
    "network without state": b"\x80\x02" + own("Network") + b")\x81}b.",
    "network's forward": network(key("forward", RELU)),
    "network's parameters": network(key("named_parameters", RELU)),
    "network compiled": network(key("_compiled", RELU)),
    "network's hook": network(key("_forward_hooks", b"}K\0" + own("shout") + b"s")),
    "network's hook of ours": network(key("_forward_hooks", b"}K\0" + RELU + b"s")),
    "class of the standard library": b"\x80\x02ctempfile\n_TemporaryFileCloser\n)\x81.",
    "class written in C": b"\x80\x02cnumpy.random._generator\nGenerator\n)\x81.",
    "module that is not there": b"\x80\x02cantigravity.classes\nFly\n)\x81.",
    "PyTorch beside us": b"\x80\x02ctorch.utils.data.dataset\nDataset\n)\x81.",
    **{
        f"own {name}": b"\x80\x02" + own(name) + b")\x81}" + key("a", b"Ns") + b"b."
        for name in ("LoudNew", "LoudDel", "LoudState", "LoudNetwork", "Slotted")
    },
}


def test_the_honest_objects_of_these_tests_are_read() -> None:
    text = b"\x80\x02" + own("Plain") + b")\x81}" + key("a", b"K\x01") + b"sb."
    got = load(archive(text), weights_only=False)
    assert type(got) is Plain and got.a == 1 and not RAN
    assert type(load(archive(network()), weights_only=False)) is Network and not RAN
    keyed = load(archive(b"\x80\x02}" + own("Plain") + b")\x81K\x01s."), weights_only=False)
    assert [type(k) for k in keyed] == [Plain]
    with pytest.raises(UnpicklingError, match="Plain was not an allowed global"):
        load(archive(text))


def test_the_honest_modules_of_these_tests_are_read() -> None:
    got = load(archive(module(key("note", RELU))), weights_only=False)
    assert type(got) is tt.nn.Identity and got.note is tt.nn.functional.relu
    assert load(archive(array(filled(b"K\x02\x85", 16))), weights_only=False).tolist() == [0, 0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_hostile_pickles(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pt"
    path.write_bytes(archive(PROGRAMS[name]).getvalue())
    tracemalloc.start()
    try:
        with pytest.raises(REFUSALS, match=r"hostile\.pt"):
            load(path, weights_only=False)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert not RAN and not os.path.exists("/tmp/toytorch-hostile")


def test_the_honest_pickle_of_these_tests_is_read() -> None:
    assert load(archive(tensor())).tolist() == [0, 0, 0, 0]


def test_names_the_global() -> None:
    with pytest.raises(UnpicklingError, match=r"Unsupported global: GLOBAL posix\.system was not"):
        load(archive(PROGRAMS["system"]))
    with pytest.raises(UnpicklingError, match="Unsupported operand 105"):
        load(archive(PROGRAMS["instance"]))


def many(count: int) -> bytes:
    """Two archives' worth of directory entries over one record."""
    file = archive(tensor(), {f"data/{i}": b"" for i in range(count)})
    return file.getvalue()


def test_hostile_archives(tmp_path: Path) -> None:
    good = archive(tensor()).getvalue()
    cases = {
        "compressed": archive(
            tensor(), {"data/0": bytes(50 << 20)}, compression=zipfile.ZIP_DEFLATED
        ).getvalue(),
        "traversal": good.replace(b"archive/data/0", b"archive/../../"),
        "absolute": good.replace(b"archive/data/0", b"/rchive/data/0"),
        "backslash": good.replace(b"archive/data/0", b"archive\\data/0"),
        "two folders": good.replace(b"archive/data/0", b"archiv2/data/0"),
        "overlap": _overlapping(good),
        "no zip": b"hello" * 100,
        "empty": b"",
        "no records": b"PK\x05\x06" + bytes(18),
        "no pickle": good.replace(b"data.pkl", b"data.pk_"),
        "encrypted": _flagged(good),
    }
    twice = archive(tensor(), {"data/0": bytes(16), "data/1": bytes(16)}).getvalue()
    cases["duplicate"] = twice.replace(b"archive/data/1", b"archive/data/0")
    for name, data in cases.items():
        path = tmp_path / f"{name}.pt"
        path.write_bytes(data)
        tracemalloc.start()
        try:
            with pytest.raises(REFUSALS, match=rf"{name}\.pt"):
                load(path)
            assert tracemalloc.get_traced_memory()[1] < 8 << 20, name
        finally:
            tracemalloc.stop()


def _overlapping(good: bytes) -> bytes:
    """The directory leads to the pickle for both records."""
    data = bytearray(good)
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    return bytes(data)


def _flagged(good: bytes) -> bytes:
    data = bytearray(good)
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def sample() -> Any:
    """Something to save that uses every part of the layout."""
    x = tt.arange(40.0)
    return {
        "x": x,
        "v": x.reshape(5, 8)[1:4, ::2],
        "p": tt.nn.Parameter(tt.ones(3)),
        "n": 12345,
        "text": "some text",
        "list": [1.5, None, True, (1, 2)],
        "i": tt.arange(7),
    }


def damage(data: bytes, rng: random.Random) -> bytes:
    """One of the ways in which files break."""
    out = bytearray(data)
    way = rng.randrange(6)
    if way == 0:
        return bytes(out[: rng.randrange(len(out))])
    if way == 1:
        for _ in range(rng.choice([1, 1, 2, 8])):
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    elif way == 2:
        at = rng.randrange(len(out))
        del out[at : at + rng.randrange(1, 200)]
    elif way == 3:
        at = rng.randrange(len(out))
        out[at:at] = rng.randbytes(rng.randrange(1, 64))
    elif way == 4:
        at = rng.randrange(len(out) - 8)
        out[at : at + 4] = struct.pack("<I", rng.choice([0, 0xFFFFFFFF, 0x7FFFFFFF, 1 << 20]))
    else:  # the directory, where it hurts most
        at = rng.randrange(data.index(b"PK\x01\x02"), len(out))
        out[at] = rng.randrange(256)
    return bytes(out)


def damage_program(data: bytes, rng: random.Random) -> bytes:
    """A whole archive around a damaged pickle, whose checksum is right."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        records = {n.partition("/")[2]: old.read(n) for n in old.namelist()}
    program = bytearray(records.pop("data.pkl"))
    for _ in range(rng.choice([1, 1, 1, 3])):
        at = rng.randrange(len(program))
        if rng.random() < 0.5:
            program[at] = rng.randrange(256)
        else:
            program[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(4))
    return archive(bytes(program), records).getvalue()


def test_damaged_archives(tmp_path: Path) -> None:
    """Every damaged file loads to what was saved, or raises an error that names it."""
    path = tmp_path / "fuzz.pt"
    save(sample(), path)
    good, rng = path.read_bytes(), random.Random(0)
    refused = loaded = unnamed = 0
    executed: list[str] = []
    watching = True

    def watch(event: str, args: Any) -> None:
        if watching and event in ("os.system", "subprocess.Popen", "exec", "compile"):
            source = getattr(args[0], "co_filename", "") or ""
            if os.path.basename(os.path.dirname(source)) != "encodings":  # zipfile's own cp437
                executed.append(f"{event} {source} {args}")

    sys.addaudithook(watch)
    tracemalloc.start()
    try:
        for turn in range(FUZZ):
            broken = turn % 2 == 0
            path.write_bytes((damage if broken else damage_program)(good, rng))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                got = load(path)
            except REFUSALS as error:
                refused += 1
                unnamed += str(path) not in str(error)
            else:
                loaded += 1
                if broken:  # the bytes it hit carry no value: dates, padding, notes
                    assert repr(got) == repr(sample()), turn
            assert tracemalloc.get_traced_memory()[1] - before < 1 << 20, turn
    finally:
        watching = False
        tracemalloc.stop()
    assert refused + loaded == FUZZ and refused > FUZZ // 3 and not unnamed
    assert not executed
    print(f"{FUZZ} damaged archives: {refused} refused by name, {loaded} loaded, 0 executed")


def test_damaged_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "fuzz.safetensors"
    state = {"a": tt.arange(6.0).reshape(2, 3), "b": tt.arange(3), "h": tt.ones(2).bfloat16()}
    safetensors.save_file(state, path, {"note": "x"})
    good, rng = path.read_bytes(), random.Random(0)
    refused = unnamed = 0
    for turn in range(FUZZ):
        data = bytearray(good)
        if turn % 3 == 0:
            data = data[: rng.randrange(len(data))]
        else:
            data[rng.randrange(len(good) - 44)] = rng.randrange(256)
        path.write_bytes(bytes(data))
        try:
            safetensors.load_file(path)
        except safetensors.SafetensorError as error:
            refused += 1
            unnamed += str(path) not in str(error)
    assert refused > FUZZ // 3 and not unnamed


HEADERS = {
    "no json": b"hello",
    "array": b"[]",
    "deep": b"[" * 100_000,
    "twice": b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
    b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
    "gap": b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}',
    "overlap": b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
    b'"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
    "size": b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1]}}',
    "huge": b'{"a":{"dtype":"U8","shape":[1000000000000],"data_offsets":[0,1000000000000]}}',
    "negative": b'{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,-1]}}',
    "dtype": b'{"a":{"dtype":"X","shape":[1],"data_offsets":[0,1]}}',
    "digits": b'{"a":{"dtype":"U8","shape":[' + b"1" * 5000 + b'],"data_offsets":[0,1]}}',
    "metadata": b'{"__metadata__":{"a":1}}',
}


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_safetensors(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(struct.pack("<Q", len(HEADERS[name])) + HEADERS[name] + b"\0")
    with pytest.raises(safetensors.SafetensorError, match=r"hostile\.safetensors"):
        safetensors.load_file(path)


def written(edit: Any) -> bytes:
    """A file of PyTorch with other records: `edit` gives the bytes of each, or None for none."""
    return rewritten(torch.save, torch.arange(4.0), edit)


def rewritten(write: Any, value: Any, edit: Any) -> bytes:
    """What `write` makes of a value, with other records."""
    made, out = io.BytesIO(), io.BytesIO()
    write(value, made)
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = edit(name.partition("/")[2], old.read(name))
            if data is not None:
                new.writestr(name, data)
    return out.getvalue()


def record(name: str, data: bytes | None) -> Any:
    """An edit of one record."""
    return lambda n, old: data if n == name else old


def raised(m: Any, data: bytes) -> type[Exception]:
    """The class of error that a file leads to."""
    with pytest.raises(Exception) as caught:
        m.load(io.BytesIO(data), weights_only=True)
    return caught.type


OURS = {
    "no version": record("version", None),
    "version of words": record("version", b"abc"),
    "version of tomorrow": record("version", b"99"),
    "no bytes": record("data/0", None),
    "fewer bytes": record("data/0", bytes(12)),
    "more bytes": record("data/0", bytes(20)),
    "empty program": record("data.pkl", b""),
    **{
        name: record("data.pkl", PROGRAMS[name])
        for name in (
            "offset",
            "beyond",
            "negative size",
            "negative stride",
            "huge offset",
            "dims",
            "stride",
            "long text",
            "no stop",
            "eval",
            "system",
            "too long",
        )
    },
}


@pytest.mark.parametrize("name", OURS)
def test_errors_are_of_the_class_that_pytorch_raises(name: str) -> None:
    data = written(OURS[name])
    assert issubclass(raised(tt, data), raised(torch, data))


def test_files_of_the_older_layout_end_early_as_in_pytorch() -> None:
    file = io.BytesIO()
    torch.save([torch.arange(9.0)], file, _use_new_zipfile_serialization=False)
    data = file.getvalue()
    for tenth in range(10):
        cut = data[: len(data) * tenth // 10]
        want = raised(torch, cut)
        # What PyTorch's reader stumbles over depends on where in a number or a word it ends.
        want = EOFError if want in (struct.error, IndexError) else want
        assert issubclass(raised(tt, cut), want), tenth


class Endless(io.RawIOBase):
    """Zeros without an end, behind a few bytes."""

    def __init__(self, start: bytes = b"") -> None:
        self.start, self.at = start, 0

    def read(self, count: int = -1) -> bytes:
        """Some bytes; all of them are never asked for."""
        assert 0 <= count < 1 << 20, "read to its end"
        found = (self.start + bytes(self.at + count))[self.at : self.at + count]
        self.at += count
        return found

    def seek(self, at: int, whence: int = 0) -> int:
        """Goes to a place; the end is at 0, as that of a device."""
        self.at = (0, self.at, 0)[whence] + (0 if whence == 2 else at)
        return self.at

    def tell(self) -> int:
        """The place."""
        return self.at


def test_what_has_no_end_is_refused_at_its_first_bytes() -> None:
    for start in (b"", b"PK\x03\x04", pickle.dumps({"a": 1}, 2), b"\x80\x02}q\0("):
        for weights_only in (True, False):
            with pytest.raises(REFUSALS):
                load(Endless(start), weights_only=weights_only)
        with pytest.raises(DamagedArchive):
            tt.jit.load(Endless(start))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")
def test_a_compiled_module_of_pytorch_is_called_by_its_name() -> None:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), file)
    for read in (tt.load, tt.jit.load):
        with pytest.raises(DamagedArchive, match=r"torch\.jit\.save, whose code only PyTorch runs"):
            read(io.BytesIO(file.getvalue()))
