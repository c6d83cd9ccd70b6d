"""Tensors from what a file says of them, every number checked against the storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._tensor_state import set_tensor_metadata
from taeda.storage import TypedStorage, UntypedStorage

__all__ = ["REBUILD"]

_MAX_DIMS = 64
_MAX_BYTES = 2**63 - 1


def _shown(value: Any) -> str:
    """A value from a file for a message. Never its repr: that may be huge, or take for ever."""
    plain = type(value) in (bool, int) and abs(value) <= _MAX_BYTES
    return repr(value) if plain else f"a value of type {type(value).__name__}"


def _numbers(values: Any, what: str, caller: str) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or len(values) > _MAX_DIMS:
        raise RuntimeError(
            f"{caller}: the {what} of a tensor is {type(values).__name__}, not a tuple"
        )
    for value in values:
        if type(value) is not int or not 0 <= value <= _MAX_BYTES:
            raise RuntimeError(f"{caller}: the {what} of a tensor holds {_shown(value)}")
    return tuple(values)


def check_layout(
    nbytes: int, itemsize: int, offset: Any, size: Any, stride: Any, caller: str = "load"
) -> tuple[int, tuple, tuple]:
    """The layout of a tensor if its elements lie in ``nbytes`` of storage; else RuntimeError."""
    size, stride = _numbers(size, "size", caller), _numbers(stride, "stride", caller)
    if len(size) != len(stride):
        raise RuntimeError(f"{caller}: a tensor of size {size} has strides {stride}")
    if type(offset) is not int or not 0 <= offset <= _MAX_BYTES:
        raise RuntimeError(f"{caller}: a tensor has as its storage offset {_shown(offset)}")
    count, last = 1, offset
    for n, s in zip(size, stride):
        count *= n
        last += (n - 1) * s
    if 0 not in size and count * itemsize > _MAX_BYTES:
        raise RuntimeError(f"{caller}: a tensor of size {size} is too large")
    needed = 0 if 0 in size else (last + 1) * itemsize
    if needed > nbytes or offset * itemsize > nbytes:
        raise RuntimeError(
            f"{caller}: a tensor of size {size}, strides {stride} and storage offset {offset} "
            f"needs {needed} bytes, but its storage has {nbytes}"
        )
    return offset, size, stride


def _tensor(storage: Any, dtype: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """``dtype`` is that of the storage if it is None."""
    if type(storage) is TypedStorage:
        dtype, untyped = dtype or storage._dtype, storage._untyped_storage
    elif type(storage) is UntypedStorage:
        dtype, untyped = dtype or taeda.uint8, storage
    else:
        raise RuntimeError(f"load: a tensor's storage is {type(storage).__name__}")
    offset, size, stride = check_layout(untyped.nbytes(), dtype.itemsize, offset, size, stride)
    if untyped.device.type == "meta":
        return taeda.empty_strided(size, stride, dtype=dtype, device="meta")
    return _C._tensor_from_storage(untyped, dtype, offset, size, stride)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise RuntimeError(f"load: requires_grad is {_shown(value)}")
    return value


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    return _tensor(storage, None, offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    tensor = _with_bits(_rebuild_tensor(storage, offset, size, stride), metadata)
    return _requiring(tensor, requires_grad)


def _rebuild_tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    if not isinstance(dtype, taeda.dtype):
        raise RuntimeError(f"load: the dtype of a tensor is {_shown(dtype)}")
    tensor = _with_bits(_tensor(storage, dtype, offset, size, stride), metadata)
    return _requiring(tensor, requires_grad)


def _with_bits(tensor: Tensor, metadata: Any) -> Tensor:
    """The tensor with the conjugate and the negative bit that a file says it has."""
    if metadata is None:
        return tensor
    if type(metadata) is not dict or not all(type(v) is bool for v in metadata.values()):
        raise RuntimeError(f"load: the metadata of a tensor is {_shown(metadata)}")
    set_tensor_metadata(tensor, metadata)
    return tensor


def _requiring(tensor: Tensor, requires_grad: Any) -> Tensor:
    if _flag(requires_grad):
        tensor.requires_grad_()
    return tensor


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any = None) -> Tensor:
    if not isinstance(data, Tensor):
        raise RuntimeError(f"load: the data of a parameter is {type(data).__name__}")
    return taeda.nn.Parameter(data, _flag(requires_grad))


def _rebuild_parameter_with_state(
    data: Any, requires_grad: Any, backward_hooks: Any, state: Any
) -> Tensor:
    param = _rebuild_parameter(data, requires_grad)
    if not isinstance(state, dict) or not all(type(k) is str for k in state):
        raise RuntimeError("load: the state of a parameter is not a dict of attributes")
    param.__dict__.update(state)
    return param


def _rebuild_meta_tensor_no_storage(
    dtype: Any, size: Any, stride: Any, requires_grad: Any
) -> Tensor:
    if not isinstance(dtype, taeda.dtype):
        raise RuntimeError(f"load: the dtype of a tensor is {_shown(dtype)}")
    _, size, stride = check_layout(_MAX_BYTES, dtype.itemsize, 0, size, stride)
    tensor = taeda.empty_strided(size, stride, dtype=dtype, device="meta")
    return _requiring(tensor, requires_grad)


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    """Every coordinate is compared with the sizes: whoever reads the tensor later trusts it."""
    coo = layout is taeda.sparse_coo
    if not isinstance(layout, taeda.layout) or layout is taeda.strided or type(data) is not tuple:
        raise RuntimeError("load: a sparse tensor has no sparse layout, or no parts")
    *parts, size = data[:-1] if coo and len(data) == 4 else data
    if len(parts) != (2 if coo else 3) or not all(isinstance(p, Tensor) for p in parts):
        raise RuntimeError("load: a sparse tensor's parts are not tensors")
    size = _numbers(tuple(size) if isinstance(size, taeda.Size) else size, "size", "load")
    make: Callable[..., Any] = taeda.sparse_compressed_tensor
    options: dict[str, Any] = {"layout": layout}
    if coo:
        make = taeda.sparse_coo_tensor
        options = {"is_coalesced": _flag(data[3]) if len(data) == 4 else False}
    return make(*parts, size, check_invariants=True, **options)


REBUILD: dict[str, Callable[..., Any]] = {
    "_rebuild_tensor": _rebuild_tensor,
    "_rebuild_tensor_v2": _rebuild_tensor_v2,
    "_rebuild_tensor_v3": _rebuild_tensor_v3,
    "_rebuild_parameter": _rebuild_parameter,
    "_rebuild_parameter_with_state": _rebuild_parameter_with_state,
    "_rebuild_meta_tensor_no_storage": _rebuild_meta_tensor_no_storage,
    "_rebuild_sparse_tensor": _rebuild_sparse_tensor,
}


def parameter(data: Any = None, requires_grad: Any = True) -> Tensor:
    """nn.Parameter, named itself in a file."""
    if data is None:
        return taeda.nn.Parameter(None, _flag(requires_grad))
    return _rebuild_parameter(data, requires_grad)
