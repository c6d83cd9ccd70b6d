"""Batches from lists of samples."""

from __future__ import annotations

import collections.abc
import copy
import re
from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C, Tensor

from . import worker

__all__ = ["collate", "default_collate", "default_convert"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_numpy(value: Any) -> bool:
    # Asked by name, so that NumPy is not imported for data that has none.
    return type(value).__module__ == "numpy" and type(value).__name__ not in ("str_", "bytes_")


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def default_convert(data: Any) -> Any:
    """A sample with its NumPy arrays as tensors: what `DataLoader` does with ``batch_size=None``.

    Args:
        data: an array, or lists, tuples, named tuples and dicts with arrays in them at any depth.
            Tuples become lists; arrays of strings and all else are left as they are.

    >>> torch.utils.data.default_convert({"x": [1.5, "a"]})
    {'x': [1.5, 'a']}
    """
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        if hasattr(data, "shape") and np_str_obj_array_pattern.search(data.dtype.str) is not None:
            return data
        return taeda.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(item) for item in data])
    return data


def _like_mapping(template: Any, values: dict) -> Any:
    """``values`` in a mapping of the template's type, if it can be made."""
    try:
        if isinstance(template, collections.abc.MutableMapping):
            clone = copy.copy(template)
            clone.update(values)
            return clone
        return type(template)(values)
    except TypeError:  # a type that takes other arguments
        return values


def _like_sequence(template: Any, values: list) -> Any:
    try:
        if isinstance(template, collections.abc.MutableSequence):
            clone = copy.copy(template)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        return type(template)(values)
    except TypeError:  # range, or a type that takes other arguments
        return values


def collate(batch: Any, *, collate_fn_map: dict | None = None) -> Any:
    """A batch from samples: by the function for their type, or element by element in containers."""
    elem = batch[0]
    elem_type = type(elem)
    if collate_fn_map is not None:
        function = collate_fn_map.get(elem_type)
        if function is None:
            for kind, candidate in collate_fn_map.items():
                if isinstance(elem, kind):
                    function = candidate
                    break
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
        if _is_numpy(elem):
            return collate_numpy_fn(batch, collate_fn_map=collate_fn_map)
    if isinstance(elem, collections.abc.Mapping):
        columns = {key: [sample[key] for sample in batch] for key in elem}
        values = {k: collate(v, collate_fn_map=collate_fn_map) for k, v in columns.items()}
        return _like_mapping(elem, values)
    if _is_namedtuple(elem):
        return elem_type(*(collate(s, collate_fn_map=collate_fn_map) for s in zip(*batch)))
    if isinstance(elem, collections.abc.Sequence):
        if not all(len(sample) == len(elem) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns_ = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return columns_ if isinstance(elem, tuple) else _like_sequence(elem, columns_)
    raise TypeError(default_collate_err_msg_format.format(elem_type))


def collate_tensor_fn(batch: Any, *, collate_fn_map: dict | None = None) -> Tensor:
    """Tensors stacked along a new first dimension; in a worker, in memory that can be sent."""
    if worker._channel is None:
        return taeda.stack(batch, 0)
    out = _shared_out(batch)
    if out is None:
        return taeda.stack(batch, 0)
    if out.nbytes < _LARGE_SAMPLE_BYTES * len(batch):
        return taeda.stack(batch, 0, out=out)
    for row, x in zip(out.unbind(0), batch):
        row.copy_(x)
    return out


_LEAST_SHARED_BYTES = 1 << 15  # below, a copy costs less
_LARGE_SAMPLE_BYTES = 1 << 13  # above, a call for each costs less than stack's own memory


def _shared_out(batch: Any) -> Tensor | None:
    """Memory for the stack of plain tensors of one kind; None for others."""
    first = batch[0]
    shape, dtype = first.shape, first.dtype
    nbytes = len(batch) * first.numel() * dtype.itemsize
    if nbytes <= _LEAST_SHARED_BYTES:
        return None
    for x in batch:
        if (
            type(x) is not Tensor or x.requires_grad or x.shape != shape or x.dtype is not dtype
            or not x.is_cpu or x.layout is not taeda.strided
        ):  # fmt: skip
            return None
    storage = worker.shared_storage(nbytes)
    if storage is None:
        return None
    size = (len(batch), *shape)
    strides = [1]
    for n in size[:0:-1]:
        strides.append(strides[-1] * n)
    return _C._tensor_from_storage(storage, dtype, 0, size, strides[::-1])


def collate_numpy_fn(batch: Any, *, collate_fn_map: dict | None = None) -> Any:
    """Arrays stacked as tensors; scalars as a vector."""
    elem = batch[0]
    if np_str_obj_array_pattern.search(elem.dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(elem.dtype))
    if type(elem).__name__ == "ndarray":
        return collate([taeda.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)
    return taeda.as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: dict | None = None) -> Tensor:
    return taeda.tensor(batch, dtype=taeda.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: dict | None = None) -> Tensor:
    return taeda.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: dict | None = None) -> Any:
    return batch


default_collate_fn_map: dict[Any, Callable] = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """The batch of a list of samples: what `DataLoader` does where no ``collate_fn`` is given.

    Tensors and arrays of the same sizes are stacked along a new first dimension, numbers become a
    vector (floats of float64, integers of int64), tuples, lists and dicts are combined
    element by element, and strings and bytes stay a list.

    Args:
        batch: samples of one structure.

    Raises:
        RuntimeError: tensors differ in size, or sequences in length.
        TypeError: for elements of other types; `default_collate_fn_map` can be extended.

    >>> torch.utils.data.default_collate([(torch.ones(2), 3), (torch.zeros(2), 4)])
    [tensor([[1., 1.],
            [0., 0.]]), tensor([3, 4])]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
