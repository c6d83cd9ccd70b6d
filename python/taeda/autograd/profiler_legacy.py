"""The old name of ``torch.autograd.profiler.profile``."""

from taeda.autograd.profiler import profile

__all__ = ["profile"]
