"""What is compared after each statement: all that a program can see."""

from __future__ import annotations

import re
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tests.oracle import ORACLE, SUBJECT, Side, dtype_name, torch, tt
from tests.outside.running import Failure

# (relative) what two ways to round may differ by; more is asked of `search.explained`.
ROUNDING = {
    "float16": 2.5e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-11, "complex64": 1e-5,
    "complex128": 1e-11,
}  # fmt: skip


ASSERTED = "INTERNAL ASSERT FAILED"  # a fault in PyTorch, by its own words
UNNAMED = "a base without a name"


class Difference(NamedTuple):
    kind: str
    path: str
    expected: str
    got: str


def leaves(side: Side, value: Any, path: str, seen: int = 0) -> list[tuple[str, Any]]:
    """Every plain value and tensor in a value, with the expression that leads to it."""
    if isinstance(value, (list, tuple)) and seen < 4:
        return [p for i, v in enumerate(value) for p in leaves(side, v, f"{path}[{i}]", seen + 1)]
    if isinstance(value, dict) and seen < 4:
        return [p for k, v in value.items() for p in leaves(side, v, f"{path}[{k!r}]", seen + 1)]
    return [(path, value)]


def all_leaves(side: Side, space: dict[str, Any]) -> list[tuple[str, Any]]:
    return [p for name, v in space.items() for p in leaves(side, v, name)]


def array(side: Side, x: Any) -> np.ndarray[Any, Any]:
    """Elements, from a copy: `numpy()` of a tensor forbids to resize its memory from then on."""
    return side.numpy(x.detach().clone())


def close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Where two arrays agree; NaN equals NaN."""
    if a.dtype.kind not in "fc":
        return np.asarray(a == b)
    if a.dtype.kind == "c":
        wide = np.complex128
        x, y = a.astype(wide), b.astype(wide)
        size = np.maximum(np.abs(x), np.abs(y))
        tol = ROUNDING.get(dtype, 0) * np.where(np.isfinite(size), size, 0)
        parts = [near(x.real, y.real, tol), near(x.imag, y.imag, tol)]
        return parts[0] & parts[1]
    x, y = a.astype(np.float64), b.astype(np.float64)
    size = np.maximum(np.abs(x), np.abs(y))
    tol = ROUNDING.get(dtype, 0) * np.where(np.isfinite(size), size, 0)
    tiny = float(np.finfo(np.float32 if "32" in dtype or "64" in dtype else np.float16).tiny)
    return near(x, y, np.maximum(tol, tiny * 1e-3 if "64" not in dtype else 0))


def near(x: Any, y: Any, tol: Any) -> Any:
    with np.errstate(all="ignore"):
        return (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= tol)


def leaf(x: Any) -> bool | str:
    """Whether a tensor is a leaf; what it says where its history may not be asked for, without the name
    of the view's node, which `same_node` compares where there is one."""
    try:
        return bool(x.is_leaf)
    except RuntimeError as e:
        return re.sub(r"^(Output \d+ of )\w+", r"\1it", str(e))[:60]


def version(x: Any) -> int | str:
    """The count of writes; what it says where there is none, as of data set to an inference tensor."""
    try:
        return int(x._version)
    except RuntimeError as e:
        return str(e)[:60]


def facts(side: Side, x: Any, names: dict[int, str]) -> dict[str, Any]:
    """What can be asked of a tensor besides its elements; differences are named in this order."""
    found: dict[str, Any] = {"shape": tuple(x.shape), "dtype": dtype_name(x.dtype)}
    found["layout"] = str(x.layout).rpartition(".")[2]
    found["requires_grad"], found["is_leaf"] = x.requires_grad, leaf(x)
    if found["layout"] != "strided":
        return found
    found["strides"], found["offset"] = tuple(x.stride()), x.storage_offset()
    found["contiguous"] = x.is_contiguous()
    base = x._base
    found["view"] = base is not None and names.get(id(base), UNNAMED)
    found["inference"], found["conj"] = x.is_inference(), x.is_conj()
    if not found["inference"]:
        found["version"] = version(x)
    try:
        node = x.grad_fn
        found["grad_fn"] = type(node).__name__ if node is not None else None
    except RuntimeError as e:  # a view that was written to where its history cannot follow
        found["grad_fn"] = str(e)[:60]
    found["class"] = type(x).__name__
    return found


