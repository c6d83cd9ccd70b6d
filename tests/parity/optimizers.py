"""Optimizers of PyTorch's database: parameters and state after steps, refused arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from tests.parity import databases, judge
from tests.parity.cases import Call
from tests.parity.sides import Side

STEPS = 4
SHAPES = ((3, 4), (4,), (2, 3))


def _parameters(side: OptimizerSide) -> list[Any]:
    with databases.seeded("parameters"):
        made = [torch.randn(shape).to(side.info_dtype) for shape in SHAPES]
    if side.info.optim_cls.__name__ == "Muon":
        made = [tensor for tensor in made if tensor.dim() == 2]
    return [side.lib.nn.Parameter(side.copies(tensor)) for tensor in made]


class OptimizerSide(Side):
    """A side that knows the parameters' dtype."""

    def __init__(self, library: str, info: Any, sample: Any, double: bool, dtype: Any) -> None:
        super().__init__(library, info, sample, True, double)
        self.info_dtype = torch.float64 if double else dtype
        self.parameters: dict[int, Any] = {}  # those of the database, once each


def _flat_state(value: Any, side: Side) -> list[Any]:
    """Keys in order and values of a nested state_dict."""
    if isinstance(value, dict):
        return [part for key in value for part in (key, *_flat_state(value[key], side))]
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _flat_state(item, side)]
    return [value]


def _stepped(side: OptimizerSide) -> tuple[Any, list[Any]]:
    parameters = _parameters(side)
    optimizer = side.own(side.info.optim_cls)(parameters, **side.copies(side.sample.kwargs))
    cotangents = side.random([p.detach() for p in parameters], "gradient")

    def closure() -> Any:
        optimizer.zero_grad()
        losses = [((p - g) ** 2).sum() for p, g in zip(parameters, cotangents, strict=True)]
        loss = sum(losses[1:], losses[0])
        loss.backward()
        return loss

    for _ in range(STEPS):
        if side.info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return optimizer, [parameter.detach() for parameter in parameters]


def steps(side: OptimizerSide) -> Any:
    return _stepped(side)[1]


def state(side: OptimizerSide) -> Any:
    return _flat_state(_stepped(side)[0].state_dict(), side)


def refused(side: OptimizerSide) -> Any:
    sample = side.sample
    parameters = _parameters(side) if sample.params is None else _given(side, sample.params)
    return side.own(side.info.optim_cls)(parameters, **side.copies(sample.kwargs)) and None


def _given(side: OptimizerSide, value: Any) -> Any:
    """Parameters that the database gives, as the library's parameters."""
    if isinstance(value, dict):
        return {key: _given(side, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_given(side, item) for item in value)
    if isinstance(value, torch.Tensor) and side.taeda:
        if id(value) not in side.parameters:
            made = side.copies(value.detach())
            parameter = isinstance(value, torch.nn.Parameter)
            side.parameters[id(value)] = side.lib.nn.Parameter(made) if parameter else made
        return side.parameters[id(value)]
    return value


def calls(info: Any, dtype: torch.dtype, start: int, count: int, cycle: int = 0) -> Iterator[Call]:
    def call(mode: str, index: int, run: Any, sample: Any, words: str = "") -> Call:
        def side(library: str, double: bool = False) -> OptimizerSide:
            return OptimizerSide(library, info, sample, double, dtype)

        return Call(mode, index, run, side, judge.Rules(), words=words)

    samples = info.optim_inputs_func(device="cpu", dtype=dtype)
    for index, sample in enumerate(islice(samples, start, start + count), start):
        yield call("optimizer", index, steps, sample)
        yield call("optimizer state", index, state, sample)
    if start == 0 and info.optim_error_inputs_func is not None:
        assert "dtype" in inspect.signature(info.optim_error_inputs_func).parameters
        for index, item in enumerate(info.optim_error_inputs_func("cpu", dtype)):
            given = item.optimizer_error_input
            if item.error_type is not UserWarning:
                yield call("optimizer error", index, refused, given, item.error_regex)
