"""The older pass manager: passes are functions from a module to a module."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

from taeda.fx.passes.infra.pass_manager import (
    Constraint,
    Pass,
    check_order,
    inplace_wrapper,
    this_before_that_pass_constraint,
)

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

logger = logging.getLogger(__name__)


def log_hook(fn: Callable, level: int = logging.INFO) -> Callable:
    """A pass that logs what it gives back."""

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return wrapped


def loop_pass(
    base_pass: Callable[[Any], Any],
    n_iter: int | None = None,
    predicate: Callable[[Any], bool] | None = None,
) -> Callable[[Any], Any]:
    """A pass that runs another `n_iter` times, or as long as a predicate of the module holds."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def looped(source: Any) -> Any:
        if n_iter is not None:
            if n_iter <= 0:
                raise RuntimeError(f"loop_pass must be given positive int n_iter (given {n_iter})")
            for _ in range(n_iter):
                source = base_pass(source)
        while predicate is not None and predicate(source):
            source = base_pass(source)
        return source

    return looped


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Constraint:
    """`this_before_that_pass_constraint` of what the passes of a list wrap."""

    def may_precede(a: Pass, b: Pass) -> bool:
        return unwrap(a) != those or unwrap(b) != these

    return may_precede


class PassManager:
    """Runs passes, functions from a module to a module, one after the other.

    Args:
        passes: in the order to run.
        constraints: functions of two passes; False where the first must not be before the second.

    >>> from torch.fx.passes.pass_manager import PassManager
    >>> PassManager([lambda x: x + 1, lambda x: 2 * x])(3)
    8
    """

    def __init__(
        self, passes: list[Pass] | None = None, constraints: list[Constraint] | None = None
    ) -> None:
        self.passes, self.constraints = passes or [], constraints or []

    @classmethod
    def build_from_passlist(cls, passes: list[Pass]) -> PassManager:
        """One of these passes without constraints."""
        return cls(passes)

    def add_pass(self, _pass: Pass) -> None:
        """Runs another pass behind those there are."""
        self.passes.append(_pass)

    def add_constraint(self, constraint: Constraint) -> None:
        """Heeds another constraint."""
        self.constraints.append(constraint)

    def remove_pass(self, _passes: list[str] | None) -> None:
        """Leaves out passes by their functions' names."""
        self.passes = [one for one in self.passes if one.__name__ not in (_passes or [])]

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Runs another pass in place of one."""
        self.passes = [
            _replacement if one.__name__ == _target.__name__ else one for one in self.passes
        ]

    def validate(self) -> None:
        """RuntimeError where the order of the passes breaks a constraint."""
        check_order(self.passes, self.constraints)

    def __call__(self, source: Any) -> Any:
        """What the last pass gives."""
        self.validate()
        for one in self.passes:
            source = one(source)
        return source
