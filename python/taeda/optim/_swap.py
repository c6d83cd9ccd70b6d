"""An optimizer that works on other parameters and states inside of a block."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from taeda import Tensor

from .optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


def _check_group(number: int, group: dict[str, Any], other: Any) -> None:
    """RuntimeError where a group of the state does not describe one of the optimizer."""
    if not isinstance(other, dict):
        raise RuntimeError(f"{_NAME}: group {number} must be a dict, not {type(other).__name__}")
    ids = other.get("params")
    if not isinstance(ids, list) or not all(isinstance(i, int) for i in ids):
        raise RuntimeError(f"{_NAME}: 'params' of group {number} must be numbers of parameters")
    if len(ids) != len(group["params"]):
        raise RuntimeError(
            f"{_NAME}: group {number} has {len(ids)} parameters, the optimizer's "
            f"{len(group['params'])}"
        )
    if different := sorted(map(str, set(group) ^ set(other))):
        raise RuntimeError(
            f"{_NAME}: keys that only one of the groups {number} has: {', '.join(different)}"
        )


def _check(optimizer: Optimizer, count: int, state_dict: Any) -> None:
    """RuntimeError where `state_dict` is not of this optimizer with `count` parameters."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME}: the optimizer has no state yet; call step() before")
    state, groups = (
        (state_dict.get("state"), state_dict.get("param_groups"))
        if isinstance(state_dict, dict)
        else (None, None)
    )
    if not isinstance(state, dict) or not isinstance(groups, list):
        raise RuntimeError(f"{_NAME}: the state must be what optimizer.state_dict() gives")
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError(
            f"{_NAME}: the state has {len(groups)} groups, the optimizer "
            f"{len(optimizer.param_groups)}"
        )
    for number, (group, other) in enumerate(zip(optimizer.param_groups, groups)):
        _check_group(number, group, other)
    numbers = [number for group in groups for number in group["params"]]
    if len(numbers) > count:
        raise RuntimeError(f"{_NAME}: {count} parameters for groups of {len(numbers)}")
    if extra := [key for key in state if isinstance(key, Tensor) or key not in numbers]:
        raise RuntimeError(f"{_NAME}: the state has entries of no parameter: {extra!r}")
    if any(not isinstance(entry, dict) for entry in state.values()):
        raise RuntimeError(f"{_NAME}: the state of each parameter must be a dict")


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """Inside, the optimizer works on other parameters, with other states and settings.

    Args:
        optimizer: one that has made a step.
        swapin_parameters: as many tensors as the optimizer has parameters, in its order.
        swapin_optim_state: as ``optimizer.state_dict()`` gives it. Its tensors are changed in
            place; new entries, and numbers such as a count of steps, are forgotten.

    RuntimeError where the two do not fit the optimizer.

    >>> p, other = torch.ones(1, requires_grad=True), torch.zeros(1)
    >>> optimizer = torch.optim.SGD([p], lr=0.5, momentum=0.9)
    >>> p.sum().backward()
    >>> optimizer.step()
    >>> other.grad, state = torch.ones(1), optimizer.state_dict()
    >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"p": other}, state):
    ...     optimizer.step()
    >>> p.item(), round(other.item(), 3)
    (0.5, -0.95)
    """
    parameters = list(swapin_parameters.values())
    _check(optimizer, len(parameters), swapin_optim_state)
    groups, state = optimizer.param_groups, optimizer.state
    before = [dict(group) for group in groups]
    swapped: defaultdict[Any, Any] = defaultdict(dict)
    remaining = iter(parameters)
    try:
        for group, other in zip(groups, swapin_optim_state["param_groups"]):
            group.update(other, params=[next(remaining) for _ in other["params"]])
            for p, number in zip(group["params"], other["params"]):
                swapped[p] = dict(swapin_optim_state["state"].get(number, {}))
        optimizer.state = swapped
        yield
    finally:
        for group, saved in zip(groups, before):
            group.clear()
            group.update(saved)
        optimizer.state = state
