"""What plain pickles of tensors call, under PyTorch's names: see ``_portable``."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._buffers import keep_buffers
from taeda._tensor_state import get_tensor_metadata, set_tensor_metadata  # noqa: F401

__all__: list[str] = []


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    untyped = storage._untyped_storage
    if untyped.device.type == "meta":  # grows: it has no memory that could be too small
        last = sum((n - 1) * step for n, step in zip(size, stride)) if all(size) else -1
        needed = (storage_offset + last + 1) * storage._dtype.itemsize
        if untyped.nbytes() < needed:
            untyped.resize_(needed)
    else:
        keep_buffers(untyped.nbytes())
    return _C._tensor_from_storage(
        untyped, storage._dtype, storage_offset, tuple(size), tuple(stride)
    )


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    if metadata:
        set_tensor_metadata(tensor, metadata)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_meta_tensor_no_storage(
    dtype: Any, size: Any, stride: Any, requires_grad: bool
) -> Tensor:
    tensor = taeda.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return tensor.requires_grad_(requires_grad)


def _rebuild_wrapper_subclass(
    cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: int, layout: Any, device: Any,
    requires_grad: bool,
) -> Tensor:  # fmt: skip
    return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
        cls, size, strides=stride, storage_offset=storage_offset, layout=layout, device=device,
        requires_grad=requires_grad, dtype=dtype,
    )  # fmt: skip


def _rebuild_nested_tensor(buffer: Tensor, sizes: Tensor, strides: Tensor, offsets: Any) -> Tensor:
    from taeda.serialization._nested import strided

    return strided(buffer, sizes, strides, offsets)


def _rebuild_sparse_tensor(layout: Any, data: tuple) -> Tensor:
    if layout is not taeda.sparse_coo:
        return taeda.sparse_compressed_tensor(*data, layout=layout)
    indices, values, size, *known = data
    return taeda.sparse_coo_tensor(indices, values, size, is_coalesced=bool(known and known[0]))


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any = None) -> Tensor:
    return taeda.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: dict
) -> Tensor:
    parameter = taeda.nn.Parameter(data, requires_grad)
    parameter.__dict__.update(state)
    return parameter


def _element_size(dtype: Any) -> int:
    """Bytes of an element."""
    return dtype.itemsize


# --- what libraries use besides ---


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """The elements of tensors of one dtype, one after the other."""
    return taeda.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple:
    """Views of ``flat`` with the sizes of ``tensors``."""
    parts, start = [], 0
    for tensor in tensors:
        parts.append(flat.narrow(0, start, tensor.numel()).view(tensor.shape))
        start += tensor.numel()
    return tuple(parts)


def _reorder_tensors_as(tensors: Any, ordered_tensors: Any) -> tuple:
    """The first tensors in the order of the others, by their types."""
    found: dict[str, list] = {}
    for tensor in tensors:
        found.setdefault(tensor.type(), []).append(tensor)
    waiting = {kind: iter(row) for kind, row in found.items()}
    return tuple(next(waiting[tensor.type()]) for tensor in ordered_tensors)


def _take_tensors(tensors: Any, size_limit: int) -> Any:
    """Lists of tensors of one type, of about ``size_limit`` bytes each."""
    waiting: dict[str, list] = {}
    for tensor in tensors:
        group = waiting.setdefault(tensor.type(), [])
        size = tensor.numel() * tensor.element_size()
        if group and sum(t.numel() * t.element_size() for t in group) + size > size_limit:
            yield group
            group = waiting[tensor.type()] = []
        group.append(tensor)
    yield from (group for group in waiting.values() if group)


def _get_available_device_type() -> str | None:
    """ "cuda" where there is one, else None."""
    return "cuda" if taeda.cuda.is_available() else None


def _get_all_device_indices() -> list[int]:
    """The numbers of the devices besides the CPU."""
    return list(range(taeda.cuda.device_count()))


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device; of the current one for None where ``optional``, -1 for the CPU where
    ``allow_cpu``."""
    if isinstance(device, str):
        device = taeda.device(device)
    if isinstance(device, taeda.device):
        if device.type == "cpu":
            if allow_cpu:
                return -1
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        device = device.index
    if isinstance(device, int):
        return device
    if not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return taeda.cuda.current_device() if taeda.cuda.is_available() else 0


def _import_dotted_name(name: str) -> Any:
    """What a name with points leads to, from its module on."""
    import importlib
    from functools import reduce

    first, *rest = name.split(".")
    return reduce(getattr, rest, importlib.import_module(first))


class KeyErrorMessage(str):
    """A text that KeyError shows as it is."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised elsewhere; `note` follows that."""

    def __init__(self, exc_info: Any = None, where: str = "in background", note: str = "") -> None:
        import sys
        import traceback

        info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = info[0]
        self.exc_msg = "".join(traceback.format_exception(*info)) + note
        self.where = where

    def reraise(self) -> None:
        """Raises an exception of the type, whose message has the traceback."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        by_name = bool(getattr(self.exc_type, "message", None))
        try:
            exception = self.exc_type(message=message) if by_name else self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        try:
            raise exception
        finally:
            del exception  # its traceback has this frame: a cycle that keeps the caller's alive


class _ClassPropertyDescriptor:
    def __init__(self, fget: Any, fset: Any = None) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        owner = type(instance) if owner is None else owner
        return self.fget.__get__(instance, owner)()


def classproperty(func: Any) -> _ClassPropertyDescriptor:
    """A property of a class."""
    return _ClassPropertyDescriptor(
        func if isinstance(func, (classmethod, staticmethod)) else classmethod(func)
    )
