"""Copies of a sample's arguments, for PyTorch and for taeda, with the same memory layout.

Tensors of one storage stay so: each storage is copied once per call of `Copies`, and views of it
are made by as_strided. Conjugate and negative bits and requires_grad are kept. Floating dtypes can
be exchanged for double precision on the way, for a more exact answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from tests.parity.translate import NotMirrored, translate

import taeda

DOUBLE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


def to_taeda(flat: torch.Tensor) -> Any:
    """A copy of a dense tensor, in taeda's own memory."""
    made = taeda.empty(flat.shape, dtype=translate(flat.dtype))
    if flat.dtype == torch.complex32:
        taeda.view_as_real(made).copy_(taeda.from_dlpack(torch.view_as_real(flat)))
    elif flat.numel():
        made.copy_(taeda.from_dlpack(flat))
    return made


def to_torch(tensor: Any) -> torch.Tensor:
    """A copy of taeda's tensor, laid out as it is."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype == taeda.complex32:
        return torch.view_as_complex(torch.from_dlpack(taeda.view_as_real(plain)).clone())
    if plain.numel() == 0:
        empty = torch.empty(0, dtype=getattr(torch, str(plain.dtype).split(".")[1]))
        return empty.as_strided(tuple(plain.shape), tuple(plain.stride()))
    return torch.from_dlpack(plain).clone()


class Moved:
    """Changes each number by `units` of the relative spacing of its dtype's numbers, up or down by
    a draw that is the same for all `units`. Zeros and integers stay."""

    def __init__(self, dtype: torch.dtype, units: float, seed: int) -> None:
        self.dtype, self.units = dtype, units
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """`tensor` changed, whose numbers were those of `dtype`, or of the call's."""
        dtype = dtype or self.dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            return tensor
        parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        signs = torch.randint(0, 2, parts.shape, generator=self.generator).double() * 2 - 1
        parts = parts * (1 + self.units * torch.finfo(dtype).eps * signs)
        return torch.view_as_complex(parts) if tensor.is_complex() else parts


@dataclass(frozen=True)
class Lifted:
    """Puts a small number in the place of each zero among an argument's, not of a tangent's."""

    small: float

    def __call__(self, tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        real = dtype is not None and dtype.is_floating_point
        return torch.where(tensor == 0, self.small, tensor) if real else tensor


class Copies:
    """Copies objects with tensors for "torch" or "taeda"; `double` raises their precision, and
    `moved` then changes the values a little."""

    def __init__(
        self,
        library: str,
        double: bool = False,
        grad: bool = True,
        moved: Moved | Lifted | None = None,
    ) -> None:
        self.taeda = library == "taeda"
        self.double, self.grad, self.moved = double, grad, moved
        self._storages: dict[tuple[int, torch.dtype], Any] = {}
        self._tensors: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._tensors:
                self._tensors[id(value)] = (self._tensor(value), value)
            return self._tensors[id(value)][0]
        if isinstance(value, torch.Size):
            return (taeda.Size if self.taeda else torch.Size)(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self, value))
        if isinstance(value, (tuple, list)):
            return type(value)(map(self, value))
        if isinstance(value, Mapping):
            return {key: self(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        return self._other(value)

    def _other(self, value: Any) -> Any:
        if self.double and isinstance(value, torch.dtype):
            value = DOUBLE.get(value, value)
        if not self.taeda:
            return value
        if isinstance(value, torch.device):
            return taeda.device(str(value))
        if isinstance(value, torch.Generator):
            return taeda.Generator().manual_seed(value.initial_seed())
        return translate(value)

    def _tensor(self, tensor: torch.Tensor) -> Any:
        if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized:
            raise NotMirrored(str(tensor.layout))
        plain = tensor.detach()
        conj, neg = plain.is_conj(), plain.is_neg()
        plain = plain.conj() if conj else plain
        plain = torch._neg_view(plain) if neg else plain
        flat = self._storage(plain)
        made = flat.as_strided(tuple(plain.shape), tuple(plain.stride()), plain.storage_offset())
        made = made.conj() if conj else made
        made = (taeda if self.taeda else torch)._neg_view(made) if neg else made
        if self.grad and tensor.requires_grad:
            made.requires_grad_()
        return made

    def _storage(self, plain: torch.Tensor) -> Any:
        key = (plain.untyped_storage()._cdata, plain.dtype)
        if key not in self._storages:
            whole = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage())
            if self.double:
                given = whole.dtype
                whole = whole.to(DOUBLE.get(given, given))
                whole = self.moved(whole, given) if self.moved else whole
            self._storages[key] = to_taeda(whole) if self.taeda else whole.clone()
        return self._storages[key]


def shares_elements(tensor: torch.Tensor) -> bool:
    """Whether two elements lie at one address."""
    reach = 0  # of the dimensions with smaller strides
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False
    places = torch.zeros(1, dtype=torch.int64)
    for stride, size in zip(tensor.stride(), tensor.shape, strict=True):
        places = (places.unsqueeze(-1) + torch.arange(size) * stride).flatten()
    return places.unique().numel() < tensor.numel()


def tensors(value: Any, kind: type) -> list[Any]:
    """The tensors of nested tuples, lists and dictionaries, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in tensors(item, kind)]
    return []
