"""Compares what PyTorch and taeda did: values, dtypes, shapes, strides, exceptions.

Where values differ by more than the dtype's tolerance, both are held against PyTorch's answer in
double precision, element by element; taeda's passes when it is hardly farther from it than
PyTorch's is (tests/parity/precision.py). Where it does not, what is independent of PyTorch's own
answer decides (`agrees`, tests/parity/truths.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from tests.parity import mirror
from tests.parity.precision import (
    TOLERANCE,
    close,
    error_of,
    first_difference,
    nearer,
    nearer_elements,
    right,
    right_elements,
    scale,
    wide,
)
from tests.parity.translate import translate

import taeda


@dataclass
class Outcome:
    """What a call gave: a value or an exception."""

    value: Any = None
    error: BaseException | None = None


Findings = list[tuple[str, str]]


def observe(call: Callable[[], Any]) -> Outcome:
    """What the call gave. NotImplemented, a binary operator's way to refuse, is the TypeError that
    Python makes of it."""
    try:
        value = call()
    except Exception as error:
        return Outcome(error=error)
    if value is NotImplemented:
        return Outcome(error=TypeError("unsupported operand type(s)"))
    return Outcome(value)


def first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:160]


def flat(value: Any) -> list[Any]:
    """The leaves of nested tuples, lists, dictionaries."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def _same_class(theirs: BaseException, ours: BaseException) -> bool:
    names = {cls.__name__ for cls in type(ours).__mro__}
    return type(theirs).__name__ in names


def errors(theirs: Outcome, ours: Outcome) -> Findings:
    """The findings of a call that PyTorch or taeda refused."""
    if theirs.error is None:
        assert ours.error is not None
        return [("refused", first_line(ours.error))]
    if ours.error is None:
        return [("accepted", "PyTorch: " + first_line(theirs.error))]
    if not _same_class(theirs.error, ours.error):
        return [("class", f"{first_line(ours.error)} | PyTorch: {first_line(theirs.error)}")]
    return []


def strides(tensor: Any) -> list[int]:
    """Strides of the dimensions in which there is more than one element."""
    if tensor.numel() == 0:
        return []
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [stride for size, stride in pairs if size > 1]


@dataclass
class Rules:
    """What of the outcome is compared."""

    values: bool = True
    strides: bool = True
    grad: bool = False  # requires_grad and is_leaf
    zeros: bool = False  # None stands for zeros: derivatives of what an output does not depend on


def _pair(ours: Any, theirs: Any, exact: Any, rules: Rules) -> Findings:
    name = str(ours.dtype).replace("taeda", "torch")
    if name != str(theirs.dtype):
        return [("dtype", f"{name}, PyTorch {theirs.dtype}")]
    if tuple(ours.shape) != tuple(theirs.shape):
        return [("shape", f"{tuple(ours.shape)}, PyTorch {tuple(theirs.shape)}")]
    found: Findings = []
    if rules.strides and strides(ours) != strides(theirs):
        found.append(
            ("strides", f"{tuple(ours.shape)}: {ours.stride()}, PyTorch {theirs.stride()}")
        )
    recorded = [f"{x.requires_grad}, leaf {x.is_leaf}" for x in (ours, theirs)]
    if rules.grad and recorded[0] != recorded[1]:
        found.append(("requires_grad", ", PyTorch ".join(recorded)))
    if rules.values:
        copy = mirror.to_torch(ours)
        if not close(copy, theirs.detach()) and not nearer(copy, theirs, exact):
            size = f"error {error_of(copy, theirs):.3g} of {scale(wide(theirs)):.3g}"
            found.append(("value", f"{size} {first_difference(copy, theirs)}"))
    return found


def _plain(ours: Any, theirs: Any) -> bool:
    """Whether values that are no tensors agree."""
    if isinstance(theirs, (float, complex)) and isinstance(ours, type(theirs)):
        both_nan = ours != ours and theirs != theirs
        return ours == theirs or both_nan or abs(ours - theirs) <= 1e-5 + 1e-3 * abs(theirs)
    if isinstance(theirs, (torch.dtype, torch.device, torch.layout)):
        return str(ours).replace("taeda", "torch") == str(theirs)
    return bool(ours == theirs)


