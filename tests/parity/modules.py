"""Modules of PyTorch's database: forward, gradients, evaluation, saved state, refused arguments.

Parameters of both sides are the same numbers: those of PyTorch's module are loaded in taeda's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
from tests.parity import databases, judge, mirror, modes
from tests.parity.cases import Call
from tests.parity.sides import Side


class ModuleSide(Side):
    """A side that knows the module's dtype."""

    def __init__(self, library: str, info: Any, sample: Any, double: bool, dtype: Any) -> None:
        super().__init__(library, info, sample, True, double)
        self.dtype = mirror.DOUBLE.get(dtype, dtype) if double else dtype


def _constructed(side: ModuleSide) -> Any:
    """The module, in the dtype of the sample, with PyTorch's parameters on either side."""
    arguments = side.sample.constructor_input
    torch.default_generator.manual_seed(0)
    copies = mirror.Copies("torch", side.double)
    model = side.info.module_cls(*copies(arguments.args), **copies(arguments.kwargs)).to(side.dtype)
    if not side.taeda:
        return model
    cls = side.own(side.info.module_cls)
    ours = cls(*side.copies(arguments.args), **side.copies(arguments.kwargs))
    ours = ours.to(side.own(side.dtype))
    if not any(isinstance(p, torch.nn.UninitializedParameter) for p in model.parameters()):
        ours.load_state_dict(side.copies(dict(model.state_dict())))
    return ours


def _forward(side: ModuleSide, model: Any) -> Any:
    given = side.sample.forward_input
    side.reseed()
    return model(*side.copies(given.args), **side.copies(given.kwargs))


def forward(side: ModuleSide) -> Any:
    return _forward(side, _constructed(side))


def evaluation(side: ModuleSide) -> Any:
    return _forward(side, _constructed(side).eval())


def gradients(side: ModuleSide) -> Any:
    """Of the arguments and, by name, of the parameters."""
    model = _constructed(side)
    outputs = side.differentiable(_forward(side, model))
    inputs = side.copies((side.sample.forward_input.args, side.sample.forward_input.kwargs))
    leaves = modes.unique(side.differentiable(inputs) + list(model.parameters()))
    if not outputs or not leaves or any(hasattr(p, "materialize") for p in leaves):
        raise modes.NotApplicable
    return side.lib.autograd.grad(
        outputs, leaves, side.random(outputs, "cotangent"), allow_unused=True
    )


def state(side: ModuleSide) -> Any:
    """The saved state after a call: buffers are updated, names are in PyTorch's order."""
    model = _constructed(side)
    _forward(side, model)
    found = model.state_dict()
    return list(found), [value for value in found.values() if isinstance(value, side.tensor)]


def text(side: ModuleSide) -> Any:
    return repr(_constructed(side))


def refused(side: ModuleSide) -> Any:
    model = _constructed(side)
    return None if side.sample.forward_input is None else _forward(side, model)


MODES: dict[str, Callable[[Any], Any]] = {
    "module": forward,
    "module evaluation": evaluation,
    "module gradient": gradients,
    "module state": state,
    "module text": text,
}


def _call(
    info: Any, dtype: Any, sample: Any, index: int, mode: str, run: Any, words: str = ""
) -> Call:
    def side(library: str, double: bool = False) -> ModuleSide:
        return ModuleSide(library, info, sample, double, dtype)

    free = mode == "module gradient"
    return Call(mode, index, run, side, judge.Rules(strides=False), free, words)


def calls(info: Any, dtype: torch.dtype, start: int, count: int, cycle: int = 0) -> Iterator[Call]:
    for training in (True, False) if info.train_and_eval_differ else (True,):
        with databases.seeded(databases.title(info), str(dtype), training):
            samples = info.module_inputs_func(
                info, "cpu", dtype, requires_grad=dtype.is_floating_point, training=training
            )
            for index, sample in enumerate(islice(samples, start, start + count), start):
                for mode, run in MODES.items():
                    if (mode == "module evaluation") != training or mode == "module text":
                        yield _call(info, dtype, sample, index, mode, run)
    if start == 0 and info.module_error_inputs_func is not None:
        yield from _refused(info, dtype)


def _refused(info: Any, dtype: torch.dtype) -> Iterator[Call]:
    with databases.seeded(databases.title(info), "errors"):
        found = info.module_error_inputs_func(
            info, "cpu", dtype, requires_grad=False, training=True
        )
        for index, item in enumerate(found):
            sample = item.module_error_input
            yield _call(info, dtype, sample, index, "module error", refused, item.error_regex)
