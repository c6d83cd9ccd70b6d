"""The files of TensorBoard's projector: vectors, their labels and pictures."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import numpy as np

from ._images import encode_png, make_grid, make_np, to_bytes


def _write(folder: str, name: str, data: str | bytes) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)


def make_mat(matlist: Any, save_path: str) -> None:
    """tensors.tsv: a vector a line."""
    lines = ("\t".join(str(v.item()) for v in row) for row in matlist)
    _write(save_path, "tensors.tsv", "".join(line + "\n" for line in lines))


def make_tsv(metadata: Any, save_path: str, metadata_header: Any = None) -> None:
    """metadata.tsv: a label a line, or columns under a header."""
    if metadata_header:
        if len(metadata_header) != len(metadata[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        metadata = ["\t".join(map(str, row)) for row in [metadata_header, *metadata]]
    _write(save_path, "metadata.tsv", "\n".join(map(str, metadata)) + "\n")


def make_sprite(label_img: Any, save_path: str) -> None:
    """sprite.png: the pictures [n, c, h, w] in a square."""
    images = make_np(label_img)
    columns = math.ceil(images.shape[0] ** 0.5)
    grid = make_grid(images, ncols=columns).transpose(1, 2, 0)
    square = np.zeros((grid.shape[1], grid.shape[1], 3))
    square[: grid.shape[0]] = grid
    _write(save_path, "sprite.png", encode_png(to_bytes(square)))


def get_embedding_info(
    metadata: Any, label_img: Any, subdir: str, global_step: int, tag: str
) -> str:
    """The projector's configuration for one matrix, in the text format of protocol buffers."""
    fields = {"tensor_name": f"{tag}:{str(global_step).zfill(5)}"}
    if metadata is not None:
        fields["metadata_path"] = f"{subdir}/metadata.tsv"
    lines = [f"  {name}: {json.dumps(value)}\n" for name, value in fields.items()]
    if label_img is not None:
        path = json.dumps(f"{subdir}/sprite.png")
        lines.append(f"  sprite {{\n    image_path: {path}\n")
        sizes = (label_img.shape[3], label_img.shape[2])
        lines += [f"    single_image_dim: {size}\n" for size in sizes]
        lines.append("  }\n")
    lines.append(f"  tensor_path: {json.dumps(subdir + '/tensors.tsv')}\n")
    return "embeddings {\n" + "".join(lines) + "}\n"


def write_pbtxt(save_path: str, contents: str) -> None:
    """projector_config.pbtxt."""
    _write(save_path, "projector_config.pbtxt", contents)
