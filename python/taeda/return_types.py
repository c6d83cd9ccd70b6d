"""The types of results whose parts have names: ``torch.return_types.max`` and the others.

>>> isinstance(torch.ones(2, 2).max(0), torch.return_types.max)
True
"""

from __future__ import annotations

from collections import namedtuple as _namedtuple

from taeda import _C

__all__ = ["all_return_types"]

# torch.unique_dim gives three tensors in PyTorch; the type of its result is private here.
all_return_types = [t for name, t in _C._result_types().items() if name != "unique_dim"]
for _type in all_return_types:
    globals()[_type.__name__] = _type
    __all__.append(_type.__name__)


def _tuple(name: str, fields: list[str]) -> type:
    """A type of this module for results of functions that are written in Python."""

    def show(self: tuple) -> str:
        parts = ",\n".join(f"{field}={part!r}" for field, part in zip(fields, self))
        return f"torch.return_types.{name}(\n{parts})"

    found = type(name, (_namedtuple(name, fields),), {"__slots__": (), "__repr__": show})
    found.__module__ = "torch.return_types"
    return found


def pytree_register_structseq(cls: type) -> None:
    """Makes torch.utils._pytree look into results of this type."""
    from taeda.utils import _pytree

    _pytree.register_pytree_node(
        cls, lambda result: (list(result), None), lambda parts, _: cls(parts)
    )


def __getattr__(name: str) -> type:
    if name.endswith("_out"):  # as PyTorch calls the types of results with out=
        found = globals().get(name[:-4]) or __getattr__(name[:-4])
        return found
    raise AttributeError(f"module 'taeda.return_types' has no attribute {name!r}")
