"""Summaries: what SummaryWriter writes, as protocol buffers.

Each has ``SerializeToString()`` and can be given to ``FileWriter.add_summary``.
"""

from __future__ import annotations

import io
import json
import struct
import wave
from typing import Any

import numpy as np

import taeda

from ._images import (
    arrange_video,
    convert_to_HWC,
    draw_boxes,
    make_image,
    make_np,
    to_bytes,
)
from ._proto import DTYPES, Summary, metadata, one_value, shape, types

__all__ = [
    "audio",
    "compute_curve",
    "custom_scalars",
    "draw_boxes",
    "half_to_int",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "image_boxes",
    "int_to_half",
    "make_histogram",
    "make_image",
    "make_video",
    "mesh",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
    "tensor_proto",
    "text",
    "video",
]


def half_to_int(f: float) -> int:
    """The bits of a number as a float, as an integer."""
    return struct.unpack("i", struct.pack("f", f))[0]


def int_to_half(i: int) -> float:
    """The reverse of half_to_int."""
    return struct.unpack("f", struct.pack("i", i))[0]


# --- numbers ---


def scalar(
    name: str,
    tensor: Any,
    collections: Any = None,
    new_style: bool = False,
    double_precision: bool = False,
) -> Any:
    """One number; AssertionError for several."""
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). "
            f"Was given size: {array.size} and {array.ndim} dimensions."
        )
    value = float(array)
    if not new_style:
        return one_value(tag=name, simple_value=value)
    kind = "float64" if double_precision else "float32"
    field = "double_val" if double_precision else "float_val"
    proto = types["TensorProto"](dtype=DTYPES[kind], **{field: [value]})
    return one_value(tag=name, tensor=proto, metadata=metadata("scalars"))


_FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint8": "uint32_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
}


def tensor_proto(tag: str, tensor: Any) -> Any:
    """All of a tensor; ValueError from 2 GB on and for dtypes that TensorFlow lacks."""
    if tensor.numel() * tensor.itemsize >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    flat = taeda.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    values = flat.flatten().tolist()
    field = _FIELDS.get(name, "int_val")
    if field == "half_val":
        values = [half_to_int(v) for v in values]
    proto = types["TensorProto"](
        dtype=DTYPES[name], tensor_shape=shape(tensor.shape), **{field: values}
    )
    return one_value(tag=tag, metadata=metadata("tensor"), tensor=proto)


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: float,
    sum: float,
    sum_squares: float,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Any:
    """A histogram by its buckets' upper limits and counts."""
    numbers = {"min": min, "max": max, "num": num, "sum": sum, "sum_squares": sum_squares}
    limits, counts = (np.asarray(x).tolist() for x in (bucket_limits, bucket_counts))
    proto = types["HistogramProto"](
        **{key: float(make_np(value).item()) for key, value in numbers.items()},
        bucket_limit=limits,
        bucket=counts,
    )
    return one_value(tag=name, histo=proto)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """A histogram of values; ``bins`` as ``numpy.histogram`` has them."""
    proto = make_histogram(make_np(values).astype(float), bins, max_bins)
    return one_value(tag=name, histo=proto)


def make_histogram(values: np.ndarray, bins: Any, max_bins: int | None = None) -> Any:
    """A HistogramProto of the buckets from the first to the last with elements, and one before."""
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = _coarser(counts, limits, len(counts) // max_bins)
    filled = np.flatnonzero(counts)
    if filled.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = int(filled[0]), int(filled[-1])
    before = counts[first - 1 : first] if first > 0 else np.zeros(1, counts.dtype)
    return types["HistogramProto"](
        min=float(values.min()),
        max=float(values.max()),
        num=float(len(values)),
        sum=float(values.sum()),
        sum_squares=float(values.dot(values)),
        bucket_limit=limits[first : last + 2].tolist(),
        bucket=np.concatenate([before, counts[first : last + 1]]).tolist(),
    )


def _coarser(counts: np.ndarray, limits: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
    starts = np.arange(0, len(counts), step)
    return np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])


