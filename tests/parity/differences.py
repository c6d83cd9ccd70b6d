"""Derivatives by finite differences of PyTorch's function in double precision.

With phi(x) = Re <cotangents, f(x)> all four modes of tests/parity/derivatives.py are derivatives of
f or phi along given directions and along each element: the gradient is d_e phi, forward mode d_t f,
forward over reverse d_e d_t phi, and the double gradient d_e d_s phi and d_s f, where s are the
second cotangents. Each is taken with two steps; Richardson's extrapolation gives the value. Its
doubt is four times its distance from that of the finer step, and what rounding of the function's
values comes to. Where that is large there is no derivative to compare with.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from tests.parity import mirror
from tests.parity.modes import replaced, unique
from tests.parity.sides import Side

MOST_ELEMENTS = 400
MOST_SECONDS = 40.0  # of the CPU; one thread's calls must not look like a hang
STEPS = (4e-3, 1e-3, 2.5e-4)  # that with less doubt counts
ROUNDING = 4 * torch.finfo(torch.float64).eps
UNSURE = 1e-5  # doubt beyond this, of the largest value, is too much

Tensors = list[torch.Tensor]


class NoDerivative(Exception):
    """Too many elements, too long a time, or a kink."""


@dataclass
class Estimate:
    """A derivative, and by how much it may be off."""

    value: torch.Tensor
    doubt: torch.Tensor

    def checked(self) -> Estimate:
        """Itself; NoDerivative where the doubt is large."""
        if self.value.numel():
            most = UNSURE * (1 + float(self.value.abs().max()))
            if not float(self.doubt.max()) <= most:
                raise NoDerivative
        return self


def _moved(at: Tensors, along: Tensors, step: float) -> Tensors:
    return [x + step * v for x, v in zip(at, along, strict=True)]


def _extrapolated(of_step: Callable[[float], torch.Tensor], size: float, order: int) -> Estimate:
    """A derivative of this order of a function whose values are as large as `size`."""
    found = []
    for step in STEPS:
        coarse, fine = of_step(step), of_step(step / 2)
        value = (4 * fine - coarse) / 3
        rounding = ROUNDING * size / step**order
        found.append(Estimate(value, 4 * (value - fine).abs() + rounding))
    return min(found, key=lambda estimate: float(estimate.doubt.sum()))


def _largest(tensor: torch.Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0


def _along(f: Callable[[Tensors], torch.Tensor], at: Tensors, v: Tensors) -> Estimate:
    """The derivative of f at `at` along v."""
    here = f(at)
    sides = lambda h: (f(_moved(at, v, h)), f(_moved(at, v, -h)))  # noqa: E731

    def bend(h: float) -> torch.Tensor:
        """What the slopes of the two sides differ by."""
        before, behind = sides(h)
        return (before + behind - 2 * here).abs() / h

    def slope(h: float) -> torch.Tensor:
        before, behind = sides(h)
        return (before - behind) / (2 * h)

    size = _largest(here)
    step = STEPS[-1]
    if not bool((bend(step / 2) <= 0.75 * bend(step) + UNSURE * (1 + size)).all()):
        raise NoDerivative  # a bend that does not become smaller with the step
    return _extrapolated(slope, size, order=1)


def _units(tensors: Tensors) -> Any:
    """(which tensor, which element, 1 or i, the direction of it) for all elements."""
    for i, tensor in enumerate(tensors):
        for k in range(tensor.numel()):
            for unit in (1, 1j) if tensor.is_complex() else (1,):
                along = [_zeros(x) for x in tensors]
                along[i].view(-1)[k] = unit
                yield i, k, unit, along


def _zeros(like: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.zeros_like(like, dtype=dtype, memory_format=torch.contiguous_format)


def _by_elements(derivative: Callable[[Tensors], Estimate], at: Tensors) -> list[Estimate]:
    """Derivatives by each element, as PyTorch puts those by real and imaginary part together."""
    if sum(x.numel() for x in at) > MOST_ELEMENTS:
        raise NoDerivative
    found = [Estimate(_zeros(x), _zeros(x, torch.float64)) for x in at]
    end = time.process_time() + MOST_SECONDS
    for i, k, unit, along in _units(at):
        if time.process_time() > end:
            raise NoDerivative
        one = derivative(along)
        found[i].value.view(-1)[k] += unit * one.value
        found[i].doubt.view(-1)[k] += one.doubt
    return found


class _Function:
    """A sample's function of its leaves, in double precision."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.arguments = side.arguments()
        self.leaves = unique(side.differentiable(self.arguments))
        self.at = [leaf.detach().clone() for leaf in self.leaves]
        outputs = self._outputs(self.leaves)
        self.recorded = [output.requires_grad for output in outputs]
        self.likes = [output for output in outputs if output.requires_grad]
        self.cotangents = side.random(self.likes, "cotangent")

    @functools.cached_property
    def first(self) -> tuple[torch.Tensor | None, ...]:
        """PyTorch's gradients, which say by what there are any."""
        cotangents = [tensor.requires_grad_() for tensor in self.cotangents]
        return torch.autograd.grad(
            self.likes, self.leaves, cotangents, create_graph=True, allow_unused=True
        )

    def _outputs(self, leaves: Tensors) -> Tensors:
        by = {id(leaf): value for leaf, value in zip(self.leaves, leaves, strict=True)}
        first, args, kwargs = replaced(self.arguments, by, torch.Tensor)
        op = self.side.variant("op")
        assert op is not None
        self.side.reseed()
        return mirror.tensors(self.side.processed(op(first, *args, **kwargs)), torch.Tensor)

    def outputs(self, leaves: Tensors, recorded: bool) -> Tensors:
        """Those that have a gradient, or all of floating dtypes."""
        with torch.no_grad():
            found = self._outputs([leaf.clone() for leaf in leaves])
        if recorded:
            return [out for out, grad in zip(found, self.recorded, strict=True) if grad]
        return [out for out in found if out.is_floating_point() or out.is_complex()]

    def phi(self, leaves: Tensors) -> torch.Tensor:
        outputs = self.outputs(leaves, recorded=True)
        parts = [(c.detach().conj() * out) for c, out in zip(self.cotangents, outputs, strict=True)]
        return sum((part.sum().real for part in parts), torch.zeros((), dtype=torch.float64))

    def tangents(self, along: Tensors, recorded: bool) -> list[Estimate]:
        count = len(self.outputs(self.at, recorded))
        return [
            _along(lambda leaves, i=i: self.outputs(leaves, recorded)[i], self.at, along)
            for i in range(count)
        ]

    def second(self, along: Tensors) -> list[Estimate]:
        """The derivatives by each element of phi's along a direction."""

        size = float(self.phi(self.at).abs())

        _along(self.phi, self.at, along)  # no kink

        def mixed(unit: Tensors) -> Estimate:
            _along(self.phi, self.at, unit)

            def inner(h: float) -> torch.Tensor:
                corners = [
                    sign * self.phi(_moved(_moved(self.at, along, a * h), unit, b * h))
                    for a, b, sign in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
                ]
                return sum(corners[1:], corners[0]) / (4 * h * h)

            return _extrapolated(inner, size, order=2)

        return _by_elements(mixed, self.at)


