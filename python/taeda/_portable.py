"""Plain pickles of tensors, which open in PyTorch as well as here.

A pickle names what rebuilds an object by module and name, and only one of the two frameworks may
be there where it is opened. So the module is written as an expression of the standard library's:
of "taeda" and "torch" the first that is imported already, else the first that can be. The rest are
functions that both have, under PyTorch's names.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import taeda
from taeda._buffers import keep_buffers
from taeda._tensor_state import get_tensor_metadata, state_of

__all__ = ["reduce_storage", "reduce_tensor", "reduce_typed_storage"]


class Later:
    """A call that is made where the pickle is opened; `args` may hold more of them.

    It can be called itself, since what ``__reduce__`` gives first is: that makes the call here.
    """

    __slots__ = ("reduced",)

    def __init__(self, function: Callable, *args: Any) -> None:
        self.reduced = function, args

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return self.reduced

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        named = {name: _value(value) for name, value in kwargs.items()}
        return _value(self)(*map(_value, args), **named)


def _value(x: Any) -> Any:
    if not isinstance(x, Later):
        return x
    function, args = x.reduced
    return _value(function)(*map(_value, args))


_FRAMEWORKS = ("taeda", "torch")
_imported = Later(getattr, Later(importlib.import_module, "sys"), "modules")
_framework = Later(
    next,
    Later(
        itertools.chain,
        Later(filter, Later(getattr, _imported, "__contains__"), _FRAMEWORKS),
        Later(filter, importlib.util.find_spec, _FRAMEWORKS),
    ),
)


@functools.cache
def _named(module: str, name: str) -> Later:
    """What both frameworks have in a module, which is named from a dot on."""
    return Later(getattr, Later(importlib.import_module, module, _framework), name)


def _dtype(dtype: Any) -> Later:
    return _named(".", str(dtype).removeprefix("torch."))


def _class(kind: type) -> Any:
    """A class of ours by its name in both; any other as it is."""
    if kind is taeda.Tensor:
        return _named(".", "Tensor")
    package, _, module = kind.__module__.partition(".")
    return _named("." + module, kind.__name__) if package in _FRAMEWORKS else kind


def on_host(storage: Any) -> Any:
    """The storage, or a copy of another device's in the host's memory."""
    if storage.device.type == "cpu":
        return storage
    from taeda._storage_methods import elements

    return elements(storage).cpu().untyped_storage()


def reduce_storage(storage: Any) -> tuple:
    """What ``UntypedStorage.__reduce__`` gives: its bytes."""
    if storage.device.type == "meta":
        return functools.partial(_named(".", "UntypedStorage"), device="meta"), (storage.nbytes(),)
    if storage.device.type != "cpu":
        data = bytes(on_host(storage))
        make = functools.partial(_named(".", "UntypedStorage"), device=str(storage.device))
        return make, (data,)
    keep_buffers(storage.nbytes())
    data = bytes(storage)
    args = (data, sys.byteorder, len(data), 0, _dtype(taeda.uint8))
    return Later(getattr, _named(".", "UntypedStorage"), "from_buffer"), args


def reduce_typed_storage(untyped: Any, dtype: Any) -> tuple:
    kind = _named(".storage", "TypedStorage")
    make = functools.partial(kind, wrap_storage=untyped, dtype=_dtype(dtype), _internal=True)
    return make, ()


def sparse_parts(tensor: Any) -> tuple:
    """What _rebuild_sparse_tensor takes: the layout, and the parts with what is known of them."""
    if tensor.is_sparse:
        parts: tuple = (tensor._indices(), tensor._values())
        return tensor.layout, (*parts, tensor.size(), tensor.is_coalesced())
    by_rows = tensor.layout in (taeda.sparse_csr, taeda.sparse_bsr)
    parts = (
        (tensor.crow_indices(), tensor.col_indices())
        if by_rows
        else (tensor.ccol_indices(), tensor.row_indices())
    )
    return tensor.layout, (*parts, tensor._values(), tensor.size())


def _reduce_plain(tensor: Any) -> tuple:
    if tensor.layout is not taeda.strided:
        return _named("._utils", "_rebuild_sparse_tensor"), sparse_parts(tensor)
    requires_grad = tensor.requires_grad
    size, stride = tuple(tensor.size()), tensor.stride()
    if tensor.is_meta:
        rebuild = _named("._utils", "_rebuild_meta_tensor_no_storage")
        return rebuild, (_dtype(tensor.dtype), size, stride, requires_grad)
    make, _ = reduce_typed_storage(tensor.detach().untyped_storage(), tensor.dtype)
    offset = tensor.storage_offset()
    args: tuple = (Later(make), offset, size, stride, requires_grad, OrderedDict())
    if metadata := get_tensor_metadata(tensor):
        args = (*args, metadata)
    return _named("._utils", "_rebuild_tensor_v2"), args


def is_wrapper(tensor: Any) -> bool:
    """Whether its class answers for a tensor that has no memory of its own."""
    if not taeda._C._has_torch_dispatch(tensor) or tensor.is_meta or not tensor.numel():
        return False
    return tensor.data_ptr() == 0


def reduce_sent(tensor: Any, frame: Any) -> tuple | None:
    """What a pickler of multiprocessing's gets, if it is one that asks, in the call of this frame:
    one that was made before ``taeda.multiprocessing`` told it how tensors share their memory."""
    reduction = sys.modules.get("multiprocessing.reduction")
    kinds = taeda.Tensor, taeda.nn.Parameter, taeda.nn.Buffer
    if reduction is None or type(tensor) not in kinds:
        return None
    if frame.f_code not in (reduction.ForkingPickler.dumps.__code__, reduction.dump.__code__):
        return None
    importlib.import_module("taeda.multiprocessing")
    return pickle.loads, (bytes(reduction.ForkingPickler.dumps(tensor)),)


def reduce_tensor(tensor: Any) -> tuple:
    """What ``Tensor.__reduce_ex__`` gives: storage, layout, class and attributes."""
    kind, state = type(tensor), state_of(tensor)
    if kind is taeda.nn.Parameter:
        data = Later(*_flat(_reduce_plain(tensor.detach())))
        args: tuple = (data, tensor.requires_grad, OrderedDict())
        if not state:
            return _named("._utils", "_rebuild_parameter"), args
        return _named("._utils", "_rebuild_parameter_with_state"), (*args, state)
    if is_wrapper(tensor):
        layout = _named(".", str(tensor.layout).removeprefix("torch."))
        device = Later(_named(".", "device"), str(tensor.device))
        rebuild = _named("._utils", "_rebuild_wrapper_subclass")
        args = (
            _class(kind), _dtype(tensor.dtype), tuple(tensor.size()), tensor.stride(),
            tensor.storage_offset(), layout, device, tensor.requires_grad,
        )  # fmt: skip
    else:
        rebuild, args = _reduce_plain(tensor)
    if kind is taeda.Tensor and not state:
        return rebuild, args
    from_type = _named("._tensor", "_rebuild_from_type_v2")
    return from_type, (rebuild, _class(kind), args, state)


def _flat(reduced: tuple) -> tuple:
    return reduced[0], *reduced[1]
