"""Tensors as arrays and pictures."""

from __future__ import annotations

import io
import math
import struct
import zlib
from typing import Any

import numpy as np

import taeda

from ._proto import Summary


def make_np(x: Any) -> np.ndarray:
    """A tensor, array or number as an array; NotImplementedError for anything else."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, taeda.Tensor):
        x = x.detach().cpu()
        return (x.to(taeda.float16) if x.dtype == taeda.bfloat16 else x).numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def make_grid(images: np.ndarray, ncols: int = 8) -> np.ndarray:
    """One image of many, [n, 1 or 3, h, w] -> [3, rows * h, columns * w]."""
    if not isinstance(images, np.ndarray):
        raise AssertionError("plugin error, should pass numpy array here")
    if images.shape[1] == 1:
        images = np.concatenate([images] * 3, 1)
    if images.ndim != 4 or images.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    n, _, h, w = images.shape
    ncols = min(n, ncols)
    rows = math.ceil(n / ncols)
    padded = np.zeros((rows * ncols, 3, h, w), images.dtype)
    padded[:n] = images
    tiles = padded.reshape(rows, ncols, 3, h, w).transpose(2, 0, 3, 1, 4)
    return tiles.reshape(3, rows * h, ncols * w)


def convert_to_HWC(tensor: np.ndarray, input_format: str) -> np.ndarray:
    """An image or a batch of them, laid out as "NCHW", "HWC", "HW" or the like say, as one image
    with the channels last."""
    if len(set(input_format)) != len(input_format):
        raise AssertionError(
            f"You can not use the same dimension shorthand twice. input_format: {input_format}"
        )
    if tensor.ndim != len(input_format):
        raise AssertionError(
            "size of input tensor and input format are different. "
            f"tensor shape: {tensor.shape}, input_format: {input_format}"
        )
    wanted = {4: "NCHW", 3: "HWC", 2: "HW"}[tensor.ndim]
    tensor = tensor.transpose([input_format.upper().find(c) for c in wanted])
    if wanted == "NCHW":
        return make_grid(tensor).transpose(1, 2, 0)
    if wanted == "HW":
        return np.stack([tensor] * 3, 2)
    return np.concatenate([tensor] * 3, 2) if tensor.shape[2] == 1 else tensor


def to_bytes(tensor: np.ndarray) -> np.ndarray:
    """Values in [0, 1] as 0 to 255; bytes stay."""
    scale = 1 if tensor.dtype == np.uint8 else 255
    return (tensor.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def encode_png(pixels: np.ndarray) -> bytes:
    """An [h, w, 1 to 4] image of bytes as a PNG file."""
    h, w, c = pixels.shape
    lines = np.concatenate([np.zeros((h, 1), np.uint8), pixels.reshape(h, w * c)], 1)
    header = struct.pack(">IIBBBBB", w, h, 8, {1: 0, 2: 4, 3: 2, 4: 6}[c], 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    return b"".join([b"\x89PNG\r\n\x1a\n", *chunks])


def make_image(tensor: np.ndarray, rescale: float = 1, rois: Any = None, labels: Any = None) -> Any:
    """A Summary.Image of an [h, w, c] array of bytes, with boxes drawn where ``rois`` gives them.

    Boxes and other scales than 1 need the package Pillow.
    """
    height, width, channels = tensor.shape
    if rescale == 1 and rois is None:
        encoded = encode_png(np.ascontiguousarray(tensor))
    else:
        encoded = _drawn(tensor, rescale, rois, labels)
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=encoded
    )


def _drawn(tensor: np.ndarray, rescale: float, rois: Any, labels: Any) -> bytes:
    from PIL import Image

    image = Image.fromarray(tensor)
    if rois is not None:
        image = draw_boxes(image, rois, labels)
    size = int(tensor.shape[1] * rescale), int(tensor.shape[0] * rescale)
    file = io.BytesIO()
    image.resize(size, Image.Resampling.LANCZOS).save(file, format="PNG")
    return file.getvalue()


def draw_boxes(disp_image: Any, boxes: Any, labels: Any = None) -> Any:
    """The image with a red frame for each of [x1, y1, x2, y2], and perhaps its label."""
    from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(disp_image), ImageFont.load_default()
    for i, (left, top, right, bottom) in enumerate(np.asarray(boxes)[:, :4].tolist()):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        draw.line(corners, width=2, fill="Red")
        if labels is None or not labels[i]:
            continue
        x1, y1, x2, y2 = font.getbbox(labels[i])
        margin = math.ceil(0.05 * (y2 - y1))
        upper = bottom - (y2 - y1) - 2 * margin
        draw.rectangle([(left, upper), (left + x2 - x1, bottom)], fill="Red")
        draw.text((left + margin, upper + margin), labels[i], fill="black", font=font)
    return disp_image


def figure_to_image(figures: Any, close: bool = True) -> np.ndarray:
    """A figure of matplotlib as [3, h, w] bytes; a list of figures as a batch."""
    if isinstance(figures, list):
        return np.stack([figure_to_image(figure, close) for figure in figures])
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figures)
    canvas.draw()
    width, height = figures.canvas.get_width_height()
    pixels = np.frombuffer(canvas.buffer_rgba(), np.uint8).reshape(height, width, 4)
    if close:
        pyplot.close(figures)
    return pixels[:, :, :3].transpose(2, 0, 1)


def arrange_video(video: np.ndarray) -> np.ndarray:
    """[n, t, c, h, w] clips as one of [t, rows * h, columns * w, c], n padded to a power of 2."""
    video = video.astype(np.float32) / 255.0 if video.dtype == np.uint8 else video
    n = video.shape[0]
    padded = 1 << (n - 1).bit_length()
    video = np.concatenate([video, np.zeros((padded - n, *video.shape[1:]), video.dtype)])
    rows = 2 ** ((n.bit_length() - 1) // 2)
    t, c, h, w = video.shape[1:]
    tiles = video.reshape(rows, -1, t, c, h, w).transpose(2, 0, 4, 1, 5, 3)
    return tiles.reshape(t, rows * h, -1, c)
