"""Several devices. Without GPUs DataParallel is the module itself, as in PyTorch."""

from __future__ import annotations

from typing import Any

from taeda.nn.modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel(Module):
    """Splits a batch over GPUs; with none, which is all there is so far, calls ``module``."""

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        import taeda

        if taeda.cuda.is_available():
            raise NotImplementedError("DataParallel over GPUs is not there yet")
        self.module = module
        self.device_ids: list = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """Training over several processes. Not there yet: making one raises."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "DistributedDataParallel: needs taeda.distributed, which is not there yet"
        )
