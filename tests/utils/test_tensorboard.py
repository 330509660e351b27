"""What SummaryWriter writes, read back by TensorBoard, beside what PyTorch's writes."""

from __future__ import annotations

import importlib
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch as oracle

pytest.importorskip("tensorboard", reason="tensorboard, the extra, is not installed")
import toytorch as torch
from toytorch.utils.tensorboard import SummaryWriter, media, protos

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
RNG = np.random.default_rng(0)
VALUES = RNG.standard_normal(300)


def writer_of(lib: Any, folder: Any, **options: Any) -> Any:
    """A writer of one of the two libraries."""
    if lib is torch:
        return SummaryWriter(folder, **options)
    from torch.utils.tensorboard import SummaryWriter as Theirs

    return Theirs(folder, **options)


def events(folder: Any) -> list[Any]:
    """All events of all files below a folder, with where the file was."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    return [
        (path.parent.relative_to(folder), Event.FromString(raw))
        for path in sorted(Path(folder).rglob("events*"))
        for raw in RawEventFileLoader(str(path)).Load()
    ]


def pixels(png: bytes) -> Any:
    """The pixels of a PNG file, decoded by matplotlib."""
    import io

    import matplotlib.image

    return (matplotlib.image.imread(io.BytesIO(png)) * 255).round().astype(np.uint8)


def message(value: Any) -> Any:
    """A value of a summary, with pictures decoded: two encoders may choose different bytes."""
    if value.HasField("image"):
        image = value.image
        return (
            value.tag,
            image.height,
            image.width,
            image.colorspace,
            pixels(image.encoded_image_string)[..., :3].tolist(),
        )
    if value.metadata.plugin_data.plugin_name == "hparams":
        from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

        return value.tag, str(HParamsPluginData.FromString(value.metadata.plugin_data.content))
    return value.SerializeToString(deterministic=True)


def written(lib: Any, folder: Path, fill: Any) -> Any:
    """What `fill(writer)` left: by folder, the step, time and values of each event."""
    with writer_of(lib, folder) as writer:
        fill(writer)
    return [
        (
            str(place),
            e.step,
            e.wall_time if e.wall_time == 7.0 else None,
            [message(v) for v in e.summary.value],
        )
        for place, e in events(folder)
        if e.HasField("summary")
    ]


FILLS = {
    "scalar": lambda w: [w.add_scalar("loss/train", 0.5**i, i, walltime=7.0) for i in range(3)],
    "scalar of an array": lambda w: w.add_scalar("a", np.float64(2.5)),
    "new style": lambda w: w.add_scalar("a", 1.5, 3, new_style=True),
    "double": lambda w: w.add_scalar("a", 0.1, 3, new_style=True, double_precision=True),
    "scalars": lambda w: w.add_scalars("group/x", {"a": 1, "b": 2.5}, 4),
    "histogram": lambda w: w.add_histogram("h", VALUES, 1),
    "histogram of one side": lambda w: w.add_histogram("h", np.abs(VALUES) + 1, 1),
    "histogram of zeros": lambda w: w.add_histogram("h", np.zeros(3)),
    "histogram, auto": lambda w: w.add_histogram("h", VALUES, bins="auto"),
    "histogram, few bins": lambda w: w.add_histogram("h", VALUES, bins="doane", max_bins=4),
    "histogram of counts": lambda w: w.add_histogram("h", np.arange(20) % 5, 1),
    "histogram raw": lambda w: w.add_histogram_raw("h", 0, 1, 3, 2.0, 2.5, [0.5, 1.0], [1, 2], 9),
    "image": lambda w: w.add_image("i", np.linspace(-0.1, 1.1, 60).reshape(3, 4, 5), 2),
    "image of bytes": lambda w: w.add_image("i", np.arange(60, dtype=np.uint8).reshape(3, 4, 5)),
    "image HWC": lambda w: w.add_image("i", RNG_IMAGE, dataformats="HWC"),
    "image HW": lambda w: w.add_image("i", RNG_IMAGE[..., 0], dataformats="HW"),
    "image of one channel": lambda w: w.add_image("i", RNG_IMAGE[None, ..., 0]),
    "images": lambda w: w.add_images("i", BATCH, 1),
    "images NHWC": lambda w: w.add_images("i", BATCH.transpose(0, 2, 3, 1), dataformats="NHWC"),
    "grey images": lambda w: w.add_images("i", BATCH[:, :1]),
    "text": lambda w: w.add_text("notes", "**héllo**", 2),
    "pr curve": lambda w: w.add_pr_curve("pr", LABELS, np.abs(VALUES) % 1, 1),
    "pr curve, few": lambda w: w.add_pr_curve(
        "pr", LABELS, np.abs(VALUES) % 1, 1, 5, weights=LABELS + 0.5
    ),
    "pr curve raw": lambda w: w.add_pr_curve_raw("pr", *np.ones((6, 4)), 1, 4),
    "hparams": lambda w: w.add_hparams(
        {"lr": 0.1, "n": 3, "name": "x", "flag": True, "none": None},
        {"acc": 0.5},
        {"name": ["x", "y"], "n": [1, 3]},
        run_name="run",
        global_step=2,
    ),
    "hparams of a logger": lambda w: [
        w._get_file_writer().add_summary(m, 3)
        for m in importlib.import_module(
            type(w).__module__.rpartition(".")[0] + ".summary"
        ).hparams({"lr": 0.1}, {"acc": 0})
    ],
    "custom scalars": lambda w: w.add_custom_scalars(
        {"T": {"lines": ["Multiline", ["s", "g"]], "band": ["Margin", ["a", "b", "c"]]}}
    ),
    "multiline chart": lambda w: w.add_custom_scalars_multilinechart(["a", "b"], "c", "t"),
    "margin chart": lambda w: w.add_custom_scalars_marginchart(["a", "b", "c"]),
    "audio": lambda w: w.add_audio("a", np.sin(VALUES)[None], 3, 8000),
    "audio, too loud": lambda w: w.add_audio("a", VALUES),
    "mesh": lambda w: w.add_mesh("m", VALUES[:60].reshape(2, 10, 3), global_step=1),
    "mesh of faces": lambda w: w.add_mesh(
        "m", VALUES[:12].reshape(1, 4, 3), COLOURS, COLOURS % 4, {"camera": {"fov": 75}, "a": 1}
    ),
    "boxes": lambda w: w.add_image_with_boxes("b", LARGE, BOXES, 2),
    "boxes with labels": lambda w: w.add_image_with_boxes("b", LARGE, BOXES, labels=["a", "dog"]),
    "boxes, smaller": lambda w: w.add_image_with_boxes("b", LARGE, BOXES, rescale=0.5, labels="a"),
}
COLOURS = np.arange(12).reshape(1, 4, 3)
LARGE = RNG.random((3, 40, 60))
BOXES = np.array([[2, 3, 30, 35], [20.5, 10, 50, 30]])
RNG_IMAGE = RNG.random((6, 7, 3))
BATCH = RNG.random((11, 3, 4, 5))
LABELS = (VALUES > 0).astype(int)


@pytest.mark.parametrize("name", FILLS)
def test_same_as_pytorch(name: str, tmp_path: Path) -> None:
    ours = written(torch, tmp_path / "ours", FILLS[name])
    theirs = written(oracle, tmp_path / "theirs", FILLS[name])
    assert ours == theirs and ours


@pytest.mark.parametrize("name", ["scalar", "hist", "image"])
def test_tensors_are_taken(name: str, tmp_path: Path) -> None:
    def fill(w: Any) -> None:
        lib = torch if isinstance(w, SummaryWriter) else oracle
        if name == "scalar":
            w.add_scalar("s", lib.tensor(1.25, requires_grad=True), lib.tensor(3))
        elif name == "hist":
            w.add_histogram("h", lib.arange(10.0), 1)
        else:
            w.add_image("i", lib.arange(12.0).reshape(3, 2, 2) / 12)

    assert written(torch, tmp_path / "a", fill) == written(oracle, tmp_path / "b", fill)


@pytest.mark.parametrize(
    "bad",
    [
        lambda w: w.add_scalar("s", [1, 2]),
        lambda w: w.add_histogram("h", np.zeros(0)),
        lambda w: w.add_histogram_raw("h", 0, 1, 1, 1, 1, [1], [1, 2]),
        lambda w: w.add_image("i", np.zeros((3, 2, 2)), dataformats="CCW"),
        lambda w: w.add_hparams([], {}),
        lambda w: w.add_hparams({"a": object()}, {}),
        lambda w: w.add_hparams({"a": 1}, {}, {"a": ["x"]}),
        lambda w: w.add_embedding(np.zeros((2, 2)), metadata=["a"]),
        lambda w: w.add_custom_scalars_marginchart(["a"]),
        lambda w: w.add_audio("a", np.zeros((2, 3))),
        lambda w: w.add_mesh("m", np.zeros((2, 3))),
    ],
)
def test_refusals(bad: Any, tmp_path: Path) -> None:
    def refusal(lib: Any) -> Any:
        with writer_of(lib, tmp_path / lib.__name__) as w:
            try:
                bad(w)
            except Exception as error:
                return type(error)
        return None

    assert refusal(torch) is refusal(oracle) is not None


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("channels", [1, 3])
def test_video(count: int, channels: int, tmp_path: Path) -> None:
    """Frames are laid out as PyTorch's; its own file needs a package that is not here."""
    import io

    from PIL import Image
    from torch.utils.tensorboard._utils import _prepare_video

    films = RNG.random((count, 4, channels, 6, 5))
    assert (media.frames(films) == _prepare_video(films)).all()
    with SummaryWriter(tmp_path) as writer:
        writer.add_video("v", torch.tensor(films), 1, fps=5)
    (value,) = [v for _, e in events(tmp_path) for v in e.summary.value]
    shown = Image.open(io.BytesIO(value.image.encoded_image_string))
    assert (shown.n_frames, shown.info["duration"]) == (4, 200)
    assert (value.image.height, value.image.width) == media.frames(films).shape[1:3]


