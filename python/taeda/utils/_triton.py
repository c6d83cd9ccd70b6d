"""Whether Triton is there for PyTorch's compiler: never, as nothing compiles.

`has_triton_package` tells whether it can be imported, which programs ask before they do.
"""

from __future__ import annotations

import functools


@functools.cache
def has_triton_package() -> bool:
    """Whether the package can be imported."""
    from importlib.util import find_spec

    return find_spec("triton") is not None


def has_triton() -> bool:
    """False: taeda launches no kernels of Triton's."""
    return False


def has_triton_tma() -> bool:
    """False."""
    return False


def has_triton_tma_device() -> bool:
    """False."""
    return False


def has_triton_experimental_host_tma() -> bool:
    """False."""
    return False


def has_triton_tensor_descriptor_host_tma() -> bool:
    """False."""
    return False
