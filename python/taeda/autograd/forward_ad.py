"""Forward mode: dual tensors carry the derivative along one direction with them.

>>> import taeda.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(torch.tensor(2.), torch.tensor(1.))
...     print(fwAD.unpack_dual(x * x).tangent)
tensor(4.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from taeda import _C
from taeda._C import Tensor
from taeda.utils._contextlib import _DecoratorContextManager

__all__ = [
    "UnpackedDualTensor",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
    "dual_level",
]


class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual tensor; tangent is None where there is none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Starts a level, in which dual tensors can be made, and returns its number.

    Levels nest: a tensor may have a tangent at each, and tangents may have tangents of the levels
    outside.
    """
    return _C._enter_dual_level()


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the innermost level: all its tangents go."""
    _C._exit_dual_level(_C._dual_level() if level is None else level)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of ``tensor`` that carries ``tangent``, which has the same shape and dtype.

    ``level`` says at which level; the innermost if left out.
    """
    return _C._make_dual(tensor, tangent, _C._dual_level() if level is None else level)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor at a level; the innermost if left out."""
    if level is None:
        level = _C._dual_level()
    if not level:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unpack_dual(tensor, level))


class dual_level(_DecoratorContextManager):
    """A context manager around ``enter_dual_level`` and ``exit_dual_level``."""

    def __init__(self) -> None:
        self.levels: list[int] = []

    def __enter__(self) -> int:  # type: ignore[override]
        self.levels.append(enter_dual_level())
        return self.levels[-1]

    def __exit__(self, *exc_info: Any) -> None:
        exit_dual_level(level=self.levels.pop())


def _is_fwd_grad_enabled() -> bool:
    """Whether this thread's operators give tangents, and its dual tensors show theirs."""
    return _C._is_fwd_grad_enabled()


class _set_fwd_grad_enabled(_DecoratorContextManager):
    """Switches that on or off, at once and until the end of the block."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev = _is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(mode)

    def clone(self) -> _set_fwd_grad_enabled:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: Any) -> None:
        _C._set_fwd_grad_enabled(self.prev)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> int:
        """``_current_level``: the innermost level's number, -1 outside of all."""
        if name == "_current_level":
            return _C._dual_level() - 1
        raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute '{name}'")
