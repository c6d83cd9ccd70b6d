"""Running a model to see the shapes of its layers' results, and putting back what that changes."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn.modules.module import Module
from taeda.nn.parameter import is_lazy


@dataclass
class Call:
    """What a layer returned."""

    shape: str  # when it first ran
    bytes: int  # in all its calls
    count: int = 1


_calls: weakref.WeakKeyDictionary[Module, dict[str, Call]] = weakref.WeakKeyDictionary()


def remembered(model: Module) -> dict[str, Call]:
    """The calls of the model's last run by path; none where it has not run."""
    return _calls.get(model, {})


def run(model: Module, inputs: tuple, keywords: dict[str, Any]) -> None:
    """Calls the model in evaluation mode and remembers what each layer returned."""
    calls: dict[str, Call] = {}
    with _random_numbers_kept(), taeda.no_grad():
        if any(is_lazy(t) for t in [*model.parameters(), *model.buffers()]):
            runs = copy.deepcopy(model)  # its parameters are made while it runs
            with _watched(runs, calls):
                runs.eval()(*inputs, **keywords)
        else:
            with _state_kept(model), _watched(model, calls):
                model.eval()(*inputs, **keywords)
    _calls[model] = calls


@contextmanager
def _watched(model: Module, calls: dict[str, Call]) -> Iterator[None]:
    """Notes the results of all modules while the block runs."""

    def note(path: str) -> Callable[..., None]:
        def hook(module: Module, args: Any, result: Any) -> None:
            if path in calls:
                calls[path].count += 1
                calls[path].bytes += _bytes(result)
            else:
                calls[path] = Call(shape_text(result), _bytes(result))

        return hook

    handles = [module.register_forward_hook(note(path)) for path, module in model.named_modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _state_kept(model: Module) -> Iterator[None]:
    """Modules have the attributes, modes and buffers afterwards that they had before: the block
    works on copies of the buffers."""
    modules = list(model.modules())
    before = [
        (m.__dict__.copy(), m._parameters.copy(), m._buffers.copy(), m._modules.copy())
        for m in modules
    ]
    for module in modules:
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = buffer.clone()
    try:
        yield
    finally:
        for module, (fields, *tables) in zip(modules, before, strict=True):
            module.__dict__.clear()
            module.__dict__.update(fields)
            for table, entries in zip(("_parameters", "_buffers", "_modules"), tables, strict=True):
                fields[table].clear()
                fields[table].update(entries)


@contextmanager
def _random_numbers_kept() -> Iterator[None]:
    state = taeda.get_rng_state()
    devices = taeda.cuda.get_rng_state_all() if taeda.cuda.is_initialized() else []
    try:
        yield
    finally:
        taeda.set_rng_state(state)
        if devices:
            taeda.cuda.set_rng_state_all(devices)


def shape_text(result: Any) -> str:
    """[2, 3] for a tensor, ([2, 3], [4]) for a tuple of two, {logits: [2, 3]} for a dictionary."""
    if isinstance(result, Tensor):
        return str(list(result.shape))
    if isinstance(result, dict):
        return "{" + ", ".join(f"{k}: {shape_text(v)}" for k, v in result.items()) + "}"
    if isinstance(result, (tuple, list)):
        return "(" + ", ".join(map(shape_text, result)) + ")"
    return "None" if result is None else type(result).__name__


def _bytes(result: Any) -> int:
    """Of the tensors in a result."""
    if isinstance(result, Tensor):
        return result.nbytes
    if isinstance(result, dict):
        return sum(map(_bytes, result.values()))
    return sum(map(_bytes, result)) if isinstance(result, (tuple, list)) else 0
