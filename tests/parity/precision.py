"""How far two tensors are apart, and how far they may be."""

from __future__ import annotations

import math
from typing import Any

import torch

# An element may be off by the first of these, relative to its own magnitude, by the second, and by
# the third relative to the largest magnitude in the tensor, whose rounding may have reached it.
TOLERANCE = {
    torch.float64: (1e-7, 1e-9, 1e-13),
    torch.complex128: (1e-7, 1e-9, 1e-13),
    torch.float32: (2e-4, 2e-5, 1e-5),
    torch.complex64: (2e-4, 2e-5, 1e-5),
    torch.float16: (1e-2, 5e-3, 4e-3),
    torch.bfloat16: (2e-2, 1e-2, 2e-2),
    torch.complex32: (1e-2, 5e-3, 4e-3),
}
WORSE = 2.0  # times PyTorch's largest error, where both are held against double precision


def scale(tensor: torch.Tensor) -> float:
    finite = tensor[torch.isfinite(tensor)]
    return float(finite.abs().max()) if finite.numel() else 0.0


def wide(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def errors_of(value: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Each element's error; infinite where one is finite and the other is not, or another
    infinity."""
    value, truth = torch.view_as_real(wide(value) + 0j), torch.view_as_real(wide(truth) + 0j)
    both = torch.isfinite(value) & torch.isfinite(truth)
    same = (value == truth) | (value.isnan() & truth.isnan())
    error = torch.where(both, (value - truth).abs(), math.inf)
    return torch.where(same, 0.0, error).amax(-1)


def error_of(value: torch.Tensor, truth: torch.Tensor) -> float:
    """The largest error of an element."""
    return float(errors_of(value, truth).max()) if value.numel() else 0.0


def close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Whether each element is within its own tolerance of PyTorch's."""
    if ours.numel() == 0:
        return True
    if ours.dtype not in TOLERANCE:
        return torch.equal(ours, theirs)
    relative, absolute, _ = TOLERANCE[ours.dtype]
    return torch.allclose(wide(ours), wide(theirs), relative, absolute, equal_nan=True)


def _close_elements(ours: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    relative, absolute, _ = TOLERANCE[ours.dtype]
    return torch.isclose(wide(ours), wide(theirs), relative, absolute, equal_nan=True)


def right(ours: torch.Tensor, truth: torch.Tensor, doubt: torch.Tensor | None = None) -> bool:
    """Whether each element is that of an answer in double precision, which may be off by `doubt`,
    or the same integer."""
    if ours.dtype not in TOLERANCE or not (truth.is_floating_point() or truth.is_complex()):
        return torch.equal(ours, truth)
    return bool(right_elements(ours, truth, doubt).all())


def right_elements(
    ours: torch.Tensor, truth: torch.Tensor, doubt: torch.Tensor | None = None
) -> torch.Tensor:
    """As right(), by element; where `doubt` is NaN nothing is known, and nothing right."""
    truth = truth.to(ours.dtype)  # overflows as a result of that dtype would
    found = _close_elements(ours, truth)
    if doubt is not None:
        relative, absolute, of_largest = TOLERANCE[ours.dtype]
        limit = absolute + relative * wide(truth).abs() + of_largest * scale(wide(truth)) + doubt
        found |= (errors_of(ours, truth) <= limit) & ~wide(truth).isnan()
        found &= ~doubt.isnan()
    return found


def nearer(ours: torch.Tensor, theirs: torch.Tensor, exact: Any) -> bool:
    """Whether each element is about as near to the exact answer as PyTorch's elements are, or near
    PyTorch's. Without an exact answer PyTorch's stands for it."""
    return ours.dtype in TOLERANCE and bool(nearer_elements(ours, theirs, exact).all())


def nearer_elements(ours: torch.Tensor, theirs: torch.Tensor, exact: Any) -> torch.Tensor:
    if not isinstance(exact, torch.Tensor) or exact.shape != ours.shape:
        exact = theirs
    relative, absolute, of_largest = TOLERANCE[ours.dtype]
    exact = exact.to(ours.dtype)  # overflows as a result of that dtype would
    magnitude = wide(exact).abs().nan_to_num(0.0, 0.0, 0.0)
    own, pytorch = errors_of(ours, exact), errors_of(theirs, exact)
    limit = absolute + relative * magnitude + of_largest * scale(wide(exact))
    limit += WORSE * scale(pytorch)
    close_by = _close_elements(ours, theirs)
    # Where PyTorch's is infinitely far off, as after an overflow on the way, so may ours be.
    return close_by | (own <= limit) | (pytorch.isinf() & own.isinf())


def first_difference(ours: torch.Tensor, theirs: torch.Tensor) -> str:
    a, b = wide(ours).flatten(), wide(theirs).flatten()
    equal = (a == b) | (a.isnan() & b.isnan())
    distance = (a - b).abs().nan_to_num(math.inf, math.inf) * ~equal
    at = int(distance.nan_to_num().argmax())
    return f"at {at}: {a[at].item():.6g}, PyTorch {b[at].item():.6g}"
