"""Second opinions where taeda's value differs from PyTorch's, also in double precision.

PyTorch may be wrong in double precision too, and of equal elements it promises no order. So before
a value counts as different it is held against what is independent of PyTorch's own answer:

- the function that the database compares PyTorch with, NumPy's or SciPy's in double precision;
- finite differences of PyTorch's function, for derivatives (tests/parity/differences.py);
- PyTorch's stable sort, for operators that order or choose among equal elements;
- for out= what the function returns without it; for one of another floating dtype what one of
  doubles gets, rounded.

Against each of them taeda's value has to be right by the dtype's tolerance in every element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from tests.parity.sides import Side


def _into(out: Any, results: Any) -> Any:
    """`results` in out=, which is resized as PyTorch resizes it."""
    if out is None:
        return results
    pairs = zip(out, results, strict=True) if isinstance(results, tuple) else [(out, results)]
    for tensor, result in pairs:
        if result.dtype == torch.bool:
            torch.logical_not(~result, out=tensor)
        else:
            torch.add(result, 0, out=tensor)
    return out


def _sort(x: Any, *args: Any, stable: Any = None, **kwargs: Any) -> Any:
    names = dict(zip(("dim", "descending"), args, strict=False))
    return torch.sort(x, stable=True, **{"dim": -1} | names | kwargs)


def _argsort(x: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return torch.argsort(x, dim=dim, descending=descending, stable=True)


def _msort(x: Any, out: Any = None) -> Any:
    return _into(out, torch.sort(x, dim=0, stable=True)[0])


def _topk(
    x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, out: Any = None
):
    found = torch.sort(x, dim=dim, descending=largest, stable=True)
    return _into(out, tuple(part.narrow(dim, 0, k) if x.dim() else part for part in found))


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False, out: Any = None) -> Any:
    found = torch.sort(x, dim=dim, stable=True)
    if x.dim() == 0:
        return _into(out, tuple(found))
    parts = (part.narrow(dim, k - 1, 1) for part in found)
    return _into(out, tuple(part if keepdim else part.squeeze(dim) for part in parts))


# What PyTorch gives when equal elements keep their order.
STABLE: dict[str, Callable[..., Any]] = {
    "sort": _sort,
    "argsort": _argsort,
    "msort": _msort,
    "topk": _topk,
    "kthvalue": _kthvalue,
}


class StableSide(Side):
    """PyTorch, where equal elements keep their order."""

    def variant(self, name: str) -> Callable[..., Any] | None:
        given = super().variant(name)
        return None if given is None else STABLE[self.info.name]


def _stacked(results: list[Any]) -> Any:
    """The results of samples as one: tensors stacked, in nested tuples and lists too."""
    if isinstance(results[0], torch.Tensor):
        return torch.stack(results)
    if isinstance(results[0], (tuple, list)):
        return [_stacked(list(parts)) for parts in zip(*results, strict=True)]
    return results[0]


def _loop(function: Callable[..., Any], in_dims: int) -> Callable[..., Any]:
    """vmap as a loop over the samples."""

    def run(*stacked: torch.Tensor) -> Any:
        samples = zip(*(tensor.unbind(in_dims) for tensor in stacked), strict=True)
        return _stacked([function(*one) for one in samples])

    return run


class LoopSide(Side):
    """PyTorch, where vmap is the loop over the samples that it stands for."""

    def own(self, value: Any) -> Any:
        return _loop if value is torch.vmap else super().own(value)


class ReferenceSide(LoopSide):
    """The database's own reference, in double precision."""

    def variant(self, name: str) -> Callable[..., Any] | None:
        given = super().variant(name)
        return None if given is None else self._reference

    def _reference(self, x: torch.Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        values = self.info.ref(x.detach().double().numpy(), *args, **kwargs)
        return _into(out, torch.as_tensor(values, dtype=torch.float64))


class FunctionSide(Side):
    """PyTorch, where out= gets what the function returns without it."""

    def variant(self, name: str) -> Callable[..., Any] | None:
        given = super().variant(name)
        assert given is not None
        return lambda *args, out=None, **kwargs: _into(out, given(*args, **kwargs))


class RoundedSide(Side):
    """PyTorch, where a floating or complex out= gets what one in double precision gets, rounded."""

    def variant(self, name: str) -> Callable[..., Any] | None:
        given = super().variant(name)
        return None if given is None else lambda *args, **kwargs: _rounded(given, *args, **kwargs)


def _rounded(function: Callable[..., Any], *args: Any, out: Any = None, **kwargs: Any) -> Any:
    if out is None:
        return function(*args, **kwargs)
    outs = out if isinstance(out, tuple) else (out,)
    wide = tuple(torch.zeros_like(tensor, dtype=_wider(tensor.dtype)) for tensor in outs)
    function(*args, out=wide if isinstance(out, tuple) else wide[0], **kwargs)
    for tensor, result in zip(outs, wide, strict=True):
        tensor.copy_(result)
    return out


def _wider(dtype: torch.dtype) -> torch.dtype:
    """Double precision; a TypeError of integers, since sums that are cut off to them on the way are
    not rounded."""
    if dtype.is_complex:
        return torch.complex128
    if not dtype.is_floating_point:
        raise TypeError(str(dtype))
    return torch.float64


OUT = ("out", "out strided", "out resized", "out aliased")
REFERRED = ("function", "permuted", "method", "vmap", *OUT)


def references(info: Any, dtype: torch.dtype, mode: str) -> Iterator[type[Side]]:
    """The sides whose values count beside PyTorch's."""
    if info.name in STABLE:
        yield StableSide
    if mode in OUT:
        yield FunctionSide
    if mode == "out cast":
        yield RoundedSide
    unary = hasattr(info, "sample_kwargs") and getattr(info, "ref", None) is not None
    if unary and not dtype.is_complex and mode in REFERRED:
        yield ReferenceSide