def gradient(f: _Function) -> list[Any]:
    found = _by_elements(lambda along: _along(f.phi, f.at, along), f.at)
    return [None if g is None else x for g, x in zip(f.first, found, strict=True)]


def forward(f: _Function) -> list[Any]:
    return f.tangents(f.side.random(f.leaves, "tangent"), recorded=False)


def forward_over_reverse(f: _Function) -> list[Any]:
    found = f.second(f.side.random(f.leaves, "tangent"))
    return [x for g, x in zip(f.first, found, strict=True) if g is not None]


def double_gradient(f: _Function) -> list[Any]:
    likes = [g for g in f.first if g is not None and g.requires_grad]
    chosen = iter(f.side.random(likes, "second cotangent"))
    along = [
        next(chosen) if g is not None and g.requires_grad else torch.zeros_like(x)
        for g, x in zip(f.first, f.at, strict=True)
    ]
    return [*f.second(along), *f.tangents(along, recorded=True)]


MODES: dict[str, Callable[[_Function], list[Any]]] = {
    "gradient": gradient,
    "double gradient": double_gradient,
    "forward": forward,
    "forward over reverse": forward_over_reverse,
}


def derivative(mode: str, side: Side, most: int = MOST_ELEMENTS) -> list[Estimate | None]:
    """What `mode` returns, by finite differences; NoDerivative where they tell none, or where the
    arguments have more than `most` elements."""
    function = _Function(side)
    if sum(x.numel() for x in function.at) > most:
        raise NoDerivative
    found = MODES[mode](function)
    return [None if estimate is None else estimate.checked() for estimate in found]
