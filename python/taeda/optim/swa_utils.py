"""Averages of models over training: stochastic weight averaging and moving averages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn.modules.batchnorm import _BatchNorm
from taeda.nn.modules.module import Module

from .lr_scheduler._base import LRScheduler, _per_group
from .optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "update_bn",
    "SWALR",
    "get_ema_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
]


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """An exponential moving average: ``decay * average + (1 - decay) * current``."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with taeda.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable:
    """The mean of all models so far."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with taeda.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """``get_ema_avg_fn`` over lists of parameters, in place."""
    average = get_ema_avg_fn(decay)

    def update(ema_params: list[Tensor], current_params: list[Tensor], _: Any) -> None:
        for ema, current in zip(ema_params, current_params):
            ema.copy_(average(ema, current, None))

    return update


def get_swa_multi_avg_fn() -> Callable:
    """``get_swa_avg_fn`` over lists of parameters, in place."""
    average = get_swa_avg_fn()

    def update(averaged: list[Tensor], current: list[Tensor], num_averaged: Any) -> None:
        for mean, new in zip(averaged, current):
            mean.copy_(average(mean, new, num_averaged))

    return update


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages, moved by ``update_parameters``."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable | None = None,
        multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", taeda.tensor(0, dtype=taeda.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the parameters of ``model`` into the average; the first call copies them."""
        mine: Iterable[Tensor] = self.module.parameters()
        theirs: Iterable[Tensor] = model.parameters()
        if self.use_buffers:
            mine = itertools.chain(mine, self.module.buffers())
            theirs = itertools.chain(theirs, model.buffers())
        averages = [p.detach() for p in mine]
        current = [p.detach().to(a.device) for p, a in zip(theirs, averages)]
        if int(self.n_averaged) == 0:
            for a, p in zip(averages, current):
                a.copy_(p)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, current, self.n_averaged)
        else:
            average, n = self.avg_fn or get_swa_avg_fn(), self.n_averaged
            for a, p in zip(averages, current):
                # taeda's own function takes the number from the host, which no device waits for.
                a.copy_(average(a, p, n.to(a.device) if self.avg_fn else n))
        if not self.use_buffers:  # statistics belong to the newest model
            for b_mine, b_theirs in zip(self.module.buffers(), model.buffers()):
                b_mine.detach().copy_(b_theirs.detach().to(b_mine.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Runs ``model`` over ``loader`` to compute the statistics of its batch norms anew."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # a plain mean over all batches
    with taeda.no_grad():
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals to ``swa_lr`` in ``anneal_epochs`` steps and stays there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for lr, group in zip(_per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = lr
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, t: float) -> float:
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._share(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        now = self._share(max(0, min(1, step / max(1, self.anneal_epochs))))
        values = []
        for group in self.optimizer.param_groups:
            # Undo the mixture of the step before to find where the schedule started.
            start = group["swa_lr"]
            if before != 1:
                start = (group["lr"] - before * group["swa_lr"]) / (1 - before)
            values.append(group["swa_lr"] * now + start * (1 - now))
        return values
