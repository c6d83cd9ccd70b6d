"""Runs passes over a graph in an order that fulfils constraints, until nothing changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from queue import Queue as Queue
from typing import Any

from taeda.fx.graph_module import GraphModule
from taeda.fx.passes.infra.pass_base import PassResult
from taeda.nn import Module

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "pass_result_wrapper",
    "this_before_that_pass_constraint",
]

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def pass_result_wrapper(fn: Pass | None) -> Pass | None:
    """A function that changes a module in place as a pass that gives a PassResult."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(module: Module) -> PassResult:
        result = fn(module)
        if isinstance(result, PassResult):
            return result
        return PassResult(result if isinstance(result, Module) else module, True)

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def inplace_wrapper(fn: Pass) -> Pass:
    """A function that changes its argument, as one that gives it back too."""

    @wraps(fn)
    def wrapped(module: Any, *args: Any, **kwargs: Any) -> Any:
        fn(module, *args, **kwargs)
        return module

    return wrapped


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """A constraint: one pass never runs behind another."""

    def may_precede(a: Pass, b: Pass) -> bool:
        return a != that or b != this

    return may_precede


def check_order(passes: list[Pass], constraints: list[Constraint]) -> None:
    """RuntimeError where two passes stand in an order that a constraint forbids."""
    for constraint in constraints:
        for i, a in enumerate(passes):
            for j, b in enumerate(passes[i + 1 :], i + 1):
                if not constraint(a, b):
                    raise RuntimeError(
                        f"pass schedule constraint violated. Expected {b} before {a} but found "
                        f"{a} at index {i} and {b} at index {j} in pass list."
                    )


def _ordered(passes: list[Pass], constraints: list[Constraint]) -> list[Pass]:
    """The passes, each behind those that constraints want before it; RuntimeError for a cycle."""
    remaining, ordered = list(passes), []

    def is_next(one: Pass) -> bool:
        return all(c(one, other) for c in constraints for other in remaining if other is not one)

    while remaining:
        found = next((one for one in remaining if is_next(one)), None)
        if found is None:
            names = [getattr(one, "__name__", type(one).__name__) for one in remaining]
            raise RuntimeError(
                f"Circular dependency detected within the following passes: {', '.join(names)}"
            )
        ordered.append(found)
        remaining.remove(found)
    return ordered


class PassManager:
    """Runs passes, functions from a module to a PassResult, one after the other.

    Args:
        passes: in the order to run, where constraints want no other.
        constraints: functions of two passes; False where the first must not be before the second.
        steps: how often all are run; it ends earlier where none changes anything.
        run_checks_after_each_pass: whether `check` is called behind each one, not only before all.

    >>> from torch.fx.passes.infra.pass_manager import PassManager
    >>> from torch.fx.passes.infra.pass_base import PassResult
    >>> def remove_relu(module):
    ...     found = [n for n in module.graph.nodes if n.target is torch.relu]
    ...     for node in found:
    ...         node.replace_all_uses_with(node.args[0])
    ...         module.graph.erase_node(node)
    ...     return PassResult(module, bool(found))
    >>> module = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> module, modified = PassManager([remove_relu])(module)
    >>> modified, module(torch.tensor(-2.0))
    (True, tensor(-1.))
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints = passes or [], constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Pass) -> None:
        """Runs another pass behind those there are."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Heeds another constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError where the order of the passes breaks a constraint."""
        if not self._validated:
            check_order(self.passes, self.constraints)
            self._validated = True

    def solve_constraints(self) -> None:
        """Orders the passes as the constraints want; RuntimeError where no order does."""
        self.passes = _ordered(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Calls `check(module)` before the passes."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[assignment, method-assign]

    def check(self, module: Module) -> None:
        """Raises for a module that is not as it should be."""

    def _run(self, one: Pass, module: Module) -> PassResult:
        name = one.__name__ if inspect.isfunction(one) else type(one).__name__
        result = one(module)
        if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
            raise TypeError(
                f"The result of the pass {name} should be type PassResult."
                "Please wrap it with pass_result_wrapper()"
            )
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result

    def _run_all(self, module: Module) -> PassResult:
        modified, names = False, list[str]()
        for one in self.passes:
            name = one.__name__ if inspect.isfunction(one) else type(one).__name__
            try:
                module, changed = self._run(one, module)
            except Exception as error:
                raise Exception(
                    f"An error occurred when running the '{name}' pass after the following "
                    f"passes: {names}"
                ) from error
            modified = modified or changed
            names.append(name)
        return PassResult(module, modified)

    def __call__(self, module: Module) -> PassResult:
        """The module after all passes, and whether any has changed it."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        overall = False
        for _ in range(self.steps):
            module, modified = self._run_all(module)
            overall = overall or modified
            if not modified:
                break
        return PassResult(module, overall)
