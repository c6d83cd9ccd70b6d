"""Batch norms for vmap: without running statistics."""

from __future__ import annotations

from taeda.func import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from taeda.nn import Module


def batch_norm_without_running_stats(module: Module) -> None:
    """Takes the running statistics out of a batch norm; other modules stay as they are."""
    from taeda.nn.modules.batchnorm import _BatchNorm

    if isinstance(module, _BatchNorm) and module.track_running_stats:
        module.running_mean = None
        module.running_var = None
        module.num_batches_tracked = None
        module.track_running_stats = False
