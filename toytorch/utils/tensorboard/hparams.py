"""Hyperparameters and the results they led to, for TensorBoard's table of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.utils.tensorboard.images import make_np
from toytorch.utils.tensorboard.protos import proto
from toytorch.utils.tensorboard.summaries import value


def summaries(
    hparams: Mapping[str, object],
    metrics: Mapping[str, object],
    discrete: Mapping[str, Sequence[object]] | None,
) -> list[Any]:
    """Three messages: what the experiment varies, what this run has, and that it has ended.

    Raises TypeError for what is no dictionary, and ValueError for values that are no number, text
    or truth value.
    """
    check(hparams, metrics, discrete)
    api, plugin = proto("hparams_api"), proto("hparams")
    start = plugin.SessionStartInfo()
    infos = []
    for name, given in hparams.items():
        if given is None:
            continue
        kind, field, plain = kind_of(given)
        setattr(start.hparams[name], field, plain)
        info = api.HParamInfo(name=name, type=api.DataType.Value(kind))
        for choice in (discrete or {}).get(name, ()):
            setattr(info.domain_discrete.values.add(), field, kind_of(choice)[2])
        infos.append(info)
    experiment = api.Experiment(
        hparam_infos=infos,
        metric_infos=[api.MetricInfo(name=api.MetricName(tag=tag)) for tag in metrics],
    )
    end = plugin.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))
    return [
        message("experiment", experiment=experiment),
        message("session_start_info", session_start_info=start),
        message("session_end_info", session_end_info=end),
    ]


def message(tag: str, **content: object) -> Any:
    """One of the three."""
    data = proto("hparams").HParamsPluginData(version=0, **content)
    return value(f"_hparams_/{tag}", "hparams", data.SerializeToString())


def check(
    hparams: Mapping[str, object],
    metrics: Mapping[str, object],
    discrete: Mapping[str, Sequence[object]] | None,
) -> None:
    """Refuses what is no dictionary, and choices of another type than the value."""
    for name, given in (
        ("hparam_dict", hparams),
        ("metric_dict", metrics),
        ("hparam_domain_discrete", discrete or {}),
    ):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    for name, choices in (discrete or {}).items():
        if (
            name not in hparams
            or not isinstance(choices, list)
            or not all(isinstance(c, type(hparams[name])) for c in choices)
        ):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same "
                f"type as hparam_dict[{name}]."
            )


def kind_of(given: object) -> tuple[str, str, Any]:
    """TensorBoard's type, the field that holds it, and the value (True counts as 1)."""
    if isinstance(given, Tensor):
        given = float(make_np(given).reshape(-1)[0])
    if isinstance(given, str):
        return "DATA_TYPE_STRING", "string_value", given
    if isinstance(given, (int, float)):
        return "DATA_TYPE_FLOAT64", "number_value", given
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
