"""The message classes of TensorBoard's files, from whichever package is installed.

`tensorboard` comes first, `tensorboardX` second; neither is imported before a writer is made.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

MISSING = (
    "TensorBoard's event writer is not installed: run `pip install toytorch[tensorboard]` "
    "(or install tensorboardX)"
)
PLACES = {  # our name: the module in tensorboard, the module in tensorboardX
    "event": ("tensorboard.compat.proto.event_pb2", "tensorboardX.proto.event_pb2"),
    "summary": ("tensorboard.compat.proto.summary_pb2", "tensorboardX.proto.summary_pb2"),
    "tensor": ("tensorboard.compat.proto.tensor_pb2", "tensorboardX.proto.tensor_pb2"),
    "shape": ("tensorboard.compat.proto.tensor_shape_pb2", "tensorboardX.proto.tensor_shape_pb2"),
    "graph": ("tensorboard.compat.proto.graph_pb2", "tensorboardX.proto.graph_pb2"),
    "node": ("tensorboard.compat.proto.node_def_pb2", "tensorboardX.proto.node_def_pb2"),
    "attribute": ("tensorboard.compat.proto.attr_value_pb2", "tensorboardX.proto.attr_value_pb2"),
    "versions": ("tensorboard.compat.proto.versions_pb2", "tensorboardX.proto.versions_pb2"),
    "hparams": (
        "tensorboard.plugins.hparams.plugin_data_pb2",
        "tensorboardX.proto.plugin_hparams_pb2",
    ),
    "hparams_api": ("tensorboard.plugins.hparams.api_pb2", "tensorboardX.proto.api_pb2"),
    "curve": (
        "tensorboard.plugins.pr_curve.plugin_data_pb2",
        "tensorboardX.proto.plugin_pr_curve_pb2",
    ),
    "mesh": ("tensorboard.plugins.mesh.plugin_data_pb2", "tensorboardX.proto.plugin_mesh_pb2"),
    "text": ("tensorboard.plugins.text.plugin_data_pb2", "tensorboardX.proto.plugin_text_pb2"),
    "layout": ("tensorboard.plugins.custom_scalar.layout_pb2", "tensorboardX.proto.layout_pb2"),
    "writer": ("tensorboard.summary.writer.event_file_writer", "tensorboardX.event_file_writer"),
}


@cache
def package() -> int:
    """0 for tensorboard, 1 for tensorboardX; ImportError if there is neither."""
    for number in (0, 1):
        try:
            importlib.import_module(PLACES["writer"][number])
            return number
        except ImportError:
            continue
    raise ImportError(MISSING)


@cache
def proto(name: str) -> Any:
    """One of the modules of PLACES."""
    return importlib.import_module(PLACES[name][package()])


def event_writer(folder: str, max_queue: int, flush_secs: int, suffix: str) -> Any:
    """What appends events to a new file in a folder, on a thread of its own."""
    return proto("writer").EventFileWriter(folder, max_queue, flush_secs, suffix)