def normal(text: str) -> str:
    """A message without what differs from process to process, and without quoting marks."""
    text = text.split("\n")[0]
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return re.sub(r"toytorch", "torch", text).strip().rstrip(".")


# Decided otherwise, each with its reason (ARCHITECTURE.md says more).
NODES = {
    "DifferentiableGraphBackward": "a compiled function's results hang on one node",
}
# What PyTorch does with a record of its own is composed of others here, or the other way round.
COMPOSED = {
    ("DistBackward0", "LinalgVectorNormBackward0"), ("LdexpBackward0", "MulBackward0"),
    ("PdistBackward0", "LinalgVectorNormBackward0"), ("NormBackward1", "LinalgVectorNormBackward0"),
    ("SqueezeBackward4", "CloneBackward0"), ("UnsafeViewBackward0", "ViewBackward0"),
    ("WhereBackward0", "MaskedFillBackward0"), ("SqueezeBackward1", "DivBackward0"),
    ("NarrowCopyBackward0", "CloneBackward0"), ("ConjBackward0", "ConjPhysicalBackward0"),
    ("StdMeanBackward0", "StdBackward0"), ("VarMeanBackward0", "VarBackward0"),
    ("TraceBackward0", "SumBackward0"), ("MulBackward1", "SpecialNdtrBackward0"),
    ("StackBackward0", "ViewBackward0"), ("CumsumBackward0", "DivBackward0"),
    ("TriangularSolveBackward0", "LinalgSolveTriangularBackward0"),
    ("CholeskyBackward0", "LinalgCholeskyExBackward0"), ("MulBackward1", "DivBackward0"),
    ("SqueezeBackward1", "ViewBackward0"),
    ("ViewBackward0", "AddBackward0"), ("MkldnnRnnLayerBackward0", "ViewBackward0"),
    ("AliasBackward0", "PermuteBackward0"), ("SplitWithSizesBackward0", "SplitBackward0"),
    ("ReshapeAliasBackward0", "ViewBackward0"), ("ViewBackward0", "UnsqueezeBackward0"),
    ("ToCopyBackward0", "CloneBackward0"), ("FillBackward3", "CopyBackwards"),
    ("ViewBackward0", "RepeatInterleaveBackward0"),
    ("IndexSelectBackward0", "RepeatInterleaveBackward0"), ("StdMeanBackward0", "MaskedFillBackward0"),
    ("ViewAsComplexBackward0", "AsStridedBackward0"),
    ("VarMeanBackward0", "MaskedFillBackward0"), ("SelectBackward0", "ImagBackward0"),
    ("SelectBackward0", "RealBackward0"), ("StackBackward0", "IndexBackward0"),
    ("NormBackward0", "LinalgVectorNormBackward0"), ("VdotBackward0", "SumBackward1"),
    ("GridSampler2DBackward0", "ViewBackward0"), ("ViewBackward0", "MmBackward0"),
    ("IndexPutImplBackward0", "IndexPutBackward0"),
    *product(
        ("MultilabelMarginLossBackward0", "MultiMarginLossBackward0"),
        ("MeanBackward0", "SumBackward0", "DivBackward0", "ViewBackward0"),
    ), ("CopyBackwards", "CloneBackward0"),
    ("ReshapeAliasBackward0", "CloneBackward0"), ("DivBackward1", "MulBackward0"),
    ("CholeskyBackward0", "CloneBackward0"), ("SumBackward1", "PermuteBackward0"),
}  # fmt: skip


def same_node(a: Any, b: Any) -> bool:
    """Whether two names of nodes are the same, or known to be names of the same thing."""
    if a == b or (a, b) in COMPOSED or (b, a) in COMPOSED:
        return True
    if a is None or b is None:
        return False
    if b == "ConjPhysicalBackward0":
        return True  # rules are written for real numbers and conjugated around (ARCHITECTURE.md):
        # PyTorch's gradients of complex numbers end in whatever the rule ends in
    if a.endswith("BackwardBackward0"):
        return True  # derivatives, where PyTorch has records for some, are composed of others here
    if a.endswith("_copy") and b == "CloneBackward0":
        return True  # a view and a clone, where PyTorch has a record for both
    return bool(a[:-1] == b[:-1])  # the number counts the forms of a name in PyTorch's table


