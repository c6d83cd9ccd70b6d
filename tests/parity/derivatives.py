"""The derivatives of an operator: reverse, twice reverse, forward, forward over reverse."""

from __future__ import annotations

from typing import Any

from tests.parity import mirror
from tests.parity.modes import NotApplicable, replaced, unique
from tests.parity.sides import Side


def _recorded(side: Side) -> tuple[list[Any], list[Any]]:
    """The leaves that require grad, and the outputs that depend on them."""
    leaves = unique(side.differentiable(side.arguments()))
    if not leaves:
        raise NotApplicable
    outputs = side.differentiable(side.processed(side.call()))
    if not outputs:
        raise NotApplicable
    return leaves, outputs


def gradient(side: Side) -> Any:
    leaves, outputs = _recorded(side)
    cotangents = side.random(outputs, "cotangent")
    return side.lib.autograd.grad(outputs, leaves, cotangents, allow_unused=True)


def double_gradient(side: Side) -> Any:
    """Gradients of the gradients, by the leaves and by the cotangents."""
    leaves, outputs = _recorded(side)
    cotangents = [tensor.requires_grad_() for tensor in side.random(outputs, "cotangent")]
    first = side.lib.autograd.grad(
        outputs, leaves, cotangents, create_graph=True, allow_unused=True
    )
    first = side.differentiable(first)
    if not first:
        raise NotApplicable
    second = side.random(first, "second cotangent")
    return side.lib.autograd.grad(first, leaves + cotangents, second, allow_unused=True)


def _duals(side: Side, detach: bool) -> tuple[Any, list[Any]]:
    """The arguments with dual numbers for those that require grad, and these duals. PyTorch lays a
    tangent as its tensor, so where elements share memory it loses a part of what is drawn."""
    arguments = side.arguments()
    leaves = unique(side.differentiable(arguments))
    if not leaves or (not side.taeda and any(map(mirror.shares_elements, leaves))):
        raise NotApplicable
    tangents = side.random(leaves, "tangent")
    duals = [
        side.forward_ad.make_dual(leaf.detach() if detach else leaf, tangent)
        for leaf, tangent in zip(leaves, tangents, strict=True)
    ]
    by = {id(leaf): dual for leaf, dual in zip(leaves, duals, strict=True)}
    return replaced(arguments, by, side.tensor), duals


def _tangents(side: Side, values: list[Any]) -> list[Any]:
    found = [side.forward_ad.unpack_dual(value).tangent for value in values]
    return [None if tangent is None else tangent.clone() for tangent in found]


def _applied(side: Side, arguments: Any) -> list[Any]:
    first, args, kwargs = arguments
    op = side.variant("op")
    assert op is not None
    side.reseed()
    return mirror.tensors(side.processed(op(first, *args, **kwargs)), side.tensor)


def _floating(values: list[Any]) -> list[Any]:
    return [value for value in values if value.is_floating_point() or value.is_complex()]


def forward(side: Side) -> Any:
    with side.forward_ad.dual_level():
        arguments, _ = _duals(side, detach=True)
        return _tangents(side, _floating(_applied(side, arguments)))


def forward_over_reverse(side: Side) -> Any:
    """The tangents of the gradients, when the leaves are dual."""
    with side.forward_ad.dual_level():
        arguments, duals = _duals(side, detach=False)
        outputs = side.differentiable(_applied(side, arguments))
        if not outputs:
            raise NotApplicable
        cotangents = side.random(outputs, "cotangent")
        first = side.lib.autograd.grad(
            outputs, duals, cotangents, create_graph=True, allow_unused=True
        )
        return _tangents(side, [grad for grad in first if grad is not None])


def forward_by_reverse(side: Side) -> Any:
    """The tangents of forward mode as the derivatives of the gradients by their cotangents."""
    leaves, outputs = _recorded(side)
    tangents = side.random(leaves, "tangent")
    cotangents = [side.lib.zeros_like(output, requires_grad=True) for output in outputs]
    first = side.lib.autograd.grad(
        outputs, leaves, cotangents, create_graph=True, allow_unused=True
    )
    kept = [(g, t) for g, t in zip(first, tangents, strict=True) if g is not None]
    return side.lib.autograd.grad(
        [g for g, _ in kept], cotangents, [t for _, t in kept], allow_unused=True
    )


def dtypes_of_duals(side: Side) -> Any:
    """The dtypes of the results that forward mode gives tangents: theirs must be the same."""
    with side.forward_ad.dual_level():
        arguments, _ = _duals(side, detach=True)
        return [value.dtype for value in _floating(_applied(side, arguments))]
