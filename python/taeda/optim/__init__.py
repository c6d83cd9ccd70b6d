"""Optimizers, and schedules of their learning rates."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from taeda import _C, _missing

from . import lr_scheduler
from ._adafactor import Adafactor
from ._muon import Muon
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "lr_scheduler",
    "swap_in_optimizer_params_and_state",
    "swa_utils",
]

for _class in [v for v in (globals() | vars(lr_scheduler)).values() if isinstance(v, type)]:
    if _class.__module__.startswith(__name__):
        _C._hint_keywords(_class)
del _class

if TYPE_CHECKING:
    from taeda.optim import swa_utils as swa_utils
    from taeda.optim._swap import (
        swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state,
    )
else:

    def __getattr__(name: str) -> Any:
        if name in ("swa_utils", "_functional"):
            return importlib.import_module(f"{__name__}.{name}")
        if name == "swap_in_optimizer_params_and_state":
            return importlib.import_module(f"{__name__}._swap").swap_in_optimizer_params_and_state
        return _missing.attribute(__name__, name)

    del TYPE_CHECKING
