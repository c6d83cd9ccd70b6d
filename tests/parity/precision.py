"""How far two tensors are apart, and how far they may be."""

from __future__ import annotations

import math
from typing import Any

import torch

# relative and absolute, of the largest magnitude near which an error may come about
TOLERANCE = {
    torch.float64: (1e-7, 1e-9),
    torch.complex128: (1e-7, 1e-9),
    torch.float32: (2e-4, 2e-5),
    torch.complex64: (2e-4, 2e-5),
    torch.float16: (1e-2, 5e-3),
    torch.bfloat16: (2e-2, 1e-2),
    torch.complex32: (1e-2, 5e-3),
}


def scale(tensor: torch.Tensor) -> float:
    finite = tensor[torch.isfinite(tensor)]
    return float(finite.abs().max()) if finite.numel() else 0.0


def wide(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def error_of(value: torch.Tensor, truth: torch.Tensor) -> float:
    """The largest error; infinite where one is finite and the other is not, or another infinity."""
    value, truth = torch.view_as_real(wide(value) + 0j), torch.view_as_real(wide(truth) + 0j)
    both = torch.isfinite(value) & torch.isfinite(truth)
    same = (value == truth) | (value.isnan() & truth.isnan()) | both
    if not bool(same.all()):
        return math.inf
    return float((value - truth)[both].abs().max()) if bool(both.any()) else 0.0


def close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    if ours.numel() == 0:
        return True
    if ours.dtype not in TOLERANCE:
        return torch.equal(ours, theirs)
    relative, absolute = TOLERANCE[ours.dtype]
    if torch.allclose(wide(ours), wide(theirs), relative, absolute, equal_nan=True):
        return True
    return error_of(ours, theirs) <= absolute + relative * scale(wide(theirs))


def nearer(ours: torch.Tensor, theirs: torch.Tensor, exact: Any) -> bool:
    """Whether ours is at most as far from the exact answer as PyTorch's, or within rounding."""
    if not isinstance(exact, torch.Tensor) or exact.shape != ours.shape:
        return False
    if ours.dtype not in TOLERANCE:
        return False
    relative, absolute = TOLERANCE[ours.dtype]
    exact = exact.to(ours.dtype)  # overflows as a result of that dtype would
    own = error_of(ours, exact)
    return own <= max(1.5 * error_of(theirs, exact), absolute + relative * scale(wide(exact)))


def first_difference(ours: torch.Tensor, theirs: torch.Tensor) -> str:
    a, b = wide(ours).flatten(), wide(theirs).flatten()
    equal = (a == b) | (a.isnan() & b.isnan())
    distance = (a - b).abs().nan_to_num(math.inf, math.inf) * ~equal
    at = int(distance.nan_to_num().argmax())
    return f"at {at}: {a[at].item():.6g}, PyTorch {b[at].item():.6g}"
