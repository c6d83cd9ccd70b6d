"""What rounding the inputs does to a derivative, in double precision.

A derivative computed in half or single precision cannot be nearer to the exact one than what the
last bit of its inputs decides: next to a cancellation nothing of it may be left. So PyTorch's
derivative in double precision is taken again with every number of the inputs and of the cotangents
or tangents changed by one unit of its dtype, up or down by draws. The largest change of an element,
a few times over, is how far from the exact element a value may be that rounds at other steps.

Where an element does not follow its inputs smoothly, as at a tie or a jump, it has to be exact: its
change would not become smaller with that of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tests.parity import mirror
from tests.parity.differences import Estimate
from tests.parity.sides import Side

DRAWS = 6
FINER = 1 / 16  # the second change, by which the first is seen to follow the inputs smoothly
# Where the inputs are in double precision themselves, a part of a unit would change nothing, and
# what does not follow them smoothly would seem to.
UNITS = {torch.float64: 64.0, torch.complex128: 64.0}
ALLOWED = 4.0  # times the largest change by one unit


def _leaves(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _distance(a: Any, b: torch.Tensor) -> torch.Tensor:
    """By element; without end where there is no number, or no tensor."""
    if not isinstance(a, torch.Tensor) or a.shape != b.shape:
        return torch.full(b.shape, torch.inf, dtype=torch.float64)
    distance = torch.where(a == b, 0.0, (a - b).abs())
    return distance.nan_to_num(torch.inf, torch.inf).double()


def _doubt(exact: torch.Tensor, moved: list[list[Any]], units: float) -> torch.Tensor:
    """Of an element, by its values at `units` and at FINER ones in each draw."""
    coarse, fine = (
        torch.stack([_distance(draw[k], exact) for draw in moved]).amax(0) for k in range(2)
    )
    smooth = (fine <= coarse / 4) & coarse.isfinite()
    return torch.where(smooth, ALLOWED / units * coarse, 0.0)


def derivative(
    run: Callable[[Side], Any], side: Callable[..., Side], dtype: torch.dtype
) -> list[Any]:
    """What `run` returns in double precision, with the doubt that inputs in `dtype` leave."""

    def at(by: float, seed: int) -> list[Any]:
        return _leaves(run(side("torch", True, mirror.Moved(dtype, by, seed))))

    units = UNITS.get(dtype, 1.0)
    exact = _leaves(run(side("torch", True)))
    moved = [[at(units, seed), at(units * FINER, seed)] for seed in range(DRAWS)]
    found: list[Any] = []
    for i, value in enumerate(exact):
        given = getattr(value, "value", value)
        if isinstance(given, torch.Tensor) and (given.is_floating_point() or given.is_complex()):
            draws = [[getattr(of[i], "value", of[i]) for of in draw] for draw in moved]
            doubt = _doubt(given.detach(), draws, units) + getattr(value, "doubt", 0.0)
            found.append(Estimate(given.detach(), doubt))
        else:
            found.append(value)
    return found


def limit(run: Callable[[Side], Any], side: Callable[..., Side]) -> list[Any]:
    """What `run` returns as the zeros of its arguments are approached from above, for the elements
    of which the formula says nothing: at the edge of a domain it gives inf - inf or 0 * inf. The
    other elements, and those where two such values differ, are left unknown: a one-sided limit at
    a kink is not the derivative that PyTorch chooses there."""
    at = [_leaves(run(side("torch", True, mirror.Lifted(small)))) for small in (1e-60, 1e-70)]
    said = _leaves(run(side("torch", True)))
    return [_agreed(*values) for values in zip(said, *at, strict=True)]


def _agreed(said: Any, a: Any, b: Any) -> Any:
    if not isinstance(a, torch.Tensor) or not (a.is_floating_point() or a.is_complex()):
        return a
    known = said.isnan() & torch.isclose(a, b, 1e-9, 1e-9)
    return Estimate(a.detach(), torch.where(known, 0.0, torch.nan))
