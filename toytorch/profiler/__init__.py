"""Measuring programs: what ran, for how long, with how much memory; like `torch.profiler`.

recorder   what is written down while the program runs       ledger, places, flops: the rest
events     calls with totals, and their sums                 table, trace: how they are shown
session    the plan of a training loop                       simple: one piece of program
"""

from toytorch.facts.package import show as _show
from toytorch.profiler.events import DeviceType
from toytorch.profiler.records import record_function
from toytorch.profiler.schedules import ProfilerAction, schedule
from toytorch.profiler.session import (
    ProfilerActivity,
    kineto_available,
    profile,
    supported_activities,
    tensorboard_trace_handler,
)

_show(globals())
