"""`copy`, `deepcopy`, `pickle` and `save` beside PyTorch: layout, sharing, attributes."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import pytest

from tests.oracle import ORACLE, SELFTEST, SUBJECT, attempt, differences, torch, tt


def through_file(m: Any, value: Any) -> Any:
    file = io.BytesIO()
    m.save(value, file)
    file.seek(0)
    return m.load(file)


WAYS: dict[str, Any] = {
    "copy": lambda m, v: copy.copy(v),
    "deepcopy": lambda m, v: copy.deepcopy(v),
    **{f"pickle {n}": lambda m, v, n=n: pickle.loads(pickle.dumps(v, n)) for n in range(2, 6)},
    "save": through_file,
}
LAYOUTS: dict[str, Any] = {
    "plain": lambda m, x: x,
    "transposed": lambda m, x: x.transpose(0, 2),
    "sliced": lambda m, x: x[:, 1:],
    "steps": lambda m, x: x[:, ::2, 1::2],
    "offset": lambda m, x: x[1],
    "number": lambda m, x: x[1, 2, 3],
    "expanded": lambda m, x: x[0].expand(5, 3, 4),
    "diagonal": lambda m, x: x[0].diagonal(),
    "windows": lambda m, x: x.flatten().unfold(0, 4, 2),
    "empty": lambda m, x: x[:0],
    "channels last": lambda m, x: x[None].contiguous(memory_format=m.channels_last),
    "column of one": lambda m, x: x[:, :1],
    "imaginary": lambda m, x: (
        m.view_as_complex(x.reshape(-1, 2)).imag
        if x.dtype.is_floating_point and x.element_size() > 2
        else x
    ),
    "bytes": lambda m, x: x.view(m.uint8) if x.dtype is not m.bool else x,
}
KINDS = ["float32", "float64", "bfloat16", "float16", "int64", "uint8", "bool", "complex64"]


def shares(a: Any, b: Any) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def facts(t: Any) -> Any:
    """All that a copy should keep, but the values."""
    return (
        tuple(t.shape),
        t.stride(),
        t.storage_offset(),
        t.untyped_storage().nbytes(),
        str(t.dtype),
        t.requires_grad,
        t.is_leaf,
        sorted(vars(t)) if SELFTEST else None,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", WAYS)
def test_a_copy_lies_as_the_original(way: str, layout: str) -> None:
    for kind in KINDS:
        made: list[Any] = []
        for m in (torch, tt):
            x = m.arange(24).reshape(2, 3, 4).to(getattr(m, kind))
            x = LAYOUTS[layout](m, x)
            made += [x, WAYS[way](m, x)]
        (a, a2), (b, b2) = made[:2], made[2:]
        assert type(b2) is type(b) and b2 is not b
        assert facts(b2) == facts(a2) == facts(a)
        assert not differences(a2, b2, exact=True)
        assert (shares(b, b2), shares(a, a2)) == (way == "copy" and b.numel() > 0,) * 2 or (
            layout == "empty"
        )


def views(m: Any) -> dict[str, Any]:
    """Containers of tensors some of which share memory."""
    x = m.arange(24.0).reshape(2, 3, 4)
    y, z = m.ones(3), m.zeros(2, 2)
    return {
        "pair": [x, x[0]],
        "parts": [x[0], x[1]],
        "same": [x, x, y],
        "transposed": (x.mT, x),
        "dict": {"a": x, "b": {"c": x[1, 1:]}, "d": y, "e": y[:2]},
        "types": [z, z.view(m.int32)],
        "detached": [x.requires_grad_(), x.detach()],
        "set of none": [y, z, None, 3],
    }


@pytest.mark.parametrize("container", views(torch))
@pytest.mark.parametrize("way", [w for w in WAYS if w != "copy"])
def test_what_shared_memory_shares_its_copy(way: str, container: str) -> None:
    """Between the copies as between the originals; PyTorch's pickle alone forgets it."""
    results = []
    for m, side in ((torch, ORACLE), (tt, SUBJECT)):
        given = views(m)[container]
        got, refused = attempt(WAYS[way], m, given)
        if refused:
            results.append(type(refused).__name__)
            continue
        before, after = side.tensors(given), side.tensors(got)
        pairs = [(i, j) for i in range(len(before)) for j in range(i)]
        assert all((after[i] is after[j]) == (before[i] is before[j]) for i, j in pairs)
        if not (way.startswith("pickle") and (m is torch or SELFTEST)):
            assert all(shares(after[i], after[j]) == shares(before[i], before[j]) for i, j in pairs)
        assert not any(shares(a, b) for a in after for b in before)
        results.append([facts(t) for t in after])
    assert results[0] == results[1]


def test_saving_holds_shared_memory_once() -> None:
    sizes = []
    for m in (torch, tt):
        x = m.zeros(10_000)
        files = [io.BytesIO() for _ in range(2)]
        m.save(x, files[0])
        m.save([x, x[1:], x.reshape(100, 100).t(), x], files[1])
        sizes.append(len(files[1].getvalue()) - len(files[0].getvalue()))
        assert sizes[-1] < 2_000
    if not SELFTEST:  # PyTorch's pickle writes it for every tensor anew
        x = tt.zeros(10_000)
        several = [x, x[1:], x.reshape(100, 100).t(), x]
        assert len(pickle.dumps(several)) < len(pickle.dumps(x)) + 2_000


