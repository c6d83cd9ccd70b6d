"""The safetensors format: a JSON header and raw tensor data, nothing that could run.

8 bytes header size, the header ``{name: {"dtype", "shape", "data_offsets"}}`` with an optional
``"__metadata__"`` of texts, then the data without gaps.
https://github.com/huggingface/safetensors
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
from typing import IO, Any

import taeda
from taeda import _C, Tensor
from taeda.serialization._legacy import check_bools
from taeda.serialization._safe_write import write_safely

__all__ = ["load", "load_file", "read_metadata", "save", "save_file"]

_DTYPES = {
    "BOOL": taeda.bool,
    "U8": taeda.uint8,
    "I8": taeda.int8,
    "I16": taeda.int16,
    "I32": taeda.int32,
    "I64": taeda.int64,
    "F16": taeda.float16,
    "BF16": taeda.bfloat16,
    "F32": taeda.float32,
    "F64": taeda.float64,
    "C64": taeda.complex64,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_MAX_HEADER = 100_000_000
_FREE_BYTES = 32 << 20


def save_file(
    tensors: dict[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None
) -> None:
    """Writes tensors to a file, which is replaced only when all is written."""
    header, order = _header(tensors, metadata)

    def write(file: IO[bytes]) -> None:
        file.write(struct.pack("<Q", len(header)) + header)
        for name in order:
            file.write(_content(tensors[name]))

    write_safely(os.fspath(filename), write)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors."""
    header, order = _header(tensors, metadata)
    parts = [struct.pack("<Q", len(header)), header, *(_content(tensors[name]) for name in order)]
    return b"".join(parts)


def _header(tensors: dict[str, Tensor], metadata: dict[str, str] | None) -> tuple[bytes, list]:
    """(the header, the names in the order of their data)"""
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ValueError("save: expected a dict from text to tensors")
        if tensor.dtype not in _NAMES:
            raise ValueError(f"save: {name} has the dtype {tensor.dtype}, which has no name there")
        if tensor.device.type == "meta":
            raise ValueError(f"save: {name} is a meta tensor and has no data")
    # Larger elements first, so that all are aligned.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    fields: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(k, str) and isinstance(v, str) for k, v in metadata.items()):
            raise ValueError("save: metadata must be a dict from text to text")
        fields["__metadata__"] = metadata
    begin = 0
    for name in order:
        tensor = tensors[name]
        end = begin + tensor.numel() * tensor.dtype.itemsize
        fields[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    text = json.dumps(fields, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8), order


def _content(tensor: Tensor) -> bytes:
    data = tensor.detach().cpu().contiguous()
    begin = data.storage_offset() * data.dtype.itemsize
    end = begin + data.numel() * data.dtype.itemsize
    return bytes(memoryview(data.untyped_storage())[begin:end])


def load_file(filename: str | os.PathLike, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file, by name."""
    with open(filename, "rb") as file:
        return _load(file, device)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file, by name."""
    return _load(io.BytesIO(data), "cpu")


def read_metadata(filename: str | os.PathLike) -> dict[str, str]:
    """The texts that were saved beside the tensors."""
    with open(filename, "rb") as file:
        return _read_header(file)[1]


def _fail(text: str) -> RuntimeError:
    return RuntimeError(f"safetensors: {text}")


def _read_header(file: IO[bytes]) -> tuple[dict[str, Any], dict[str, str], int, int]:
    """(entries, metadata, where the data begins, its size), checked"""
    file.seek(0, 2)
    length = file.tell()
    file.seek(0)
    head = file.read(8)
    if len(head) < 8:
        raise _fail("the file is too small for a header")
    (size,) = struct.unpack("<Q", head)
    if size > min(_MAX_HEADER, length - 8):
        raise _fail(f"the header says it has {size} bytes, which is more than there can be")
    text = file.read(size)
    # What parsing can make of it: objects, lists, and numbers in lists.
    cost = 200 * (text.count(b"{") + text.count(b"[")) + 10 * size
    if cost > 2 * length + 10 * min(size, 1 << 20) + _FREE_BYTES:
        raise _fail("the header describes more objects than the file's size allows")
    try:
        fields = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _fail(f"the header is not valid JSON: {str(error)[:200]}") from None
    if not isinstance(fields, dict):
        raise _fail("the header is no object")
    metadata = fields.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _fail("__metadata__ is not an object of texts")
    _check_entries(fields, length - 8 - size)
    return fields, metadata, 8 + size, length - 8 - size


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is there twice")
    return result


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _check_entries(fields: dict[str, Any], size: int) -> None:
    """Each tensor's bytes are as many as its shape needs, and together they fill the data."""
    spans = []
    for name, entry in fields.items():
        where = f"the tensor {name[:80]!r}"
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise _fail(f"{where} is not described by dtype, shape and data_offsets")
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise _fail(f"{where} has an unknown dtype")
        if not isinstance(shape, list) or len(shape) > 64 or not all(map(_is_count, shape)):
            raise _fail(f"{where} has a shape that is none")
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
            raise _fail(f"{where} has offsets that are none")
        begin, end = offsets
        if end - begin != math.prod(shape) * _DTYPES[dtype].itemsize:
            raise _fail(f"{where} has {end - begin} bytes, which its shape and dtype do not need")
        spans.append((begin, end))
    position = 0
    for begin, end in sorted(spans):
        if begin != position:
            raise _fail("tensors overlap or leave a gap")
        position = end
    if position != size:
        raise _fail(f"the data has {size} bytes, but the tensors need {position}")


def _load(file: IO[bytes], device: Any) -> dict[str, Tensor]:
    fields, _, start, _ = _read_header(file)
    tensors = {}
    for name, entry in fields.items():
        begin, end = entry["data_offsets"]
        file.seek(start + begin)
        data = file.read(end - begin)
        if len(data) != end - begin:
            raise _fail("the file is truncated")
        dtype = _DTYPES[entry["dtype"]]
        check_bools(dtype, data)
        stride, strides = 1, []
        for n in reversed(entry["shape"]):
            strides.append(stride)
            stride *= max(n, 1)
        storage = taeda.UntypedStorage(data)
        tensor = _C._tensor_from_storage(storage, dtype, 0, entry["shape"], strides[::-1])
        tensors[name] = tensor if str(device) == "cpu" else tensor.to(device)
    return tensors
