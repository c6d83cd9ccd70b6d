"""Checks of arguments by functions that are written in Python, with the texts of those in C++."""

from __future__ import annotations

from taeda._C import Tensor, dtype

TYPE_CHECKING = False  # typing's own would load typing
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def require_tensors(function: str, **arguments: Any) -> None:
    """TypeError for the first of `arguments`, in the order of the call, that is no tensor."""
    for i, (name, value) in enumerate(arguments.items()):
        if not _is_tensor(value):
            raise TypeError(
                f"{function}(): argument '{name}' (position {i + 1}) must be Tensor, not "
                f"{type(value).__name__}"
            )


def require_list_of_tensors(function: str, values: Any) -> None:
    """TypeError where one of `values` is no tensor, or they are no list."""
    if not isinstance(values, (tuple, list)):
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"{type(values).__name__}"
        )
    for i, value in enumerate(values):
        if not _is_tensor(value):
            raise TypeError(
                f"{function}(): expected Tensor as element {i} in argument 0, but got "
                f"{type(value).__name__}"
            )


def require_bool(function: str, name: str, value: Any) -> None:
    """TypeError where an argument is neither True nor False."""
    kind = type(value).__name__
    if kind not in ("bool", "bool_") and not hasattr(value, "__torch_function__"):
        raise TypeError(f"{function}(): argument '{name}' must be bool, not {kind}")


def require_int(function: str, name: str, value: Any) -> None:
    """TypeError where an argument is no integer, ValueError where it is none of 64 bits."""
    if not hasattr(value, "__index__") and not hasattr(value, "__torch_function__"):
        raise TypeError(f"{function}(): argument '{name}' must be int, not {type(value).__name__}")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{function}(): Overflow when unpacking long long: '{name}' is {value}")


def require_dtype(function: str, name: str, value: Any) -> None:
    """TypeError where an argument is no dtype."""
    if not isinstance(value, dtype):
        kind = type(value).__name__
        raise TypeError(f"{function}(): argument '{name}' must be torch.dtype, not {kind}")
