"""Schedules that a function gives."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from taeda.optim.optimizer import Optimizer

from ._base import LRScheduler, _without


class _WithLambdas(LRScheduler):
    """Schedules given by functions of the step, one for all groups or one each."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != len(optimizer.param_groups):
                raise ValueError(
                    f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}"
                )
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * len(optimizer.param_groups)
        self._check_lambdas()
        super().__init__(optimizer, last_epoch)

    def _check_lambdas(self) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        """As LRScheduler's; of callable objects the attributes, of functions nothing is kept."""
        state = _without(self, "lr_lambdas")
        state["lr_lambdas"] = [
            None if isinstance(fn, types.FunctionType) else fn.__dict__.copy()
            for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for fn, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if saved is not None:
                fn.__dict__.update(saved)


class LambdaLR(_WithLambdas):
    """The first rate times a function of the step: ``lr = initial_lr * lr_lambda(step)``.

    Args:
        optimizer: whose rates are changed, those of every group.
        lr_lambda: the function, or one for each group.
        last_epoch: the number of steps taken before, -1 at the start; a resumed run rather loads
            ``state_dict``.

    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedules = torch.optim.lr_scheduler
    >>> schedule = schedules.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """

    def get_lr(self) -> list:
        self._warn_outside_step()
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base_lr * fn(self.last_epoch) for fn, base_lr in pairs]


class MultiplicativeLR(_WithLambdas):
    """The last rate times a function of the step: ``lr = lr * lr_lambda(step)``.

    Args:
        optimizer: whose rates are changed, those of every group.
        lr_lambda: the function, or one for each group.
        last_epoch: the number of steps taken before, -1 at the start; a resumed run rather loads
            ``state_dict``.

    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedules = torch.optim.lr_scheduler
    >>> schedule = schedules.MultiplicativeLR(optimizer, lambda step: 0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.25, 0.125]
    """

    def _check_lambdas(self) -> None:
        for fn in self.lr_lambdas:
            if not callable(fn):
                raise TypeError(f"lr_lambda should be a function, but got {type(fn).__name__}")

    def get_lr(self) -> list:
        self._warn_outside_step()
        if self._is_initial:
            return self._current()
        pairs = zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        return [group["lr"] * fn(self.last_epoch) for fn, group in pairs]