# --- pictures and sounds ---


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """An image, or one of a batch; floats in [0, 1] or bytes."""
    pixels = to_bytes(convert_to_HWC(make_np(tensor), dataformats))
    return one_value(tag=tag, image=make_image(pixels, rescale))


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Any = None,
) -> Any:
    """An image with boxes [x1, y1, x2, y2]."""
    pixels = to_bytes(convert_to_HWC(make_np(tensor_image), dataformats))
    drawn = make_image(pixels, rescale, make_np(tensor_boxes), labels)
    return one_value(tag=tag, image=drawn)


def video(tag: str, tensor: Any, fps: int = 4) -> Any:
    """Clips [n, t, c, h, w] as a GIF."""
    pixels = to_bytes(arrange_video(make_np(tensor)))
    return one_value(tag=tag, image=make_video(pixels, fps))


def make_video(tensor: np.ndarray, fps: int) -> Any:
    """A Summary.Image with the GIF of [t, h, w, c] bytes; needs the package Pillow."""
    from PIL import Image

    frames = [Image.fromarray(np.ascontiguousarray(frame.squeeze())) for frame in tensor]
    file, (_, h, w, c) = io.BytesIO(), tensor.shape
    options: dict[str, Any] = {"duration": round(1000 / fps), "loop": 0}
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], **options)
    return Summary.Image(height=h, width=w, colorspace=c, encoded_image_string=file.getvalue())


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """Samples in [-1, 1] as a WAV file."""
    samples = make_np(tensor).squeeze()
    if abs(samples).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        samples = samples.clip(-1, 1)
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, sample_rate, 0, "NONE", ""))
        sound.writeframes((samples * np.iinfo(np.int16).max).astype("<i2").tobytes())
    proto = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return one_value(tag=tag, audio=proto)


# --- text and curves ---


def _text_tensor(text: str | bytes, *sizes: int) -> Any:
    return types["TensorProto"](
        dtype=DTYPES["string"], string_val=[text], tensor_shape=shape(sizes)
    )


def text(tag: str, text: str) -> Any:
    """Text, in Markdown."""
    about = metadata("text", b"")
    return one_value(tag=tag + "/text_summary", metadata=about, tensor=_text_tensor(text, 1))


def custom_scalars(layout: dict) -> Any:
    """How TensorBoard shall arrange scalars:
    {category: {title: ["Multiline" or "Margin", tags]}}."""
    categories = [
        types["Category"](title=category, chart=[_chart(t, *c) for t, c in charts.items()])
        for category, charts in layout.items()
    ]
    content = types["Layout"](category=categories).SerializeToString()
    about = metadata("custom_scalars")
    tag = "custom_scalars__config__"
    return one_value(tag=tag, tensor=_text_tensor(content), metadata=about)


def _chart(title: str, kind: str, tags: list[str]) -> Any:
    if kind != "Margin":
        return types["Chart"](title=title, multiline=types["MultilineChartContent"](tag=list(tags)))
    if len(tags) != 3:
        raise AssertionError("len(tags) != 3")
    series = types["Series"](value=tags[0], lower=tags[1], upper=tags[2])
    return types["Chart"](title=title, margin=types["MarginChartContent"](series=[series]))


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Any:
    """Precision and recall of predictions in [0, 1], at 127 thresholds at most."""
    num_thresholds = min(num_thresholds, 127)
    return _curve(tag, compute_curve(labels, predictions, num_thresholds, weights), num_thresholds)


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Any:
    """The same from counts at each threshold."""
    rows = [make_np(row) for row in (tp, fp, tn, fn, precision, recall)]
    return _curve(tag, np.stack(rows), min(num_thresholds, 127))


def _curve(tag: str, data: np.ndarray, num_thresholds: int) -> Any:
    about = types["PrCurvePluginData"](num_thresholds=num_thresholds).SerializeToString()
    proto = types["TensorProto"](
        dtype=DTYPES["float32"],
        float_val=data.reshape(-1).tolist(),
        tensor_shape=shape(data.shape),
    )
    return one_value(tag=tag, metadata=metadata("pr_curves", about), tensor=proto)


