"""Modules called side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Any:
    """The first tensor in nested lists and dictionaries, or None."""
    if isinstance(obj, taeda.Tensor):
        return obj
    values = obj.values() if isinstance(obj, dict) else obj
    if not isinstance(obj, (list, tuple, dict)):
        return None
    return next((found for found in map(get_a_var, values) if found is not None), None)


def parallel_apply(
    modules: Sequence, inputs: Sequence, kwargs_tup: Sequence | None = None, devices: Any = None
) -> list:
    """The result of each module for its arguments, each in a thread of its own; the first error
    is raised."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    kwargs_tup = kwargs_tup if kwargs_tup is not None else [{}] * len(modules)
    for given, what in ((kwargs_tup, "kwargs_tup"), (devices or modules, "devices")):
        if len(given) != len(modules):
            raise AssertionError(f"{what} needs an item for each of {len(modules)} modules")
    recording, mixed = taeda.is_grad_enabled(), taeda.is_autocast_enabled("cpu")

    def call(module: Any, arguments: Any, kwargs: dict) -> Any:
        arguments = arguments if isinstance(arguments, (list, tuple)) else (arguments,)
        with taeda.set_grad_enabled(recording), taeda.autocast("cpu", enabled=mixed):
            return module(*arguments, **kwargs)

    if len(modules) == 1:
        return [call(modules[0], inputs[0], kwargs_tup[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(modules)) as pool:
        return list(pool.map(call, modules, inputs, kwargs_tup))
