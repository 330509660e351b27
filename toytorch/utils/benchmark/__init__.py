"""Timing small pieces of program, like `torch.utils.benchmark`.

measurement.py  what was timed, its times, and how sure they are
timing.py       runs a statement and measures it
compare.py      many measurements as a table
fuzzer.py       tensors of random sizes to time with
"""

from toytorch.utils.benchmark.compare import Colorize, Compare
from toytorch.utils.benchmark.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from toytorch.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from toytorch.utils.benchmark.timing import Language, Timer, timer

__all__ = [
    "Colorize", "Compare", "FuzzedParameter", "FuzzedTensor", "Fuzzer", "Language", "Measurement",
    "ParameterAlias", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads",
    "timer", "trim_sigfig", "unit_to_english",
]  # fmt: skip
