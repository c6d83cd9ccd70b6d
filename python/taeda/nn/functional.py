"""Layers and losses as functions.

Most are operators of the table (their documentation is theirs); those with arguments of their own
in Python, such as ``inplace`` or ``size_average``, are defined in ``taeda.nn._functional``.
"""

from __future__ import annotations

from taeda import _C

from ._functional import activation as _activation
from ._functional import attention as _attention
from ._functional import distance as _distance
from ._functional import dropout as _dropout
from ._functional import loss as _loss
from ._functional import norm as _norm
from ._functional import pool as _pool
from ._functional import vision as _vision
from ._functional.raw import fallback as _fallback  # noqa: F401

# Operators that PyTorch also offers here under their names in the top-level namespace.
_SHARED = (
    "avg_pool1d",
    "bilinear",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "hardshrink",
    "layer_norm",
    "native_channel_shuffle",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "prelu",
)


def _publish() -> None:
    names = globals()
    shared = _C._functions.get("torch", {})
    names.update((name, shared[name]) for name in _SHARED if name in shared)
    for name, function in _C._functions.get("nn.functional", {}).items():
        if "." not in name:
            names[name] = function
    for part in (_activation, _attention, _distance, _dropout, _loss, _norm, _pool, _vision):
        names.update((name, getattr(part, name)) for name in part.__all__)


_publish()
