"""`SummaryWriter`: numbers, pictures and texts of a run, for TensorBoard."""

from __future__ import annotations

import datetime
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array
from toytorch.utils.tensorboard import embedding, graph, hparams, images, media, summaries
from toytorch.utils.tensorboard.protos import event_writer, proto


class FileWriter:
    """Appends messages to one file of events."""

    def __init__(
        self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        self.log_dir = str(log_dir)
        self.event_writer = event_writer(self.log_dir, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self.log_dir

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Appends an event, stamped with the time and the step."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self,
        summary: object,
        global_step: Tensor | int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Appends a summary as an event."""
        self.add_event(proto("event").Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Writes what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the file."""
        self.event_writer.close()


class SummaryWriter:
    """Writes what a run should show in TensorBoard, like `torch.utils.tensorboard.SummaryWriter`.

    log_dir          the folder; runs/DATE_HOST and `comment` unless it is given
    purge_step       forget events of an earlier, broken-off run from this step on
    max_queue, flush_secs
                     how many events, and how long, may wait before they are written
    filename_suffix  appended to the file's name

    Needs the package `tensorboard` or `tensorboardX`: ImportError where neither is installed.
    Every `add_…` takes a tag, the step, and a time in place of now (`walltime`).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     writer.add_scalar("loss", 0.5, global_step=1)
    """

    def __init__(
        self,
        log_dir: Path | str | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = log_dir, purge_step
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._projector = ""
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """The writer of the main file, which is opened anew after `close`."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._open(str(self.log_dir))
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                event = proto("event")
                self.file_writer.add_event(
                    event.Event(step=self.purge_step, file_version="brain.Event:2")
                )
                self.file_writer.add_event(
                    event.Event(
                        step=self.purge_step,
                        session_log=event.SessionLog(status=event.SessionLog.START),
                    )
                )
                self.purge_step = None
        return self.file_writer

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> str:
        """The folder of the run."""
        return str(self.log_dir)

    def _add(self, summary: object, step: Tensor | int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, step, walltime)

    # -- numbers ------------------------------------------------------------------------------

    def add_scalar(
        self,
        tag: str,
        scalar_value: Array | Tensor | float | Sequence[int],
        global_step: Tensor | int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Adds one number: a point of the curve `tag`."""
        self._add(
            summaries.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime
        )

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds one number to each of several curves of one chart; each has a file of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        writers = self.all_writers if self.all_writers is not None else {}
        for tag, number in tag_scalar_dict.items():
            place = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if place not in writers:
                writers[place] = self._open(place)
            writers[place].add_summary(summaries.scalar(main_tag, number), global_step, walltime)

    def add_tensor(
        self,
        tag: str,
        tensor: Array | Tensor | Sequence[float] | None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a whole tensor of numbers."""
        array = images.make_np(tensor)
        message = summaries.tensor(
            "DT_FLOAT", array.shape, float_val=array.astype(np.float32).reshape(-1).tolist()
        )
        self._add(summaries.value(tag, "tensor", tensor=message), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Array | Tensor,
        global_step: int | None = None,
        bins: str = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Adds how often values occur; `bins` is "tensorflow", or what `np.histogram` takes."""
        self._add(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: Any,
        max: Any,
        num: Any,
        sum: Any,
        sum_squares: Any,
        bucket_limits: Array,
        bucket_counts: Array,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a histogram that was counted elsewhere; bucket_limits are the upper ones."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        more: Any = {"sum_squares": sum_squares, "bucket": bucket_counts}
        made = summaries.histogram_of(
            tag, min=min, max=max, num=num, sum=sum, bucket_limit=bucket_limits, **more
        )
        self._add(made, global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Array,
        predictions: Array,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Array | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds precision against recall, of labels 0 and 1 and predictions in [0, 1]."""
        thresholds = min(num_thresholds, 127)
        rows = summaries.compute_curve(
            images.make_np(labels), images.make_np(predictions), thresholds, weights
        )
        self._add(summaries.curve(tag, rows, thresholds), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Array | None,
        false_positive_counts: Array | None,
        true_negative_counts: Array | None,
        false_negative_counts: Array | None,
        precision: Array | None,
        recall: Array | None,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds such a curve that was counted elsewhere."""
        positive, negative = (
            (true_positive_counts, false_positive_counts),
            (true_negative_counts, false_negative_counts),
        )
        rows = [images.make_np(a) for a in (*positive, *negative, precision, recall)]
        self._add(summaries.curve(tag, rows, num_thresholds), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Adds a row to the table of runs: the hyperparameters, and the results they led to."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        messages = hparams.summaries(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(folder) as run:
            for message in messages:
                run._add(message, global_step, None)
            for tag, number in metric_dict.items():
                run.add_scalar(tag, number, global_step)

    # -- pictures and text --------------------------------------------------------------------

    def add_image(
        self,
        tag: str,
        img_tensor: Array,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Adds a picture: bytes, or numbers in [0, 1]; `dataformats` names its dimensions."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Array | list[Any],
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Adds several pictures side by side."""
        if isinstance(img_tensor, list):  # a list of CHW pictures
            img_tensor = np.stack([images.make_np(one) for one in img_tensor])
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Array,
        box_tensor: Array,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Sequence[str] | None = None,
    ) -> None:
        """Adds a picture with boxes (N, 4), each (xmin, ymin, xmax, ymax), and their labels."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        made = media.boxed(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(made, global_step, walltime)

    def add_video(
        self,
        tag: str,
        vid_tensor: Array,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Adds films (N, T, C, H, W), bytes or numbers in [0, 1], side by side."""
        self._add(media.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Array,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Adds sound (1, L), numbers in [-1, 1]."""
        self._add(media.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Array,
        colors: Array | None = None,
        faces: Array | None = None,
        config_dict: dict[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds points (B, N, 3), with colours and, as triangles of their numbers, faces."""
        made = media.mesh(tag, config_dict, VERTEX=vertices, FACE=faces, COLOR=colors)
        self._add(made, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: object,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Adds a matplotlib figure, or several side by side, and closes them."""
        if isinstance(figure, list):
            self.add_images(
                tag, [images.of_figure(f, close) for f in figure], global_step, walltime
            )
        else:
            self.add_image(tag, images.of_figure(figure, close), global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a text in Markdown."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Adds the graph of model(*input_to_model), which runs once, in evaluation mode."""
        if not hasattr(model, "forward"):
            raise TypeError(f"add_graph expects a module, but got {type(model).__name__}")
        try:
            if input_to_model is None:
                raise RuntimeError("example_kwarg_inputs should be a dict")
            definition = graph.graph_of(model, input_to_model, verbose)
        except RuntimeError as e:
            print(e)
            print("Error occurs, No graph saved")
            raise
        self._get_file_writer().add_event(
            proto("event").Event(graph_def=definition.SerializeToString())
        )

    def add_embedding(
        self,
        mat: Array,
        metadata: Any = None,
        label_img: Tensor | None = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Adds points (N, D) with N labels and N pictures (N, C, H, W) for the projector."""
        step = 0 if global_step is None else int(global_step)
        folder = self._get_file_writer().get_logdir()
        subfolder = f"{step:05d}/{embedding.encode(tag)}"
        self._projector += embedding.write(
            folder, subfolder, step, tag, images.make_np(mat), metadata, label_img, metadata_header
        )
        embedding.put(os.path.join(folder, "projector_config.pbtxt"), self._projector.encode())

    def add_custom_scalars(self, layout: dict[str, Any]) -> None:
        """Says which curves share a chart: {category: {chart: ["Multiline", [tags]]}}.

        "Margin" in place of "Multiline" draws the first tag between the second and the third.
        """
        self._add(summaries.layout(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Says that curves share one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Draws the first curve between the second and the third."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    # -- files --------------------------------------------------------------------------------

    def flush(self) -> None:
        """Writes what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the files; the next `add_…` opens a new one."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
