"""The types of results whose parts have names: ``torch.return_types.max`` and the others.

>>> isinstance(torch.ones(2, 2).max(0), torch.return_types.max)
True
"""

from __future__ import annotations

from taeda import _C

__all__ = ["all_return_types"]

all_return_types = list(_C._result_types().values())
for _type in all_return_types:
    globals()[_type.__name__] = _type
    __all__.append(_type.__name__)


def __getattr__(name: str) -> type:
    if name in ("histogram", "histogramdd"):  # written in Python
        from taeda import _histogram

        return {t.__name__: t for t in _histogram.RESULTS}[name]
    raise AttributeError(f"module 'taeda.return_types' has no attribute {name!r}")
