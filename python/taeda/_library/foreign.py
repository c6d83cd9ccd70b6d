"""Libraries that are built for PyTorch's C++ interface, which taeda cannot load.

Their Python packages register shapes for some operators whether the library was loaded or not. So
the names are defined when loading fails; calling them raises.
"""

from __future__ import annotations

import os

_OPERATORS = {
    "torchvision": (
        "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
        "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    ),
}


def define_names(path: str) -> None:
    """Defines the operators that the package around a library counts on."""
    from taeda import ops
    from taeda.library import Library

    namespace = os.path.basename(os.path.dirname(path))
    missing = [
        schema
        for schema in _OPERATORS.get(namespace, ())
        if not hasattr(getattr(ops, namespace), schema.partition("(")[0])
    ]
    library = Library(namespace, "FRAGMENT") if missing else None
    for schema in missing:
        library.define(schema)  # type: ignore[union-attr]
    _kept.append(library)


_kept: list = []  # a Library takes its operators with it