def compute_curve(
    labels: np.ndarray,
    predictions: np.ndarray,
    num_thresholds: int | None = None,
    weights: Any = None,
) -> np.ndarray:
    """[6, thresholds]: true and false positives, true and false negatives, precision, recall."""
    bins = num_thresholds or 127
    weights = 1.0 if weights is None else weights
    bucket = np.int32(np.floor(predictions * (bins - 1)))
    positive = labels.astype(np.float64)

    def at_least(weight: Any) -> np.ndarray:
        counts, _ = np.histogram(bucket, bins=bins, range=(0, bins - 1), weights=weight * weights)
        return np.cumsum(counts[::-1])[::-1]

    tp, fp = at_least(positive), at_least(1.0 - positive)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision = tp / np.maximum(1e-7, tp + fp)
    recall = tp / np.maximum(1e-7, tp + fn)
    return np.stack((tp, fp, tn, fn, precision, recall))


def mesh(
    tag: str,
    vertices: Any,
    colors: Any,
    faces: Any,
    config_dict: dict | None,
    display_name: str | None = None,
    description: str | None = None,
) -> Any:
    """Points [batch, n, 3], their colours and the triangles between them."""
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    kinds = {"VERTEX": (1, vertices), "FACE": (2, faces), "COLOR": (3, colors)}
    there = {name: kind for name, kind in kinds.items() if kind[1] is not None}
    components = sum(1 << number for number, _ in there.values())
    values = []
    for name, (number, tensor) in there.items():
        array = make_np(tensor)
        about = types["MeshPluginData"](
            name=tag,
            content_type=number,
            json_config=config,
            shape=list(array.shape),
            components=components,
        )
        shown = {"display_name": display_name, "summary_description": description}
        proto = types["TensorProto"](
            dtype=DTYPES["float32"],
            float_val=array.reshape(-1).tolist(),
            tensor_shape=shape(array.shape),
        )
        values.append(
            Summary.Value(
                tag=f"{tag}_{name}",
                tensor=proto,
                metadata=metadata("mesh", about.SerializeToString(), **shown),
            )
        )
    return Summary(value=values)


# --- hyperparameters ---

# What HParamInfo calls the types of values; truth values are numbers, as in PyTorch.
_STRING, _FLOAT64 = 1, 3


def _hparam(value: Any) -> tuple[int, Any]:
    """(the type, the Value)"""
    if isinstance(value, taeda.Tensor):
        value = make_np(value).reshape(-1)[0]
    if isinstance(value, str):
        return _STRING, types["Value"](string_value=value)
    if isinstance(value, (int, float, np.number)):
        return _FLOAT64, types["Value"](number_value=float(value))
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def hparams(
    hparam_dict: dict | None = None,
    metric_dict: dict | None = None,
    hparam_domain_discrete: dict | None = None,
) -> tuple[Any, Any, Any]:
    """Three summaries: the experiment's parameters and metrics, its beginning, its end.

    Args:
        hparam_domain_discrete: for names of parameters, the values that they may have.
    """
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    assert hparam_dict is not None and metric_dict is not None
    domains = _checked_domains(hparam_dict, hparam_domain_discrete or {})
    infos, entries = [], []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        kind, proto = _hparam(value)
        domain = [_hparam(v)[1] for v in domains[name]] if name in domains else None
        listed = None if domain is None else types["ListValue"](values=domain)
        infos.append(types["HParamInfo"](name=name, type=kind, domain_discrete=listed))
        entries.append(types["HParamEntry"](key=name, value=proto))
    metrics = [types["MetricInfo"](name=types["MetricName"](tag=tag)) for tag in metric_dict]
    return (
        _hparams_summary(experiment=types["Experiment"](hparam_infos=infos, metric_infos=metrics)),
        _hparams_summary(session_start_info=types["SessionStartInfo"](hparams=entries)),
        _hparams_summary(session_end_info=types["SessionEndInfo"](status=1)),  # success
    )


def _hparams_summary(**part: Any) -> Any:
    content = types["HParamsPluginData"](**part).SerializeToString()
    return one_value(tag=f"_hparams_/{next(iter(part))}", metadata=metadata("hparams", content))


def _checked_domains(hparam_dict: dict, domains: Any) -> dict:
    if not isinstance(domains, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    for key, values in domains.items():
        known = key in hparam_dict and isinstance(values, list)
        if not known or not all(isinstance(v, type(hparam_dict[key])) for v in values):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{key}] should be a list of same type as "
                f"hparam_dict[{key}]."
            )
    return domains
