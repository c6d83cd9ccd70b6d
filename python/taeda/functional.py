"""torch.functional: functions of the top-level namespace that PyTorch writes in Python."""

from __future__ import annotations

import taeda as _taeda

__all__ = list[str](
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
    "cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot "
    "unique unique_consecutive unravel_index".split()
)


def __getattr__(name: str) -> object:
    if name in __all__:
        found = globals()[name] = getattr(_taeda, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
