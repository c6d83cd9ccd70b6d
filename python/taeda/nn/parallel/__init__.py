"""Several devices. Without GPUs DataParallel is the module itself, as in PyTorch."""

from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
