"""Which types out= may have, asked of PyTorch for every operator of its own database.

An out= that PyTorch refuses is refused here too. What is still taken is listed, and each entry of
the list is checked: it must go once an operator refuses as PyTorch does.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.oracle import SUBJECT, attempt, torch, tt

pytest.importorskip("expecttest", reason="PyTorch's database of operators needs expecttest")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

TYPES = ("bool", "uint8", "int64", "float16", "float32", "float64", "complex64")
# Most are made of several ops, and their results are cast into any out= of a higher category. Of
# cumprod, nansum and bernoulli PyTorch also takes integers for floating results.
NAMES = """
bernoulli nansum normal.number_mean randn
"""
LENIENT = set(NAMES.split())


def named(root: Any, name: str) -> Any:
    """The function of a dotted name; None where there is none."""
    for part in name.split("."):
        root = getattr(root, part, None)
    return root


def disagreements(info: Any) -> list[str]:
    """Pairs of types for which one side takes an out= and the other refuses."""
    theirs, ours, found = named(torch, info.name), named(tt, info.name), []
    for kind in ("float32", "int64", "bool"):
        if getattr(torch, kind) not in info.dtypes:
            continue
        samples = list(info.sample_inputs("cpu", getattr(torch, kind), requires_grad=False))[:1]
        for sample in samples:
            args, options = (sample.input, *sample.args), dict(sample.kwargs)
            made, refused = attempt(theirs, *args, **options)
            if refused or not isinstance(made, torch.Tensor) or made.layout != torch.strided:
                continue
            for out in TYPES:
                if getattr(torch, out) is made.dtype:
                    continue
                _, first = attempt(
                    theirs, *args, **options, out=torch.empty(made.shape, dtype=getattr(torch, out))
                )
                own = SUBJECT.carry(args), SUBJECT.carry(options)
                _, second = attempt(
                    ours, *own[0], **own[1],
                    out=tt.empty(tuple(made.shape), dtype=getattr(tt, out)),
                )  # fmt: skip
                if bool(first) != bool(second):
                    found.append(f"{kind} into {out}: {first or 'taken'}; here {second or 'taken'}")
    return found


INFOS = [
    i for i in op_db if i.supports_out and i.dtypes and named(tt, i.name) and named(torch, i.name)
]


@pytest.mark.parametrize("info", INFOS, ids=lambda i: i.full_name)
def test_out_is_taken_or_refused_as_pytorch_does(info: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        found = disagreements(info)
    assert bool(found) == (info.full_name in LENIENT), found