def values(ours: Any, theirs: Any, exact: Callable[[], Any], rules: Rules) -> Findings:
    """The findings of two results; `exact` computes PyTorch's in double precision when asked."""
    left, right = flat(ours), flat(theirs)
    if len(left) != len(right):
        return [("structure", f"{len(left)} values, PyTorch {len(right)}")]
    found: Findings = []
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        if not isinstance(a, taeda.Tensor) or not isinstance(b, torch.Tensor):
            if rules.zeros and _absent(a, b):
                continue
            if isinstance(a, taeda.Tensor) != isinstance(b, torch.Tensor):
                found.append(("structure", f"{describe(a)}, PyTorch {describe(b)}"))
            elif rules.values and not _plain(a, b):
                found.append(("value", f"{a}, PyTorch {b}"[:160]))
            continue
        first = _pair(a, b, None, rules)
        if any(kind == "value" for kind, _ in first):
            better = flat(observe(exact).value)
            first = _pair(a, b, better[i] if len(better) == len(right) else None, rules)
        found += first
    return list(dict(reversed(found)).items())


def agrees(ours: Any, truth: Any, rules: Rules) -> bool:
    """Whether every value of `ours` is that of `truth`, by the tolerance of ours' dtype and what an
    Estimate leaves in doubt."""
    pairs = flat(ours), flat(truth)
    return len(pairs[0]) == len(pairs[1]) and all(
        _is_true(a, b, rules) for a, b in zip(*pairs, strict=True)
    )


def united(ours: Any, theirs: Any, exact: Any, truths: Iterable[Any], rules: Rules) -> bool:
    """Whether each element of `ours` is near PyTorch's or near what one of `truths` says of it:
    an answer in double precision need not know all elements, as next to a pole."""
    leaves = flat(ours)
    known: list[Any] = [None] * len(leaves)
    first = flat(theirs)
    better = flat(exact)
    if len(first) == len(leaves):
        better = better if len(better) == len(first) else [None] * len(first)
        for i, (a, b, c) in enumerate(zip(leaves, first, better, strict=True)):
            known[i] = _elements(a, b, rules, lambda x, b=b, c=c: nearer_elements(x, b.detach(), c))
    for truth in truths:
        said = flat(truth)
        if len(said) != len(leaves):
            continue
        for i, (a, b) in enumerate(zip(leaves, said, strict=True)):
            doubt, b = getattr(b, "doubt", None), getattr(b, "value", b)
            more = _elements(a, b, rules, lambda x, b=b, d=doubt: right_elements(x, b.detach(), d))
            known[i] = more if known[i] is None else known[i] if more is None else known[i] | more
        if all(elements is not None and bool(elements.all()) for elements in known):
            return True
    return False


def _elements(ours: Any, truth: Any, rules: Rules, judged: Callable[..., Any]) -> Any:
    """Which elements are right; None where the two cannot be compared."""
    if ours is None and truth is None:
        return torch.ones((), dtype=torch.bool)
    if rules.zeros and _absent(ours, truth):
        return torch.ones((), dtype=torch.bool)
    if ours is None and rules.zeros and isinstance(truth, torch.Tensor):
        ours = taeda.zeros(truth.shape, dtype=translate(truth.dtype))
    if not isinstance(ours, taeda.Tensor) or not isinstance(truth, torch.Tensor):
        return None
    copy = mirror.to_torch(ours)
    if copy.shape != truth.shape or copy.dtype not in TOLERANCE:
        return None
    return judged(copy)


def _is_true(ours: Any, truth: Any, rules: Rules) -> bool:
    doubt = getattr(truth, "doubt", None)
    truth = getattr(truth, "value", truth)
    if ours is None and rules.zeros and isinstance(truth, torch.Tensor):
        ours = taeda.zeros(truth.shape, dtype=translate(truth.dtype))
    if isinstance(ours, taeda.Tensor) != isinstance(truth, torch.Tensor):
        return False
    if not isinstance(truth, torch.Tensor):
        return _plain(ours, truth)
    if tuple(ours.shape) != tuple(truth.shape):
        return False
    return not rules.values or right(mirror.to_torch(ours), truth.detach(), doubt)


def _absent(ours: Any, theirs: Any) -> bool:
    """Whether one is None and the other zeros."""
    pair = [ours, theirs]
    others = [item for item in pair if item is not None]
    return len(others) == 1 and hasattr(others[0], "numel") and not bool(others[0].any())


def describe(value: Any) -> str:
    if isinstance(value, (torch.Tensor, taeda.Tensor)):
        return f"a tensor {tuple(value.shape)}"
    return repr(value)[:40]
