"""torch._foreach_add and the like: an operator on each tensor of a list.

PyTorch has them to launch one kernel for many tensors; here they are loops over the tensors, which
programs for CPUs lose nothing by. In the other arguments, a list gives one value a tensor and
anything else stands for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import _C
from taeda._C import Tensor


def _each(name: str, tensors: Any, args: tuple) -> list[tuple]:
    """(tensor, its share of the other arguments) for every tensor."""
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for arg in args:
        if isinstance(arg, (list, tuple)) and len(arg) != len(tensors):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(tensors)} and "
                f"{len(arg)}"
            )
    return [
        (x, *(arg[k] if isinstance(arg, (list, tuple)) else arg for arg in args))
        for k, x in enumerate(tensors)
    ]


def _operator(name: str) -> Callable:
    """The operator for one tensor: `(x, *args, **options)` -> result."""
    if name == "copy":
        return lambda x, src: src.to(x.dtype).expand_as(x).clone()
    if name in ("maximum", "minimum"):
        clamp = getattr(Tensor, "clamp_min" if name == "maximum" else "clamp_max")
        method = getattr(Tensor, name)
        return lambda x, y: (method if isinstance(y, Tensor) else clamp)(x, y)
    if name in ("addcmul", "addcdiv"):
        method = getattr(Tensor, name)
        return lambda x, a, b, value=1: method(x, a, b, value=value)
    return Tensor.zero_ if name == "zero" else getattr(Tensor, name)


def _scalars(packed: Tensor) -> list:
    """The numbers of a tensor with one for each tensor of a list."""
    if packed.dim() != 1:
        raise RuntimeError(
            f"Expected packed scalar Tensor to be of dimension 1. Got {packed.dim()} instead."
        )
    return packed.tolist()


def _functions(name: str) -> tuple[Callable, Callable]:
    operator, in_place = _operator(name), getattr(Tensor, name + "_", None)

    def values(args: tuple, options: dict) -> tuple[tuple, dict]:
        """Arguments given by name in their places; alpha stays an option."""
        alpha = {key: value for key, value in options.items() if key == "alpha"}
        args = (*args, *(v for key, v in options.items() if key != "alpha"))
        if name in ("addcmul", "addcdiv") and len(args) == 3 and isinstance(args[2], Tensor):
            args = (*args[:2], _scalars(args[2]))
        return args, alpha

    def foreach(self: Any, *args: Any, **options: Any) -> tuple[Tensor, ...]:
        args, alpha = values(args, options)
        if name == "pow" and not isinstance(self, (list, tuple)):  # a base for all the exponents
            return tuple(
                _C._functions["torch"]["pow"](self, *row) for row in _each(name, args[0], ())
            )
        return tuple(operator(*row, **alpha) for row in _each(name, self, args))

    def foreach_(self: Any, *args: Any, **options: Any) -> list[Tensor]:
        args, alpha = values(args, options)
        for x, *rest in _each(name, self, args):
            if in_place is None or name in ("addcmul", "addcdiv"):
                x.copy_(operator(x, *rest, **alpha))
            else:
                in_place(x, *rest, **alpha)
        return list(self)

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}"
    foreach_.__name__ = foreach_.__qualname__ = f"_foreach_{name}_"
    foreach.__doc__ = f"``Tensor.{name}`` on each tensor of a list."
    foreach_.__doc__ = f"``Tensor.{name}_`` on each tensor of a list."
    return foreach, foreach_


for _name in _C._functions["foreach"]:  # one that ends in _ is in place only
    _made = _functions(_name.removesuffix("_"))
    if not _name.endswith("_"):
        globals()[f"_foreach_{_name}"] = _made[0]
    globals()[f"_foreach_{_name.removesuffix('_')}_"] = _made[1]


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor of a list."""
    from taeda.linalg import vector_norm  # type: ignore[attr-defined]

    return tuple(vector_norm(x, ord, dtype=dtype) for (x,) in _each("norm", self, ()))
