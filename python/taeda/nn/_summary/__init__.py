"""A model as a table: its layers, the shapes of their results, their parameters and memory.

>>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
>>> table = torch.summary(model, torch.ones(3, 4))
>>> table.parameters, table.rows[1].shape
(58, '[3, 8]')
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from taeda.nn.modules.module import Module
from taeda.nn.parameter import is_lazy

from . import _html, _text
from ._run import remembered, run

__all__ = ["Row", "Summary", "of_module", "summary"]


@dataclass
class Row:
    """A module of the model, in the order of `named_modules`."""

    name: str  # its own, without those of the modules around it
    kind: str  # its class
    depth: int  # how many modules are around it
    shape: str  # of its result, "" where it has not run
    parameters: int  # of its own, each counted in one row
    bytes: int  # of these and of its buffers
    calls: int  # how often it ran
    again: bool  # whether it stands further up under another name
    tied: bool  # whether it has parameters or buffers of its own that a row further up counts
    lazy: bool  # whether it has parameters without a shape


@dataclass
class Summary:
    """What `summary` gives: ``print`` shows it as text, Jupyter as HTML."""

    rows: list[Row]
    parameters: int  # of all rows
    trainable: int
    parameter_bytes: int
    buffer_bytes: int
    result_bytes: int  # of the results of all layers in which no other ran; 0 where nothing did

    def __str__(self) -> str:
        return _text.table(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.table(self)


def summary(model: Module, /, *inputs: Any, **keywords: Any) -> Summary:
    """Runs ``model(*inputs, **keywords)`` and tells of each layer its result's shape, its
    parameters and their memory. Without inputs nothing runs, and shapes are those of the last call.

    The model runs in evaluation mode without gradients, and is afterwards as it was before: modes,
    buffers, attributes, lazy parameters and the state of the random numbers. What its hooks do
    stays.

    >>> print(torch.summary(torch.nn.Linear(2, 3), torch.ones(1, 2)))
    Layer                                Output shape           Parameters    Memory
    ────────────────────────────────────────────────────────────────────────────────
    Linear                               [1, 3]                          9      36 B
    ────────────────────────────────────────────────────────────────────────────────
    9 parameters, 9 of them trainable: 36 B
    results of the layers: 12 B
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary(): argument 'model' must be a Module, not {type(model).__name__}")
    if "input_size" in keywords or any(_is_shape(given) for given in inputs):
        raise TypeError("summary(): takes tensors, not sizes: summary(model, torch.rand(1, 3, 8))")
    if inputs or keywords:
        run(model, inputs, keywords)
    return of_module(model)


def _is_shape(given: Any) -> bool:
    return isinstance(given, (tuple, list)) and bool(given) and all(type(n) is int for n in given)


def of_module(model: Module) -> Summary:
    """The table without running anything: with the shapes of the last `summary`, if there are."""
    seen: set[int] = set()
    calls = remembered(model)
    rows, results = [], 0
    for path, depth, module, again in _walk(model):
        call = calls.get(path)
        own = [t for t in (module._parameters | module._buffers).values() if t is not None]
        tied = not again and any(id(t) in seen for t in own)
        parameters = [] if again else _new(module._parameters, seen)
        buffers = [] if again else _new(module._buffers, seen)
        sized = [t for t in (*parameters, *buffers) if not is_lazy(t)]
        rows.append(
            Row(
                name=path.rpartition(".")[2],
                kind=type(module).__name__,
                depth=depth,
                shape=call.shape if call else "",
                parameters=sum(p.numel() for p in parameters if not is_lazy(p)),
                bytes=sum(t.nbytes for t in sized),
                calls=call.count if call else 0,
                again=again,
                tied=tied,
                lazy=len(sized) < len(parameters) + len(buffers),
            )
        )
        inside = (f"{path}.{name}" if path else name for name in module._modules)
        if call and not any(child in calls for child in inside):
            results += call.bytes
    sized = [p for p in model.parameters() if not is_lazy(p)]
    return Summary(
        rows,
        sum(p.numel() for p in sized),
        sum(p.numel() for p in sized if p.requires_grad),
        sum(p.nbytes for p in sized),
        sum(b.nbytes for b in model.buffers() if not is_lazy(b)),
        results,
    )


def _new(tensors: dict[str, Any], seen: set[int]) -> list[Any]:
    """The tensors that are not in `seen`, which are in it from here on."""
    found = [t for t in tensors.values() if t is not None and id(t) not in seen]
    seen.update(id(t) for t in found)
    return found


def _walk(model: Module) -> Iterator[tuple[str, int, Module, bool]]:
    """(path, depth, module, whether it came before), modules in front of those in them."""
    seen: set[int] = set()

    def visit(path: str, depth: int, module: Module) -> Iterator[tuple[str, int, Module, bool]]:
        again = id(module) in seen
        seen.add(id(module))
        yield path, depth, module, again
        if not again:
            for name, child in module._modules.items():
                if child is not None:
                    yield from visit(f"{path}.{name}" if path else name, depth + 1, child)

    return visit("", 0, model)
