"""The messages that the parts of TensorBoard's page read, one function for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, Sizes
from toytorch.utils.tensorboard import images
from toytorch.utils.tensorboard.protos import proto


def value(tag: str, plugin: str = "", content: bytes = b"", **fields: object) -> Any:
    """A summary of one value; `plugin` is the part of the page that shows it."""
    summary = proto("summary")
    if plugin:
        data = summary.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
        fields["metadata"] = summary.SummaryMetadata(plugin_data=data)
    return summary.Summary(value=[summary.Summary.Value(tag=tag, **fields)])


def tensor(dtype: str, shape: Sizes | None, **values: object) -> Any:
    """A tensor message; `shape` None leaves the shape away, as PyTorch does for one number."""
    if shape is not None:
        sizes = proto("shape").TensorShapeProto
        values["tensor_shape"] = sizes(dim=[sizes.Dim(size=n) for n in shape])
    return proto("tensor").TensorProto(dtype=dtype, **values)


def scalar(
    tag: str,
    number: Array | Tensor | float | Sequence[int],
    new_style: bool = False,
    double_precision: bool = False,
) -> Any:
    """One number."""
    found = images.make_np(number).squeeze()
    if found.ndim != 0:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was given size: "
            f"{found.size} and {found.ndim} dimensions."
        )
    found = float(found)
    if new_style:
        kind = "double" if double_precision else "float"
        return value(
            tag, "scalars", tensor=tensor(f"DT_{kind.upper()}", None, **{f"{kind}_val": [found]})
        )
    return value(tag, simple_value=found)


def default_bins() -> list[float]:
    """The limits of TensorFlow: from 1e-12 each 10 % larger, on both sides of zero."""
    limits, limit = [], 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    return [-v for v in reversed(limits)] + [0.0] + limits


def histogram(tag: str, values: Array | Tensor, bins: str, max_bins: int | None = None) -> Any:
    """How often values fall between limits; ValueError if there are none.

    The buckets are those from the first to the last that is not empty, with an empty one before
    them, since a bucket only knows its upper limit.
    """
    values = images.make_np(values)
    if values.size == 0:
        raise ValueError("The input has no element.")
    flat = values.reshape(-1)
    counts, limits = np.histogram(flat, bins=default_bins() if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = coarser(counts, limits, len(counts) // max_bins)
    filled = np.flatnonzero(counts)
    first, end = int(filled[0]), int(filled[-1]) + 1
    counts = counts[first - 1 : end] if first > 0 else np.concatenate([[0], counts[:end]])
    return histogram_of(
        tag,
        min=flat.min(),
        max=flat.max(),
        num=flat.size,
        sum=flat.sum(),
        sum_squares=flat.dot(flat),
        bucket_limit=limits[first : end + 1].tolist(),
        bucket=counts.tolist(),
    )


def coarser(counts: Array, limits: Array, factor: int) -> tuple[Any, Any]:
    """Buckets taken together, `factor` at a time."""
    counts = np.add.reduceat(counts, np.arange(0, len(counts), factor))
    return counts, np.append(limits[:-1:factor], limits[-1])


def histogram_of(tag: str, **fields: object) -> Any:
    """A histogram whose numbers are known."""
    return value(tag, histo=proto("summary").HistogramProto(**fields))


def image(tag: str, array: Array, order: str) -> Any:
    """A picture."""
    pixels = images.as_bytes(images.to_hwc(images.make_np(array), order))
    height, width, channels = pixels.shape
    return value(
        tag,
        image=proto("summary").Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=images.png(pixels)
        ),
    )


def text(tag: str, content: str) -> Any:
    """A text, which the page reads as Markdown."""
    data = proto("text").TextPluginData(version=0).SerializeToString()
    held = tensor("DT_STRING", (1,), string_val=[content.encode()])
    return value(f"{tag}/text_summary", "text", data, tensor=held)


def curve(tag: str, rows: Any, thresholds: int) -> Any:
    """A precision-recall curve: rows of tp, fp, tn, fn, precision and recall by threshold."""
    data = proto("curve").PrCurvePluginData(version=0, num_thresholds=min(thresholds, 127))
    rows = np.stack(rows)
    held = tensor("DT_FLOAT", rows.shape, float_val=rows.reshape(-1).tolist())
    return value(tag, "pr_curves", data.SerializeToString(), tensor=held)


def compute_curve(
    labels: Array,
    predictions: Array,
    thresholds: int,
    weights: Array | Tensor | Sequence[float] | None,
) -> Any:
    """True and false positives, negatives, precision and recall at evenly spaced thresholds."""
    weights = np.ones(1) if weights is None else weights
    bucket = np.floor(predictions * (thresholds - 1)).astype(np.int32)
    truth = labels.astype(np.float64)

    def at_least(which: Any) -> Any:  # how many predictions reach each threshold
        found, _ = np.histogram(bucket, thresholds, (0, thresholds - 1), weights=which * weights)
        return np.cumsum(found[::-1])[::-1]

    tp, fp = at_least(truth), at_least(1.0 - truth)
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7  # in place of a division by zero
    return np.stack(
        (tp, fp, tn, fn, tp / np.maximum(least, tp + fp), tp / np.maximum(least, tp + fn))
    )


def layout(categories: Any) -> Any:
    """Which scalars share a chart: {category: {chart: ["Multiline" or "Margin", [tags]]}}."""
    kinds = proto("layout")

    def chart(title: str, kind: str, tags: Any) -> Any:
        if kind != "Margin":
            return kinds.Chart(title=title, multiline=kinds.MultilineChartContent(tag=tags))
        if len(tags) != 3:
            raise AssertionError("len(tags) != 3")
        series = kinds.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
        return kinds.Chart(title=title, margin=kinds.MarginChartContent(series=[series]))

    whole = kinds.Layout(
        category=[
            kinds.Category(
                title=name,
                chart=[chart(title, kind, tags) for title, (kind, tags) in charts.items()],
            )
            for name, charts in categories.items()
        ]
    )
    return value(
        "custom_scalars__config__",
        "custom_scalars",
        tensor=tensor("DT_STRING", (), string_val=[whole.SerializeToString()]),
    )
