"""Layers and losses as functions.

Most are operators of the table (their documentation is theirs); those with arguments of their own
in Python, such as ``inplace`` or ``return_indices``, are defined in ``taeda.nn._functional``.
"""

from __future__ import annotations

from types import FunctionType as _FunctionType
from typing import Any

from taeda import _C

from ._functional import activation as _activation
from ._functional import attention as _attention
from ._functional import dropout as _dropout
from ._functional import grouped as _grouped
from ._functional import linear_loss as _linear_loss
from ._functional import loss as _loss
from ._functional import pool as _pool
from ._functional import vision as _vision

# Subclasses override what these call: Tensor.sigmoid, interpolate.
_NOT_OVERRIDABLE = ("sigmoid", "tanh", "upsample", "upsample_bilinear", "upsample_nearest")

# One object with the function of torch, as passes over graphs compare them.
_SHARED = (
    "adaptive_avg_pool1d avg_pool1d celu_ channel_shuffle conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink "
    "native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ "
    "rrelu_ selu_ threshold_"
).split()


def _public(name: str, function: Any) -> Any:
    """A function of ``_functional`` as users see it: overridable, and at home in this module."""
    if not isinstance(function, _FunctionType):
        return function
    function.__module__ = __name__
    return function if name in _NOT_OVERRIDABLE else _C._overridable(function)


def _publish() -> None:
    names = globals()
    names.update(_C._by_owner.get("nn.functional", {}))
    for part in (_activation, _attention, _dropout, _grouped, _linear_loss, _loss, _pool, _vision):
        names.update((name, _public(name, getattr(part, name))) for name in part.__all__)
    of_torch = _C._by_owner["torch"]
    names.update((name, of_torch[name]) for name in _SHARED if name in of_torch)


_publish()


_SCALED = {
    "scaled_mm": "",
    "scaled_grouped_mm": "",
    "ScalingType": "TensorWise RowWise BlockWise1x16 BlockWise1x32 BlockWise1x128 BlockWise128x128",
    "SwizzleType": "NO_SWIZZLE SWIZZLE_32_4_4",
}


# What PyTorch's module imports for itself, and others import from it.
_ELSEWHERE = {
    "taeda.overrides": "handle_torch_function has_torch_function has_torch_function_unary "
    "has_torch_function_variadic",
    "taeda._jit_internal": "boolean_dispatch BroadcastingList1 BroadcastingList2 BroadcastingList3",
}


def __dir__() -> list[str]:
    elsewhere = " ".join(_ELSEWHERE.values()).split()
    return sorted({*globals(), *_SCALED, *elsewhere, "conv_tbc"})


def __getattr__(name: str) -> Any:  # says to type checkers that names are added above
    if name == "conv_tbc":
        from taeda._functions.layers import conv_tbc

        return conv_tbc
    for module, names in _ELSEWHERE.items():
        if name in names.split():
            import importlib

            return getattr(importlib.import_module(module), name)
    if name in _SCALED:
        from taeda import _missing

        why = "taeda multiplies no packed low-precision matrices; use torch._scaled_mm, or bfloat16"
        if not _SCALED[name]:
            return _missing.function(f"torch.nn.functional.{name}", why)
        globals()[name] = _missing.numbered(f"torch.nn.functional.{name}", _SCALED[name])
        return globals()[name]
    if (not name.startswith("__") and name.startswith(("_", "GRID_"))) or name == "grad":
        from ._functional import private

        if name in private.__all__:
            return getattr(private, name)
    from taeda._near_names import no_attribute

    raise no_attribute(f"module {__name__!r}", name, __dir__)
