"""Schedules along a cosine."""

from __future__ import annotations

import math

from taeda.optim.optimizer import Optimizer

from ._base import LRScheduler


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate to the least one, and back again. arXiv 1608.03983

        lr = eta_min + (initial_lr - eta_min) (1 + cos(pi step / T_max)) / 2

    Args:
        optimizer: whose rates are changed, those of every group.
        T_max: the steps of the fall.
        eta_min: the least rate.
        last_epoch: the number of steps taken before, -1 at the start; a resumed run rather loads
            ``state_dict``.

    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedules = torch.optim.lr_scheduler
    >>> schedule = schedules.CosineAnnealingLR(optimizer, T_max=4)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.8536, 0.5, 0.1464, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        if self._is_initial:
            return self._current()
        step, T = self.last_epoch, self.T_max
        if self._step_count == 1 and step > 0:
            return self._get_closed_form_lr()
        if (step - 1 - T) % (2 * T) == 0:
            # The previous value was eta_min: the ratio below would be 0 / 0.
            rise = (1 - math.cos(math.pi / T)) / 2
            pairs = zip(self.base_lrs, self.optimizer.param_groups, strict=True)
            return [group["lr"] + (base_lr - self.eta_min) * rise for base_lr, group in pairs]
        ratio = (1 + math.cos(math.pi * step / T)) / (1 + math.cos(math.pi * (step - 1) / T))
        return [
            ratio * (group["lr"] - self.eta_min) + self.eta_min
            for group in self.optimizer.param_groups
        ]

    def _get_closed_form_lr(self) -> list:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base_lr - self.eta_min) * height for base_lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines that start again and again. arXiv 1608.03983

        lr = eta_min + (initial_lr - eta_min) (1 + cos(pi t / T_i)) / 2,  t steps after the last
            restart

    The i-th period lasts ``T_0 * T_mult^i`` steps.

    Args:
        optimizer: whose rates are changed, those of every group.
        T_0: the steps of the first period.
        T_mult: by how much each is longer than the one before.
        eta_min: the least rate.
        last_epoch: the number of steps taken before, -1 at the start; a resumed run rather loads
            ``state_dict``.

    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedules = torch.optim.lr_scheduler
    >>> schedule = schedules.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    >>> rates = []
    >>> for _ in range(7):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 1.0, 0.8536, 0.5, 0.1464, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i: float = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        self._warn_outside_step()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base_lr - self.eta_min) * height for base_lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes to the next step, or to ``epoch``, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with self._within_step():
            self._write(self.get_lr())

    def _go_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            mult = self.T_mult
            cycle = int(math.log(epoch / self.T_0 * (mult - 1) + 1, mult))
            self.T_cur = epoch - self.T_0 * (mult**cycle - 1) / (mult - 1)
            self.T_i = self.T_0 * mult**cycle