def test_embedding_files(tmp_path: Path) -> None:
    points, pictures = RNG.random((5, 2)), RNG.random((5, 3, 4, 4)).astype(np.float32)
    for lib in (torch, oracle):
        with writer_of(lib, tmp_path / lib.__name__) as w:
            w.add_embedding(points, list("abcde"), lib.tensor(pictures), 3, "a/b")
            w.add_embedding(points, [[1, 2]] * 5, metadata_header=["x", "y"])
    ours, theirs = (tmp_path / lib.__name__ for lib in (torch, oracle))
    files = sorted(str(p.relative_to(theirs)) for p in theirs.rglob("*.*") if p.is_file())
    for file in files:
        if "tfevents" in file:
            continue
        a, b = (ours / file).read_bytes(), (theirs / file).read_bytes()
        assert np.array_equal(pixels(a), pixels(b)) if file.endswith("png") else a == b, file
    assert "projector_config.pbtxt" in files and len(files) == 7


def test_graph(tmp_path: Path) -> None:
    """The nodes are the layers' under PyTorch's scopes; edges lead from inputs to the output."""
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    model.train()
    with SummaryWriter(tmp_path) as w:
        w.add_graph(model, torch.ones(5, 3))
    graph = next(GraphDef.FromString(e.graph_def) for _, e in events(tmp_path) if e.graph_def)
    nodes = {n.name: n for n in graph.node}
    assert "input/input" in nodes["Sequential/Linear[0]/Addmm"].input
    assert "Sequential/Linear[0]/weight" in nodes["Sequential/Linear[0]/Addmm"].input
    assert list(nodes["Sequential/ReLU[1]/Relu"].input) == ["Sequential/Linear[0]/Addmm"]
    assert list(nodes["output/output.1"].input) == ["Sequential/Linear[2]/Addmm"]
    assert all(source in nodes for n in graph.node for source in n.input)
    shape = nodes["Sequential/ReLU[1]/Relu"].attr["_output_shapes"].list.shape[0]
    assert [d.size for d in shape.dim] == [5, 4]
    assert model.training and not model[0]._forward_hooks and model[0].weight.grad is None


