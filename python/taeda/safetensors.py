"""The safetensors format: a JSON header and raw tensor data, nothing that could run.

8 bytes header size, the header ``{name: {"dtype", "shape", "data_offsets"}}`` with an optional
``"__metadata__"`` of texts, then the data without gaps. The implementation is that of C++
(``src/io/safetensors.h``).
https://github.com/huggingface/safetensors
"""

from __future__ import annotations

import os
from typing import Any

from taeda import _C, Tensor, complex128

__all__ = ["load", "load_file", "read_metadata", "save", "save_file"]


def save_file(
    tensors: dict[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None
) -> None:
    """Writes tensors to a file, which is replaced only when all is written."""
    _C._save_safetensors(_checked(tensors), metadata, filename)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors."""
    return _C._safetensors_bytes(_checked(tensors), metadata)


def _checked(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the cpu, if the format has names for all of them."""
    result = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ValueError("save: expected a dict from text to tensors")
        if tensor.dtype == complex128:
            raise ValueError(f"save: {name} has the dtype {tensor.dtype}, which has no name there")
        if tensor.device.type == "meta":
            raise ValueError(f"save: {name} is a meta tensor and has no data")
        result[name] = tensor.detach().cpu()
    return result


def load_file(filename: str | os.PathLike, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file, by name."""
    tensors = _C._load_safetensors(filename, True)[0]
    if str(device) == "cpu":
        return tensors
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file, by name."""
    return _C._load_safetensors(data, True)[0]


def read_metadata(filename: str | os.PathLike) -> dict[str, str]:
    """The texts that were saved beside the tensors."""
    return _C._load_safetensors(filename, False)[1]
