"""PyTorch's own database of operators: which of its 702 entries are here, and why not others.

The wheel carries the database that PyTorch's own tests use. Every entry must be found under its
name and give PyTorch's values on its first samples, unless it is listed below with the reason.
"""

from __future__ import annotations

import re
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, attempt, differences, dtype_name, leaves, torch, tt

pytest.importorskip("expecttest", reason="PyTorch's database of operators needs expecttest")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core

# Who asks for samples has the stack searched for a test of PyTorch's own, twice: of pytest's sixty
# frames that takes longer than most samples.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = {info.full_name: info for info in op_db}
SAMPLES = 4

ABSENT = {
    "torch._scaled_mm": "products of float8, which is no type here",
    "torch._scaled_mm_v2": "products of float8, which is no type here",
    "torch.ops.aten._flash_attention_forward": "a kernel of GPUs",
    "torch.ops.aten._efficient_attention_forward": "a kernel of GPUs",
    "jiterator_unary": "compiles CUDA source text", "jiterator_binary": "compiles CUDA source text",
    "jiterator_4inputs_with_extra_args": "compiles CUDA source text",
    "jiterator_binary_return_by_ref": "compiles CUDA source text",
    "jiterator_2inputs_2outputs": "compiles CUDA source text",
}  # fmt: skip
# Present, but their first samples cannot be compared as they are.
DIFFERENT = {
    "as_strided_scatter": "PyTorch's gradient of self keeps what src overwrites (its own gradcheck "
                          "fails); ours is zero there",
    "logcumsumexp": "PyTorch's float32 gradient is off by up to 1.8e-3; ours by 2e-4",
}  # fmt: skip
# Present, but a harness over this database has nothing to compare them by.
UNCOMPARED = {
    "sparse.sampled_addmm": "its samples are CSR matrices, which are no layout here",
    "sparse.mm.reduce": "its samples are CSR matrices, which are no layout here",
    "nn.functional.batch_norm.without_cudnn": "lists no type for the CPU",
}  # fmt: skip
# Uninitialised memory or random numbers: shapes and types are compared.
UNSET = {
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential",
    "geometric", "log_normal", "multinomial", "new_empty", "new_empty_strided", "normal",
    "normal.in_place", "normal.number_mean", "nn.functional.alpha_dropout", "nn.functional.dropout",
    "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout",
    "nn.functional.feature_alpha_dropout.with_train", "nn.functional.rrelu", "pca_lowrank", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "resize_", "resize_as_",
    "svd_lowrank", "uniform", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "native_dropout_backward",
    "nn.functional.scaled_dot_product_attention", "nn.functional.multi_head_attention_forward",
    # Eigenvectors and singular vectors are defined up to a sign or a phase.
    "svd", "linalg.svd", "linalg.eig", "linalg.eigh",
}  # fmt: skip


def ours(info: Any) -> Any:
    """The op as toytorch spells it: by the database's name, or as a method; None without one."""
    name = info.name.removeprefix("torch.")
    if hasattr(getattr(tt.Tensor, name, None), "lacks"):
        return None  # a method that says so
    for home, path in ((tt, name), (tt.ops.aten, name), (tt.Tensor, name), (tt.Tensor, name + "_")):
        found: Any = home
        for part in path.split("."):
            found = getattr(found, part, None)
            if found is None:
                break
        if callable(found):
            return found
    return None


@pytest.mark.parametrize("name", sorted(ENTRIES.keys() - ABSENT.keys()))
def test_entry(name: str) -> None:
    info = ENTRIES[name]
    plain = getattr(info.op, "__module__", "").startswith(("torch.testing", "torch._refs"))
    if plain or getattr(info.op, "__name__", "") == "<lambda>":
        pytest.skip("the database wraps this op in a function of its own")
    function = ours(info)
    assert function is not None, f"toytorch has no {name}"
    if name in DIFFERENT or name in UNSET:
        return
    kind = torch.float32 if torch.float32 in info.dtypes else next(iter(info.dtypes), None)
    if kind is None or dtype_name(kind) not in ("float32", "int64", "bool", "complex64"):
        pytest.skip("the database lists no type for the CPU that is compared here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(islice(info.sample_inputs("cpu", kind), SAMPLES))
    for sample in samples:
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        known = (torch.Tensor, torch.dtype, torch.device, int, float, complex, str, bool, slice,
                 type(None), type(...))  # fmt: skip
        if not all(isinstance(v, known) or type(v).__name__ == "Size" for v in leaves(
                [list(args), kwargs])):  # fmt: skip
            continue  # layouts, generators and functions, which only PyTorch can make
        if any(t.layout is not torch.strided for t in ORACLE.tensors([list(args), kwargs])):
            continue
        want, refused = attempt(info.op, *ORACLE.carry(args), **ORACLE.carry(kwargs))
        if refused is not None:
            continue
        if any(getattr(t, "layout", torch.strided) is not torch.strided
               for t in ORACLE.tensors(want)):  # fmt: skip
            continue
        got, failure = attempt(function, *SUBJECT.carry(args), **SUBJECT.carry(kwargs))
        assert failure is None, f"{sample.summary()}: {failure!r}"
        bad = differences(want, got, slack=10.0)
        assert not bad, f"{sample.summary()}: {bad[0]}"


def test_the_lists_are_true() -> None:
    """What is said to be absent is absent; nothing is listed that the database does not know."""
    assert ABSENT.keys() <= ENTRIES.keys()
    assert DIFFERENT.keys() <= ENTRIES.keys()
    assert UNCOMPARED.keys() <= ENTRIES.keys()
    for name in UNCOMPARED:
        info = ENTRIES[name]
        samples = list(info.sample_inputs("cpu", torch.float32)) if info.dtypes else []
        assert all(any(t.layout is torch.sparse_csr for t in ORACLE.tensors(
            [s.input, *s.args])) for s in samples), f"{name} can be compared"  # fmt: skip
    present = len(ENTRIES) - len(ABSENT)
    assert len(ENTRIES) >= 702
    assert present >= 450
    for name in ABSENT:
        assert ours(ENTRIES[name]) is None, f"{name} is here after all"


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md"])
def test_documents_say_these_numbers(document: str) -> None:
    text = " ".join((ROOT / document).read_text(encoding="utf-8").split())
    present = len(ENTRIES) - len(ABSENT)
    passing = present - len(DIFFERENT.keys() | UNCOMPARED.keys())
    said = re.findall(r"(\d+) of (?:its )?(\d+)[ (;]+(\d+) pass on its samples", text)
    assert said == [(str(present), str(len(ENTRIES)), str(passing))]