def test_figure(tmp_path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def fill(w: Any) -> None:
        figure, axes = plt.subplots(figsize=(1, 1))
        axes.plot([1, 2])
        w.add_figure("f", figure)
        assert not plt.get_fignums()

    assert written(torch, tmp_path / "a", fill) == written(oracle, tmp_path / "b", fill)


def test_folder_suffix_and_closing(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_note", filename_suffix=".mine")
    assert writer.get_logdir().startswith("runs/") and writer.get_logdir().endswith("_note")
    (file,) = Path(writer.get_logdir()).iterdir()
    assert file.name.endswith(".mine")
    writer.add_scalar("a", 1.0)
    writer.flush()
    assert [v.simple_value for _, e in events("runs") for v in e.summary.value] == [1.0]
    writer.close()
    writer.close()
    writer.add_scalar("a", 2.0)  # opens a new file
    writer.close()
    assert sorted(v.simple_value for _, e in events("runs") for v in e.summary.value) == [1, 2]


def test_purge_step(tmp_path: Path) -> None:
    for lib in (torch, oracle):
        writer_of(lib, tmp_path / lib.__name__, purge_step=5).close()
    ours, theirs = (
        [
            (e.step, e.session_log.status)
            for _, e in events(tmp_path / lib.__name__)
            if e.HasField("session_log")
        ]
        for lib in (torch, oracle)
    )
    assert ours == theirs == [(5, 1)]


def test_without_either_package(monkeypatch: Any, tmp_path: Path) -> None:
    for name in (
        "tensorboard.summary.writer.event_file_writer",
        "tensorboardX",
        "tensorboardX.event_file_writer",
    ):
        monkeypatch.setitem(sys.modules, name, None)
    protos.package.cache_clear()
    protos.proto.cache_clear()
    try:
        with pytest.raises(ImportError, match=r"pip install toytorch\[tensorboard\]"):
            SummaryWriter(tmp_path)
    finally:
        protos.package.cache_clear()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_png(channels: int) -> None:
    from toytorch.utils.tensorboard.images import png

    image = RNG.integers(0, 256, (5, 6, channels)).astype(np.uint8)
    data = png(image)
    (size,) = struct.unpack(">I", data[33:37])
    assert zlib.crc32(data[37 : 41 + size]) == struct.unpack(">I", data[41 + size : 45 + size])[0]
    got = pixels(data)
    assert np.array_equal(got if channels > 1 else got.reshape(5, 6, -1)[..., :1], image)


def test_graph_without_an_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for m in (torch, oracle):
        with writer_of(m, tmp_path) as w, pytest.raises(RuntimeError) as refused:
            w.add_graph(m.nn.Linear(1, 1))
        said.append((str(refused.value), capsys.readouterr().out))
    assert said[0] == said[1]
