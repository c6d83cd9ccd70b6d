"""Schedules of learning rates.

A schedule sets the "lr" of each parameter group: once when made, and at each ``step()`` after
``optimizer.step()``. Most are written as a recurrence on the current value (``get_lr``), so they
combine with other changes of it; those with a closed form have it too.
"""

from __future__ import annotations

from taeda import _near_names

from ._base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from ._base import LRScheduler
from ._base import _LRScheduler as _LRScheduler
from ._combined import ChainedScheduler, SequentialLR
from ._cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from ._cycles import CyclicLR, OneCycleLR
from ._lambdas import LambdaLR, MultiplicativeLR
from ._plateau import ReduceLROnPlateau
from ._steps import ConstantLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR, StepLR

__all__ = [
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "SequentialLR",
    "CosineAnnealingLR",
    "ChainedScheduler",
    "ReduceLROnPlateau",
    "CyclicLR",
    "CosineAnnealingWarmRestarts",
    "OneCycleLR",
    "PolynomialLR",
    "LRScheduler",
]


for _name in [*__all__, "_LRScheduler"]:  # pickles name the public module
    globals()[_name].__module__ = __name__

__getattr__ = _near_names.of_module(__name__)
