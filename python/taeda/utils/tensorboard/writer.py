"""SummaryWriter: scalars, histograms, pictures and more for TensorBoard."""

from __future__ import annotations

import os
import time
from typing import Any

from . import summary as _summary
from ._embedding import get_embedding_info, make_mat, make_sprite, make_tsv, write_pbtxt
from ._events import open_event_file
from ._graph import graph
from ._images import figure_to_image, make_np
from ._proto import Event, types

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events and summaries to a new event file in a folder.

    Args:
        max_queue: how many events may wait for being written.
        flush_secs: and how long.
        filename_suffix: the end of the file's name.
    """

    def __init__(
        self,
        log_dir: Any,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self._options = (str(log_dir), max_queue, flush_secs, filename_suffix)
        self.event_writer = open_event_file(*self._options)
        self._closed = False

    def get_logdir(self) -> str:
        """The folder."""
        return self._options[0]

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Writes a summary: one of ``utils.tensorboard.summary``, or of the package tensorboard."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: tuple, walltime: float | None = None) -> None:
        found, stats = graph_profile
        self.add_event(Event(graph_def=found.SerializeToString()), None, walltime)
        run = types["TaggedRunMetadata"](tag="step1", run_metadata=stats.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Returns when all is in the file."""
        self.event_writer.flush()

    def close(self) -> None:
        self.event_writer.close()
        self._closed = True

    def reopen(self) -> None:
        """Goes on in a new file where it was closed."""
        if self._closed:
            self.event_writer, self._closed = open_event_file(*self._options), False


def _default_bins() -> list[float]:
    edges, edge = [], 1e-12
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [-e for e in reversed(edges)] + [0] + edges


class SummaryWriter:
    """Writes event files for TensorBoard, with the ``tensorboard`` package's writer where it is
    installed and our own, of the same files, where not.

    Args:
        log_dir: where; "runs/DATE_HOST" with ``comment`` behind it by default.
        purge_step: events from this step on, of a run that broke off, are hidden.
        max_queue: how many events may wait for being written,
        flush_secs: and how long.
        filename_suffix: the end of the files' names.

    >>> import tempfile
    >>> with torch.utils.tensorboard.SummaryWriter(tempfile.mkdtemp()) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (step + 1), step)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            import socket
            from datetime import datetime

            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: Any = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._projector_config = ""
        self._get_file_writer()
        self.default_bins = _default_bins()

    def _open(self, log_dir: Any) -> FileWriter:
        return FileWriter(log_dir, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> Any:
        if self.file_writer is not None and self.all_writers is not None:
            return self.file_writer
        self.file_writer = self._open(self.log_dir)
        self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
        if self.purge_step is not None:
            start = types["SessionLog"](status=1)
            self.file_writer.add_event(Event(file_version="brain.Event:2"), self.purge_step)
            self.file_writer.add_event(Event(session_log=start), self.purge_step)
            self.purge_step = None
        return self.file_writer

    def _add(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def get_logdir(self) -> Any:
        """The folder."""
        return self.log_dir

    def add_hparams(
        self,
        hparam_dict: dict,
        metric_dict: dict,
        hparam_domain_discrete: dict | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Hyperparameters and what came of them, as a run of their own in a folder below.

        Args:
            hparam_dict: names to numbers, text or truth values.
            metric_dict: tags to numbers, which are written as scalars, too.
            hparam_domain_discrete: for names, the values they may have.
            run_name: the folder; the time by default.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        parts = _summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for part in parts:
                writer.file_writer.add_summary(part, global_step)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number at a step; ``new_style`` writes it as a tensor, which may be a double."""
        found = _summary.scalar(
            tag, scalar_value, new_style=new_style, double_precision=double_precision
        )
        self._add(found, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Several numbers under one tag, each as a run of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir() + "/" + main_tag.replace("/", "_") + "_"
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            writer = self.all_writers.get(folder + tag)
            if writer is None:
                writer = self.all_writers[folder + tag] = self._open(folder + tag)
            writer.add_summary(_summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """All of a tensor."""
        self._add(_summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How values are distributed; ``bins`` as ``numpy.histogram`` has them, or "tensorflow"
        for buckets that grow by a tenth."""
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(_summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: Any,
        max: Any,
        num: Any,
        sum: Any,
        sum_squares: Any,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that was counted elsewhere: upper limits and counts of its buckets."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        numbers = (min, max, num, sum, sum_squares)
        found = _summary.histogram_raw(tag, *numbers, bucket_limits, bucket_counts)
        self._add(found, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """An image of floats in [0, 1] or of bytes, [3 or 1, h, w] or as ``dataformats`` says."""
        found = _summary.image(tag, img_tensor, dataformats=dataformats)
        self._add(found, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """A batch of images, side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """An image with frames [x1, y1, x2, y2] and their labels; needs the package Pillow."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        found = _summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(found, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of matplotlib, which is closed, or several."""
        layout = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, layout)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: Any = None,
        fps: int = 4,
        walltime: float | None = None,
    ) -> None:
        """Clips [n, t, c, h, w] as a moving picture; needs the package Pillow."""
        self._add(_summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Samples in [-1, 1]."""
        self._add(_summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Text, in Markdown."""
        self._add(_summary.text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt: Any) -> None:
        raise NotImplementedError(
            "add_onnx_graph: taeda reads no ONNX files; use add_graph with the model"
        )

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """The operators that one run of a model calls, in its modules' scopes."""
        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    @staticmethod
    def _encode(rawstr: str) -> str:
        return rawstr.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Vectors [n, d] for the projector, with a label and a picture [n, c, h, w] for each."""
        mat, step = make_np(mat), 0 if global_step is None else global_step
        if mat.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        subdir = f"{str(step).zfill(5)}/{self._encode(tag)}"
        folder = os.path.join(self._get_file_writer().get_logdir(), subdir)
        if os.path.isdir(folder):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        os.makedirs(folder, exist_ok=True)
        if metadata is not None:
            if len(metadata) != len(mat):
                raise AssertionError("#labels should equal with #data points")
            make_tsv(metadata, folder, metadata_header)
        if label_img is not None:
            if len(label_img) != len(mat):
                raise AssertionError("#images should equal with #data points")
            make_sprite(label_img, folder)
        make_mat(mat, folder)
        self._projector_config += get_embedding_info(metadata, label_img, subdir, step, tag)
        write_pbtxt(self._get_file_writer().get_logdir(), self._projector_config)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision and recall of predictions in [0, 1] for labels 0 and 1."""
        labels, predictions = make_np(labels), make_np(predictions)
        found = _summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._add(found, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """The same from counts at each threshold."""
        positive = (true_positive_counts, false_positive_counts)
        negative = (true_negative_counts, false_negative_counts)
        rows = (*positive, *negative, precision, recall)
        self._add(_summary.pr_curve_raw(tag, *rows, num_thresholds), global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Several scalars in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A scalar between two others."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: dict) -> None:
        """{category: {title: ["Multiline" or "Margin", tags]}}: which charts to show."""
        self._add(_summary.custom_scalars(layout))

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: dict | None = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Points [batch, n, 3], their colours in 0 to 255 and the triangles between them."""
        found = _summary.mesh(tag, vertices, colors, faces, config_dict)
        self._add(found, global_step, walltime)

    def flush(self) -> None:
        """Returns when all is in the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Completes the files; what is added later goes into new ones."""
        self.flush()
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()