MESSAGES_COMPARED = False
WARNINGS_COMPARED = False


def failures(a: Failure | None, b: Failure | None) -> Difference | None:
    """Whether both sides raised the same."""
    if (a is None) != (b is None):
        kind = "accepted" if b is None else "refused"
        return Difference(kind, "", f"{a}", f"{b}")
    if a is None or b is None:
        return None
    if a.kind != b.kind:
        return Difference("class of error", "", f"{a}", f"{b}")
    if MESSAGES_COMPARED and normal(a.message) != normal(b.message):
        return Difference("message", "", a.message, b.message)
    return None


def root_of(path: str) -> str:
    """The variable that a path begins with."""
    return path.partition("[")[0]


class Comparer:
    """Compares both sides' variables; remembers what it has seen unchanged."""

    def __init__(self, graphs: set[str], traces: bool = False) -> None:
        self.traces = traces  # whether PyTorch's functions are traced
        self.graphs = graphs  # names of compiled functions, whose results hang on another node
        self.loose: set[str] = set()
        self.first: dict[tuple[str, int], tuple[int | str, int | str]] = {}
        self.from_functions: set[str] = set()  # variables that compiled functions gave
        self.written_inside: set[str] = set()  # and those in whose memory these lie
        # Variables that lie otherwise where they have no elements, or a single place.
        self.nowhere: set[str] = set()
        self.broken: set[str] = set()  # tensors about which PyTorch failed
        self.unpickled: set[str] = set()  # variables that pickle gave

    def differences(self, ours: dict[str, Any], theirs: dict[str, Any]) -> Difference | None:
        if set(ours) != set(theirs):
            return Difference("variables", "", str(sorted(theirs)), str(sorted(ours)))
        left, right = all_leaves(ORACLE, theirs), all_leaves(SUBJECT, ours)
        if [p for p, _ in left] != [p for p, _ in right]:
            return Difference(
                "structure", "", str([p for p, _ in left]), str([p for p, _ in right])
            )
        a_names = {id(v): p for p, v in reversed(left) if isinstance(v, torch.Tensor)}
        b_names = {id(v): p for p, v in reversed(right) if isinstance(v, tt.Tensor)}
        worst: Difference | None = None
        for (path, a), (_, b) in zip(left, right):
            found = self.one(path, a, b, a_names, b_names)
            if found is not None:
                return found
        return worst or self.sharing(left, right)

    def one(self, path: str, a: Any, b: Any, a_names: Any, b_names: Any) -> Difference | None:
        if isinstance(a, torch.Tensor) != isinstance(b, tt.Tensor):
            return Difference("type", path, f"{type(a)}", f"{type(b)}")
        if not isinstance(a, torch.Tensor):
            return plain(path, a, b)
        if path in self.broken:
            return None
        x, y = facts(ORACLE, a, a_names), facts(SUBJECT, b, b_names)
        known = a_names[id(a)], b_names[id(b)]
        if known[0] != known[1] and not self.constant(path, known[0]):
            return Difference("identity", path, a_names[id(a)], b_names[id(b)])
        for key in ("shape", "dtype", "layout"):
            if x[key] != y[key]:
                return Difference(key, path, str(x[key]), str(y[key]))
        if x["layout"] != "strided":
            return None
        wrong = elements("value", path, a, b)
        if wrong:
            return wrong
        if y.get("grad_fn") in NODES or path in self.loose:
            self.loose.add(path)
            for d in (x, y):
                for key in ("grad_fn", "version", "view"):
                    d.pop(key, None)
        if (
            root_of(path) in self.from_functions
            or root_of(str(x.get("view"))) in self.from_functions
        ):
            y["view"] = x.get("view")  # compiled functions make no views that nobody sees
        if UNNAMED in {x.get("view"), y.get("view")}:  # a base that nobody can reach
            x["view"] = y["view"] = False
        self.count_from_here(path, a, x, y)
        if x.get("conj") and not y["conj"]:  # a mark of PyTorch's, where ours has conjugated
            return None
        if "AsStridedBackward0" in {
            x.get("grad_fn"),
            y.get("grad_fn"),
        }:
            x["grad_fn"] = y["grad_fn"] = (
                None  # the base was written to: the same history by another name
            )
        roots = {root_of(str(p)) for p in (path, a_names[id(a)], x.get("view"))}
        if roots & self.written_inside:  # what was written inside is not counted
            x["version"] = y["version"] = 0
        layout = ("strides", "offset", "contiguous")
        if not a.numel() and (
            x.get("view", False) is False
            or root_of(path) in self.from_functions
            or root_of(str(x.get("view"))) in self.nowhere
        ):  # of what a graph gives, nobody is asked whose view it is
            # Where nothing lies, arithmetic does not ask (that costs its fast path more than a
            # program can gain by it), nor do views of what it gives.
            if any(x[k] != y[k] for k in layout):
                self.nowhere.add(root_of(path))
            y.update({k: x[k] for k in layout})
        if [s for s, n in zip(x["strides"], a.shape) if n != 1] == [
            s for s, n in zip(y["strides"], a.shape) if n != 1
        ]:
            if x["strides"] != y["strides"]:  # nothing is read by the steps of a single place
                self.nowhere.add(root_of(path))
            y["strides"] = x["strides"]
        if not a.numel() and not any(x["strides"]):  # NumPy's arrays say so of all that is empty
            if x["strides"] != y["strides"] and x.get("view"):
                self.nowhere.add(
                    root_of(str(x["view"]))
                )  # and so do views of these begin elsewhere
            x["strides"] = y["strides"]
        for key in x:
            if key == "grad_fn" and same_node(x[key], y[key]):
                continue
            if ASSERTED in str(x[key]):
                self.broken.add(path)  # and what it says of the tensor from then on
                return None
            if x[key] != y.get(key):
                return Difference(key, path, str(x[key]), str(y.get(key)))
        return self.gradient(path, a, b)

    def constant(self, path: str, name: str) -> bool:
        """Whether two results of traces may be one tensor in PyTorch: it computes what hangs on no input
        once, and gives that tensor in every call."""
        return self.traces and {root_of(path), root_of(name)} <= self.from_functions

    def count_from_here(self, path: str, a: Any, x: Any, y: Any) -> None:
        """Writes are counted from when both sides' tensors were first seen: compositions of PyTorch
        write to what they return, and ours do not."""
        if "version" not in x or "version" not in y:
            return
        key = (path, id(a))
        first = self.first.setdefault(key, (x["version"], y["version"]))
        for d, before in ((x, first[0]), (y, first[1])):
            if isinstance(d["version"], int) and isinstance(before, int):
                d["version"] -= before

    def counts_otherwise(self, name: str) -> bool:
        """Whether a variable's count of writes is not compared as it is: it was written to in a
        function, or began otherwise (`count_from_here`)."""
        return name in self.written_inside or any(
            path == name and a != b for (path, _), (a, b) in self.first.items()
        )

    def gradient(self, path: str, a: Any, b: Any) -> Difference | None:
        if (
            not (leaf(a) is True or a.retains_grad)
            or a.is_inference()
            or not (leaf(b) is True or b.retains_grad)
        ):
            return None
        g, h = a.grad, b.grad
        if (g is None) != (h is None):
            return Difference("grad", path + ".grad", str(g), str(h))
        if g is None:
            return None
        if g.layout is not torch.strided:
            return None
        for key in ("dtype", "shape"):
            if dtype_name(getattr(g, key)) != dtype_name(getattr(h, key)):
                return Difference(f"grad {key}", path + ".grad", str(g), str(h))
        wrong = elements("grad", path + ".grad", g, h)
        if wrong:
            return wrong
        if g.requires_grad != h.requires_grad:
            return Difference(
                "grad requires_grad", path, str(g.requires_grad), str(h.requires_grad)
            )
        if [s for s, n in zip(g.stride(), g.shape) if n > 1] != [
            s for s, n in zip(h.stride(), h.shape) if n > 1
        ] and g.numel():  # what nothing reads is left out
            return Difference("grad strides", path + ".grad", str(g.stride()), str(h.stride()))
        return None

    def sharing(self, left: Any, right: Any) -> Difference | None:
        """Which tensors have memory in common, and where they begin in it."""
        a, b = (
            [(p, v) for p, v in side if isinstance(v, kind) and str(v.layout).endswith("strided")]
            for side, kind in ((left, torch.Tensor), (right, tt.Tensor))
        )
        x, y = (groups(side) for side in (a, b))
        for (path, t), i, j in zip(a, x, y):
            if root_of(path) in self.unpickled:
                continue  # PyTorch's pickle writes memory that is shared once for each tensor
            if i != j and not t.is_conj() and not self.constant(path, a[i][0]):
                # Conjugates are copies here.
                return Difference("sharing", path, f"with {a[i][0]}", f"with {b[j][0]}")
        return None


