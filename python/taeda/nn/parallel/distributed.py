"""Training over several processes."""

from __future__ import annotations

from typing import Any

from taeda.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Training over several processes. Not there yet: making one raises."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "DistributedDataParallel: needs taeda.distributed, which is not there yet"
        )
