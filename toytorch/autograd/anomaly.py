"""Finding the forward line at fault when a backward pass fails or makes NaNs."""

from __future__ import annotations

import warnings
from typing import Any

from toytorch.autograd.modes import Mode
from toytorch.core.tensor import Tensor
from toytorch.facts import state, warned
from toytorch.facts.hints import Fn
from toytorch.facts.node import Node


class Setting:
    """What was asked for."""

    def __init__(self, check_nan: bool) -> None:
        self.check_nan = check_nan


def is_anomaly_enabled() -> bool:
    """Whether anomalies are looked for."""
    return state.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether gradients are checked for NaN."""
    return state.anomaly is None or bool(state.anomaly.check_nan)


def put(setting: Setting | None) -> None:
    """Makes a setting hold; nodes remember where they were made on the general path only."""
    state.watch((setting is not None) - (state.anomaly is not None))
    state.anomaly = setting


class detect_anomaly(Mode):
    """Says which forward line made a node whose backward fails or gives NaN.

    Like `torch.autograd.detect_anomaly`; the traceback leaves out the frames of libraries.

    >>> import warnings
    >>> x = torch.tensor(-1., requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), detect_anomaly():
    ...     x.sqrt().backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.setting = Setting(check_nan)
        self.before: list[Any] = []
        warned.at_call(
            "Anomaly Detection has been enabled. This mode will increase the runtime and "
            "should only be enabled for debugging."
        )

    def __enter__(self) -> None:
        self.before.append(state.anomaly)
        put(self.setting)

    def __exit__(self, *exc: object) -> None:
        put(self.before.pop())

    def clone(self) -> Mode:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return detect_anomaly(self.setting.check_nan)


class set_detect_anomaly(Mode):
    """Switches the search on or off, as a function or a context."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = state.anomaly
        self.setting = Setting(check_nan) if mode else None
        put(self.setting)

    def __enter__(self) -> None:
        put(self.setting)

    def __exit__(self, *exc: object) -> None:
        put(self.before)

    def clone(self) -> Mode:
        return set_detect_anomaly(self.setting is not None, is_anomaly_check_nan_enabled())


def watched(node: Node, apply: Fn) -> Any:
    """Runs a node's backward, and tells where the node was made if that goes wrong."""
    try:
        grads = apply()
        if state.anomaly.check_nan:
            for i, g in enumerate(grads):
                if isinstance(g, Tensor) and g.dtype.rank > 1 and bool(g.detach().isnan().any()):
                    raise RuntimeError(
                        f"Function '{node.name()}' returned nan values in its {i}th output."
                    )
        return grads
    except Exception:
        trace = "".join(node.metadata.get("traceback_", ()))
        warned.at_call(
            f"Error detected in {node.name()}. "
            + (
                f"Traceback of forward call that caused the error:\n{trace}"
                if trace
                else "No forward pass information available. Enable detect anomaly during forward pass for "
                "more information."
            )
        )
        raise
