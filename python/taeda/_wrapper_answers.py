"""Wrapper subclasses that answer for their own sizes, strides, device or layout: the arguments
``dispatch_sizes_strides_policy``, ``dispatch_device`` and ``dispatch_layout`` of
``Tensor._make_wrapper_subclass``.

Their class gets the methods and properties below, which ask the `__torch_dispatch__` of an instance
that was made so, and Tensor's own for others. What C++ computes (autograd's metadata, contracts)
takes the metadata with which the instance was made.
"""

from __future__ import annotations

import functools
from typing import Any

import taeda
from taeda import Tensor
from taeda._library import prim  # noqa: F401 (defines prim::device)

__all__ = ["answers", "check_policy"]

_POLICIES = ("strides", "sizes")  # the second includes the first


def check_policy(policy: Any) -> None:
    """TypeError or ValueError for what is no policy."""
    if not isinstance(policy, str):
        raise TypeError(
            "_make_wrapper_subclass(): argument 'dispatch_sizes_strides_policy' must be str, not "
            f"{type(policy).__name__}"
        )
    if policy not in _POLICIES:
        raise ValueError(f"Unknown sizes_strides_policy: {policy}; expected 'strides' or 'sizes'")


def _asks(x: Tensor, what: str) -> bool:
    return what in x.__dict__.get("_answers_for", ())


def _answer(x: Any, name: str, *args: Any) -> Any:
    """What the class says to aten::name(x), or to prim::name(x)."""
    space, _, name = name.rpartition("::")
    packet, kind = getattr(getattr(taeda.ops, space or "aten"), name), type(x)
    op = packet.memory_format if args else packet.default
    answer = kind.__torch_dispatch__(op, (kind,), (x, *args), {})
    if answer is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{space or 'aten'}.{name}'; all "
            f"__torch_dispatch__ handlers returned NotImplemented:\n  - tensor subclass {kind}"
        )
    return answer


def _method(name: str, what: str, asked: str, make: Any = lambda answer: answer) -> Any:
    """Tensor's method `name`, which asks aten::asked; with a dimension it gives that item."""
    own = getattr(Tensor, name)

    @functools.wraps(own)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _asks(self, what):
            return own(self, *args, **kwargs)
        dim = kwargs.get("dim", args[0] if args else None)
        if isinstance(dim, int):
            _answer(self, "dim") if what == "sizes" else None
            return _answer(self, asked)[dim]
        return make(_answer(self, asked))

    return method


def _is_contiguous(self: Any, memory_format: Any = None) -> bool:
    if not _asks(self, "strides"):
        given = () if memory_format is None else (memory_format,)
        return Tensor.is_contiguous(self, *given)
    if memory_format in (None, taeda.contiguous_format):
        return bool(_answer(self, "is_contiguous"))
    return bool(_answer(self, "is_contiguous", memory_format))


def _property(name: str, asked: str, make: Any, what: str = "sizes") -> property:
    own: Any = getattr(Tensor, name)
    return property(
        lambda self: make(_answer(self, asked)) if _asks(self, what) else own.__get__(self)
    )


def answers(x: Any, policy: str | None, device: bool, layout: bool) -> Any:
    """The instance, whose class is asked for these from now on."""
    kind = type(x)
    for name, member in _members().items():
        if getattr(kind, name) is getattr(Tensor, name):
            setattr(kind, name, member)
    asked = _POLICIES[: _POLICIES.index(policy) + 1] if policy else ()
    x.__dict__["_answers_for"] = (*asked, *["device"] * device, *["layout"] * layout)
    return x


@functools.cache
def _members() -> dict[str, Any]:
    def of_device(name: str, make: Any) -> property:
        return _property(name, "prim::device", make, "device")

    def length(self: Any) -> int:
        return self.size(0) if _asks(self, "sizes") else Tensor.__len__(self)

    def nbytes(self: Any) -> int:
        count = _answer(self, "numel") if _asks(self, "sizes") else Tensor.numel(self)
        return int(count) * self.itemsize

    def get_device(self: Any) -> int:
        if not _asks(self, "device"):
            return Tensor.get_device(self)
        where = _answer(self, "prim::device")
        return -1 if where.index is None else where.index

    return {
        "shape": _property("shape", "sym_size", taeda.Size),
        "ndim": _property("ndim", "dim", int),
        "size": _method("size", "sizes", "sym_size", taeda.Size),
        "stride": _method("stride", "strides", "sym_stride", tuple),
        "is_contiguous": _is_contiguous,
        "storage_offset": _method("storage_offset", "sizes", "sym_storage_offset", int),
        "dim": _method("dim", "sizes", "dim", int),
        "numel": _method("numel", "sizes", "sym_numel", int),
        "nelement": _method("nelement", "sizes", "sym_numel", int),
        "__len__": length,
        "device": of_device("device", lambda where: where),
        "get_device": get_device,
        "layout": _property("layout", "prim::layout", lambda layout: layout, "layout"),
        "nbytes": property(nbytes),
        **{
            f"is_{kind}": of_device(f"is_{kind}", lambda where, kind=kind: where.type == kind)
            for kind in ("cpu", "cuda", "meta")
        },
    }
