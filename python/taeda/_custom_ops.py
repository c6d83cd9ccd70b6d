"""Old names of torch.library's functions."""

from __future__ import annotations

from taeda import _missing
from taeda.library import custom_op, get_ctx, register_fake, register_kernel

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract"]

impl_abstract = register_fake


def impl(qualname: str, *, device_types: tuple[str, ...] = ("cpu", "cuda"), func=None):
    """``torch.library.register_kernel``."""
    return register_kernel(qualname, device_types, func)


__getattr__, __dir__ = _missing.attributes(__name__)
