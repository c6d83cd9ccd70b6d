"""Schedules that go up and down, with the momentum the other way."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from taeda.optim.optimizer import Optimizer

from ._base import LRScheduler, _check_optimizer, _per_group, _set, _without


def _start_momentum_cycle(
    scheduler: Any, optimizer: Optimizer, base: Any, maximum: Any, last_epoch: int
) -> tuple[list, list]:
    """Checks and notes the range of a momentum (or beta1) that moves against the learning rate."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    scheduler.use_beta1 = "betas" in optimizer.defaults
    bases = _per_group("base_momentum", optimizer, base)
    maxima = _per_group("max_momentum", optimizer, maximum)
    if last_epoch == -1:
        for low, high, group in zip(bases, maxima, optimizer.param_groups, strict=True):
            _set_momentum(scheduler, group, high)
            group["max_momentum"] = high
            group["base_momentum"] = low
    return bases, maxima


def _set_momentum(scheduler: Any, group: dict[str, Any], momentum: float) -> None:
    if scheduler.use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """Up and down between two rates. arXiv 1506.01186

    Args:
        optimizer: whose rates are changed, those of every group.
        base_lr, max_lr: the bounds, or one for each group.
        step_size_up, step_size_down: the steps of a rise and of a fall (None: as many).
        mode: "triangular"; "triangular2" halves the height each cycle; "exp_range" multiplies it by
            ``gamma`` each step.
        gamma: of "exp_range".
        scale_fn: a function in place of the modes, of the cycle or the step by
        scale_mode: "cycle" or "iterations".
        cycle_momentum: whether momentum moves the other way round between
        base_momentum, max_momentum: its bounds.
        last_epoch: the number of steps taken before, -1 at the start; a resumed run rather loads
            ``state_dict``.

    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedules = torch.optim.lr_scheduler
    >>> schedule = schedules.CyclicLR(optimizer, 0.1, 1.0, step_size_up=2, cycle_momentum=False)
    >>> rates = []
    >>> for _ in range(6):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.1, 0.55, 1.0, 0.55, 0.1, 0.55]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _set(group, "lr", lr)
        self.max_lrs = _per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = _start_momentum_cycle(
                self, optimizer, base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, or of a step, as a fraction of the first."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        rising = x <= self.step_ratio
        position = x / self.step_ratio if rising else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ranges = zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            )
            for group, low, high in ranges:
                _set_momentum(self, group, high - (high - low) * position * scale)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * position * scale for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        state = _without(self)
        fn = state.pop("_scale_fn_custom")
        keeps = fn is not None and not isinstance(fn, types.FunctionType)
        state["_scale_fn_custom"] = fn.__dict__.copy() if keeps else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        saved = state_dict["_scale_fn_custom"]
        if saved is not None:
            self._scale_fn_custom.__dict__.update(saved)


def _anneal_cos(start: float, end: float, pct: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)


def _anneal_linear(start: float, end: float, pct: float) -> float:
    return (end - start) * pct + start


class OneCycleLR(LRScheduler):
    """One rise and one long fall of the rate, momentum the other way round. arXiv 1708.07120

    Starts at ``max_lr / div_factor``, rises to ``max_lr`` in the first ``pct_start`` of the steps,
    and ends at the start over ``final_div_factor``. Call ``step`` after each batch.

    Args:
        optimizer: whose rates are changed, those of every group.
        max_lr: the largest rate, or one for each group.
        total_steps: how many; or
        epochs, steps_per_epoch: their product.
        pct_start: the part of the steps that rise.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether momentum (or beta1) falls from ``max_momentum`` to ``base_momentum``
            as the rate rises, and back.
        base_momentum, max_momentum: its bounds.
        div_factor, final_div_factor: the start and the end, as parts of ``max_lr`` and of the
            start.
        three_phase: whether a fall as long as the rise comes before the last one.
        last_epoch: the number of steps taken before, -1 at the start; a resumed run rather loads
            ``state_dict``.

    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedules = torch.optim.lr_scheduler
    >>> schedule = schedules.OneCycleLR(optimizer, 1.0, total_steps=5, cycle_momentum=False)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.04, 0.9505, 0.6113, 0.1883]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = self._count_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = self._phases(pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = _per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for highest, group in zip(max_lrs, optimizer.param_groups):
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _start_momentum_cycle(self, optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _count_steps(
        total_steps: int | None, epochs: int | None, steps_per_epoch: int | None
    ) -> int:
        if total_steps is not None:
            given = {"total_steps": total_steps}
        elif epochs is not None and steps_per_epoch is not None:
            given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, value in given.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        return math.prod(given.values())

    def _phases(self, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
        def phase(end: float, lrs: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
            return {
                "end_step": end,
                "start_lr": lrs[0],
                "end_lr": lrs[1],
                "start_momentum": momenta[0],
                "end_momentum": momenta[1],
            }

        up, down = ("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")
        last = self.total_steps - 1
        turn = float(pct_start * self.total_steps) - 1
        phases = [phase(turn, ("initial_lr", "max_lr"), up)]
        if not three_phase:
            return [*phases, phase(last, ("max_lr", "min_lr"), down)]
        second = float(2 * pct_start * self.total_steps) - 2
        return [
            *phases,
            phase(second, ("max_lr", "initial_lr"), down),
            phase(last, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
        ]

    def get_lr(self) -> list:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. "
                f"The specified number of total steps is {self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        pct = (step - start) / (phase["end_step"] - start)
        anneal = _anneal_cos if self._anneal_func_type == "cos" else _anneal_linear
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                low, high = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _set_momentum(self, group, anneal(low, high, pct))
        return [anneal(group[phase["start_lr"]], group[phase["end_lr"]], pct) for group in groups]
