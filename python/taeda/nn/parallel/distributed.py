"""Training over several processes."""

from __future__ import annotations

from typing import Any

from taeda.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Training over several processes. Not there yet: making one raises."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "DistributedDataParallel: taeda has no process groups yet; run the program in one "
            "process and train the module itself, as programs do where "
            "torch.distributed.is_initialized() is False"
        )