def story(m: Any) -> list[Any]:
    """What copies keep and share, told by either package."""
    told: list[Any] = []
    x = m.ones(2, requires_grad=True)
    x.note, x.many = "n", [1]
    x.grad = m.full((2,), 3.0)
    for how in (copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
        c = how(x)
        told += [
            c.note,
            c.many,
            c.many is x.many,
            c.requires_grad,
            c.is_leaf,
            None if c.grad is None else c.grad.tolist(),
            c.grad is x.grad,
        ]
        c.note = "other"
        c.data[0] = 5
        told += [x.note, x.tolist()]
    p = m.nn.Parameter(m.ones(2, 3).t())
    p.note, p.grad = 1, m.ones(3, 2)
    for how in (copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
        c = how(p)
        told += [
            type(c).__name__,
            c.requires_grad,
            c.stride(),
            hasattr(c, "note"),
            c.grad is None,
            shares(c, p),
        ]
    frozen = m.nn.Parameter(m.ones(2), requires_grad=False)
    told += [copy.copy(frozen).requires_grad, copy.deepcopy(frozen).requires_grad]
    y = x * 2
    c = copy.copy(y)
    told += [c.requires_grad, c.is_leaf, c.grad_fn is None, shares(c, y)]
    copied, refused = attempt(copy.deepcopy, y)
    told += [copied, type(refused), str(refused), copy.deepcopy(y.detach()).tolist()]
    told.append(str(attempt(copy.deepcopy, [m.ones(1), y])[1]))
    memo: dict[int, Any] = {}
    told.append(copy.deepcopy(x, memo) is memo[id(x)] is copy.deepcopy(x, memo))
    s = m.eye(3).to_sparse()
    told += [how(s).to_dense().tolist() for how in (copy.copy, copy.deepcopy)]
    told += [
        copy.copy(s).is_coalesced(),
        copy.deepcopy(s).is_coalesced(),
        pickle.loads(pickle.dumps(s)).to_dense().tolist(),
    ]
    return told


def test_what_copies_keep() -> None:
    assert story(tt) == story(torch)


def warned(m: Any) -> list[Any]:
    """Which copies say that hooks are left behind."""

    def shown(g: Any) -> None:
        """A hook that the user counts on."""

    told = []
    for mark in (lambda f: f, m.utils.hooks.unserializable_hook):
        x = m.ones(2, requires_grad=True)
        x.register_hook(mark(lambda g: shown(g)))
        for way in WAYS.values():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                way(m, x)
            told.append(
                [
                    str(w.message).split(" at 0x")[0].split(" on tensor")[0].split("<")[0]
                    for w in caught
                ]
            )
    return told


def test_hooks_are_left_behind_with_a_warning() -> None:
    assert warned(tt) == warned(torch)


class Mine(tt.Tensor):  # type: ignore[misc]  # whatever package is tested
    """A class of the user, with a slot and a state of its own."""

    __slots__ = ("place",)


class Stated(tt.Tensor):  # type: ignore[misc]
    """A class that says itself what its state is."""

    def __getstate__(self) -> Any:
        return {"kept": self.kept}

    def __setstate__(self, state: Any) -> None:
        self.kept = state["kept"] + 1


@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle 2", "pickle 5"])
def test_subclasses(way: str) -> None:
    if SELFTEST and way == "deepcopy":
        pytest.skip("PyTorch copies a subclass only if it has a new_empty of its own")
    x = Mine([1.0, 2.0])
    x.place, x.note = "here", 5
    c = WAYS[way](tt, x)
    assert (type(c), c.place, c.note, c.tolist()) == (Mine, "here", 5, [1.0, 2.0])
    x = Stated([1.0])
    x.kept, x.lost = 1, 2
    c = WAYS[way](tt, x)
    assert (type(c), c.kept, hasattr(c, "lost")) == (Stated, 2, False)


# -- modules --------------------------------------------------------------------------------------


def net(m: Any) -> Any:
    """Tied weights, a buffer that is a view, hooks, an attribute that is a parameter too."""
    made = m.nn.Sequential(m.nn.Linear(3, 3), m.nn.BatchNorm1d(3), m.nn.Linear(3, 3))
    made[2].weight = made[0].weight
    made.register_buffer("whole", m.arange(6.0))
    made.register_buffer("part", made.whole[1::2])
    made.again = made[0]
    made[0].register_forward_hook(hook)
    made.names = ["a", "b"]
    return made


def hook(module: Any, args: Any, out: Any) -> Any:
    """Doubles what comes out."""
    return out * 2


@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle 2", "pickle 5"])
def test_modules(way: str) -> None:
    told = []
    for m in (torch, tt):
        a = net(m)
        a.load_state_dict({k: m.full_like(v, 0.5) for k, v in a.state_dict().items()})
        a[0].weight.grad = m.ones(3, 3)
        b = WAYS[way](m, a)
        x = m.ones(2, 3)
        told.append(
            [
                repr(b),
                list(b.state_dict()),
                b[0].weight is b[2].weight,
                b.again is b[0],
                b[0].weight is a[0].weight,
                b._parameters is a._parameters,
                b.names is a.names,
                b[0].weight.requires_grad,
                b[0].weight.grad is None,
                len(b[0]._forward_hooks),
                b._modules is a._modules,
                way[0] == "p" or shares(b.part, b.whole),
                b.part.stride(),
                b.eval()(x).tolist(),
                [tuple(p.shape) for p in b.parameters()],
            ]
        )
        with m.no_grad():
            b[0].weight.add_(1)
        told[-1].append(a[0].weight.tolist())
    assert told[0] == told[1]


def test_lazy_modules_stay_lazy() -> None:
    for m in (torch, tt):
        lazy = m.nn.LazyLinear(2)
        for how in (copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
            made = how(lazy)
            assert "Uninitialized" in repr(made.weight) and type(made) is type(lazy)
            if how is not copy.copy:
                assert tuple(made(m.ones(1, 4)).shape) == (1, 2)
                assert "Uninitialized" in repr(lazy.weight)