def groups(tensors: list[tuple[str, Any]]) -> list[int]:
    """For each tensor the first one with the same storage; empty ones are by themselves."""
    first: dict[int, int] = {}
    out = []
    for i, (_, t) in enumerate(tensors):
        lazy = getattr(t, "_is_zerotensor", bool)()  # PyTorch's gradients of zero have no memory
        at = t.untyped_storage().data_ptr() if t.numel() and not lazy else 0
        out.append(first.setdefault(at, i) if at else i)
    return out


def elements(kind: str, path: str, a: Any, b: Any) -> Difference | None:
    x, y = array(ORACLE, a), array(SUBJECT, b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return Difference(kind, path, f"{x.dtype} {x.shape}", f"{y.dtype} {y.shape}")
    if close(x, y, dtype_name(a.dtype)).all():
        return None
    return Difference(kind, path, repr(x), repr(y))


def plain(path: str, a: Any, b: Any) -> Difference | None:
    """Numbers, texts, arrays; objects of the packages by the names of their classes."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
        if same and close(a, b, str(a.dtype)).all():
            return None
        return Difference("array", path, f"{a!r} {a.strides}", f"{b!r} {b.strides}")
    if isinstance(a, float) and isinstance(b, float):
        ok = bool(near(np.float64(a), np.float64(b), 1e-5 * abs(a)))
        return None if ok else Difference("number", path, repr(a), repr(b))
    if isinstance(a, (bool, int, str, complex, type(None))):
        if isinstance(a, str) and isinstance(b, str):
            ok = same_text(a, b)
        else:
            ok = type(a) is type(b) and (a == b or a != a)
        return None if ok else Difference("plain", path, repr(a), repr(b))
    if isinstance(a, torch.dtype):
        ok = dtype_name(a) == dtype_name(b)
        return None if ok else Difference("plain", path, repr(a), repr(b))
    return None


NUMBER = re.compile(r"[-+]?(?:\d+\.\d*(?:e[+-]\d+)?|\d+e[+-]\d+)")


def same_text(a: str, b: str) -> bool:
    """Equal texts, apart from names of nodes, from the last digit of fractions, and from the signs of
    zeros: numbers in a text are held to what elements are (`close`), those of half types, too."""
    b = b.replace("toytorch", "torch")
    if a.endswith(("Backwards", "0", "1", "2", "3")):  # names of nodes, which say where they are
        a, b = a.removeprefix("torch::autograd::"), b.removeprefix("torch::autograd::")
    if a == b or "DifferentiableGraph" in b or ("grad_fn" in a and "grad_fn" in b):
        return True
    if "Backward" in a and (same_node(a, b) or "AsStridedBackward0" in (a, b)):
        return True  # a base that was written to: the same history by another name (`Comparer.one`)
    if "".join(NUMBER.sub("", a).split()) != "".join(NUMBER.sub("", b).split()):
        return False
    x, y = ([float(n) for n in NUMBER.findall(t)] for t in (a, b))
    half = re.search(r"torch\.(b?float16)\b", a)
    tol = 2e-4 if half is None else ROUNDING[half[1]]
    return len(x) == len(y) and bool(np.allclose(x, y, rtol=tol, atol=2e-4))
