"""Whether an operator writes its first argument, by its name."""

from __future__ import annotations

from typing import Any


def is_inplace(func: Any) -> bool:
    """Whether an overload of torch.ops is one in place: ``add_``, or ``__iadd__``.

    >>> from torch._library.in_place import is_inplace
    >>> is_inplace(torch.ops.aten.add_.Tensor), is_inplace(torch.ops.aten.add.Tensor)
    (True, False)
    """
    name = func.overloadpacket.__name__
    if name.startswith("__") and name.endswith("__"):
        return name.startswith("__i")
    return name.endswith("_")
