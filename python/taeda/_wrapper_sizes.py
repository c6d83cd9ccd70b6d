"""Wrapper subclasses that answer for their own sizes and strides: the argument
``dispatch_sizes_strides_policy`` of ``Tensor._make_wrapper_subclass``.

Their class gets the methods below, which ask the `__torch_dispatch__` of an instance that was made
with a policy, and Tensor's own for others. What C++ computes (autograd's metadata, contracts) takes
the sizes with which the instance was made.
"""

from __future__ import annotations

import functools
from typing import Any

import taeda
from taeda import Tensor

__all__ = ["answers_for_sizes", "check_policy"]

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


def _asks(x: Tensor, policy: str) -> bool:
    has = x.__dict__.get("_sizes_strides_policy")
    return has is not None and _POLICIES.index(has) >= _POLICIES.index(policy)


def _answer(x: Any, name: str) -> Any:
    """What the class says to aten::name(x)."""
    op, kind = getattr(taeda.ops.aten, name).default, type(x)
    answer = kind.__torch_dispatch__(op, (kind,), (x,), {})
    if answer is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.aten.{name}'; all __torch_dispatch__ "
            f"handlers returned NotImplemented:\n  - tensor subclass {kind}"
        )
    return answer


def _method(name: str, policy: str, asked: str, make: Any = lambda answer: answer) -> Any:
    """Tensor's method `name`, which asks aten::asked; with a dimension it gives that item."""
    own = getattr(Tensor, name)

    @functools.wraps(own)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _asks(self, policy):
            return own(self, *args, **kwargs)
        dim = kwargs.get("dim", args[0] if args else None)
        if isinstance(dim, int):
            _answer(self, "dim") if policy == "sizes" else None
            return _answer(self, asked)[dim]
        return make(_answer(self, asked))

    return method


def _property(name: str, asked: str, make: Any) -> property:
    own: Any = getattr(Tensor, name)
    return property(
        lambda self: make(_answer(self, asked)) if _asks(self, "sizes") else own.__get__(self)
    )


def answers_for_sizes(x: Any, policy: str) -> Any:
    """The instance, whose class is asked for its sizes and strides from now on."""
    kind = type(x)
    for name, member in _members().items():
        if getattr(kind, name) is getattr(Tensor, name):
            setattr(kind, name, member)
    x.__dict__["_sizes_strides_policy"] = policy
    return x


@functools.cache
def _members() -> dict[str, Any]:
    return {
        "shape": _property("shape", "sym_size", taeda.Size),
        "ndim": _property("ndim", "dim", int),
        "size": _method("size", "sizes", "sym_size", taeda.Size),
        "stride": _method("stride", "strides", "sym_stride", tuple),
        "is_contiguous": _method("is_contiguous", "strides", "is_contiguous", bool),
        "storage_offset": _method("storage_offset", "sizes", "sym_storage_offset", int),
        "dim": _method("dim", "sizes", "dim", int),
        "numel": _method("numel", "sizes", "sym_numel", int),
        "nelement": _method("nelement", "sizes", "sym_numel", int),
        "__len__": _method("__len__", "sizes", "sym_size", lambda sizes: sizes[0]),
    }
