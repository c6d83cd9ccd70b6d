"""What pickles and checkpoints keep of a tensor besides its elements, as PyTorch's do."""

from __future__ import annotations

import copyreg
from typing import Any

from taeda._C import Tensor


def state_of(tensor: Tensor) -> Any:
    """The tensor's attributes; with those of a subclass's ``__slots__`` a pair of dicts; or what
    the subclass's ``__getstate__`` gives."""
    kind = type(tensor)
    if getattr(kind, "__getstate__", None) is not getattr(Tensor, "__getstate__", None):
        return tensor.__getstate__()
    attributes = dict(tensor.__dict__)
    slots = copyreg._slotnames(kind)  # type: ignore[attr-defined]
    if not slots:
        return attributes
    return attributes, {name: getattr(tensor, name) for name in slots if hasattr(tensor, name)}


def sets_state(kind: type) -> bool:
    """Whether a class of tensors takes its state by a ``__setstate__`` of its own."""
    return getattr(kind, "__setstate__", None) is not getattr(Tensor, "__setstate__", None)


def set_state(tensor: Tensor, state: Any) -> None:
    """The opposite of state_of()."""
    if sets_state(type(tensor)):
        tensor.__setstate__(state)  # type: ignore[attr-defined]
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        tensor.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(tensor, name, value)


def refuse_history(tensor: Tensor) -> None:
    """RuntimeError for a tensor that cannot go to another process: a gradient's way ends here."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries.  If you just want to transfer the data, "
            "call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )


def get_tensor_metadata(tensor: Tensor) -> dict[str, bool]:
    """The bits that say how a tensor's elements are read from its memory, those that are set."""
    bits = {"conj": tensor.is_conj(), "neg": tensor.is_neg()}
    return {name: True for name, value in bits.items() if value}


def set_tensor_metadata(tensor: Tensor, metadata: dict[str, bool]) -> None:
    """Sets the bits that ``get_tensor_metadata`` gave."""
    for name, value in metadata.items():
        if name not in ("conj", "neg"):
            raise RuntimeError(f"set_tensor_metadata: expected 'conj' or 'neg', got {name!r}")
        getattr(tensor, f"_set_{name}")(value)
