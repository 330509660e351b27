"""One argument of a call has a type that its parameter does not take: whether it is refused as such.

Calls are those of PyTorch's database of operators, each by all its public names; the argument changes,
one at a time, and is drawn for each call.
"""

from __future__ import annotations

import itertools
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, torch
from tests.outside import signatures
from tests.outside.forms import Form, parameters, paths, tried

ODD: tuple[Any, ...] = (
    None, True, 1.5, (True,), [1.5], {}, b"x", np.bool_(True), range(2), torch.bool, torch.strided,
)  # fmt: skip
PARTS = 8


def odd_forms(info: Any) -> Iterator[Form]:
    """An entry's first call by each name, with one odd argument at each place."""
    dtype = torch.float32 if torch.float32 in info.dtypes else torch.int64
    torch.manual_seed(0)
    for sample in itertools.islice(info.sample_inputs("cpu", dtype), 1):
        given = (sample.input, *sample.args)
        for path in paths(info):
            if tried(ORACLE, Form(path, given, sample.kwargs)) is not None:
                continue
            names = max(parameters(path) or [()], key=len)[len(given) :]
            for place in (*range(1, len(given)), *dict.fromkeys((*sample.kwargs, *names))):
                odd = ODD[zlib.crc32(f"{path} {place}".encode()) % len(ODD)]
                if isinstance(place, int):
                    yield Form(path, (*given[:place], odd, *given[place + 1 :]), sample.kwargs)
                else:
                    yield Form(path, given, {**sample.kwargs, place: odd})


# Functions of PyTorch's Python code, which ask otherwise, and forms that only other devices have.
LEFT: set[str] = set()


@pytest.mark.parametrize("part", range(PARTS))
def test_types_that_are_refused(part: int) -> None:
    wrong, count = [], 0
    for info in signatures.database()[part::PARTS]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                some = list(odd_forms(info))
        except Exception:
            continue  # samples that need what this build of PyTorch lacks
        for form in some:
            if form.path in LEFT:
                continue
            theirs, ours = tried(ORACLE, form), tried(SUBJECT, form)
            count += 1
            if isinstance(theirs, TypeError) is not isinstance(ours, TypeError):
                wrong.append((str(form), form.args[1:], form.kwargs, theirs, ours))
    assert not wrong
    assert count > 50
