"""Methods of Tensor that programs seldom call: loaded when one of them is called."""

from __future__ import annotations

import math
import warnings
from typing import Any

import taeda as torch
from taeda import Tensor
from taeda._functions.removed import eig, lstsq, solve, symeig  # noqa: F401


def _resized(self: Tensor, sizes: Any) -> Tensor:
    """The elements in another shape, which must have as many of them."""
    if math.prod(sizes) != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, sizes))} "
            f"({math.prod(sizes)} elements in total), but the given tensor has a size of "
            f"{'x'.join(map(str, self.shape))} ({self.numel()} elements). autograd's resize can "
            "only change the shape of a given tensor, while preserving the number of elements. "
        )
    return self.contiguous().view(*sizes)


def resize(self: Tensor, *sizes: int) -> Tensor:
    """The tensor in another shape; deprecated: use reshape()."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=3)
    return _resized(self, sizes)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The tensor in another one's shape; deprecated: use reshape_as()."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=3)
    return _resized(self, tensor.shape)


def _view_func(self: Tensor, new_base: Tensor) -> Tensor:
    """This view made of another tensor with its base's dtype and layout.

    >>> x = torch.arange(4.)
    >>> x[1:]._view_func(x * 10)
    tensor([10., 20., 30.])
    """
    base = self._base
    if base is None:
        raise RuntimeError("_view_func: the tensor is no view")
    before, after = ((t.dtype, t.shape, t.stride()) for t in (base, new_base))
    if before != after:
        raise RuntimeError(f"_view_func: expected a tensor like the base, {before}, got {after}")
    here, there, whole = base.storage_offset(), new_base.storage_offset(), new_base
    if base.is_complex() and not self.is_complex():
        whole, here, there = torch.view_as_real(new_base), 2 * here, 2 * there
    elif self.is_complex() and not base.is_complex():
        whole, here, there = torch.view_as_complex(new_base), here // 2, there // 2
    view = whole.as_strided(self.shape, self.stride(), self.storage_offset() - here + there)
    return view.conj() if self.is_conj() != view.is_conj() else view


def reinforce(self: Tensor, reward: Any) -> Any:
    """RuntimeError: use torch.distributions."""
    raise RuntimeError(
        "reinforce() was removed.\nUse torch.distributions instead.\n"
        "See https://pytorch.org/docs/main/distributions.html: sample the action from "
        "torch.distributions.Categorical(probs), and minimize -log_prob(action) * reward."
    )


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What Module.load_state_dict() puts in the place of this parameter or buffer where
    ``torch.__future__.get_swap_module_params_on_conversion()``: a new tensor with the values of
    `other`."""
    return other.detach() if assign else self.copy_(other).detach()


def polygamma_(self: Tensor, n: int) -> Tensor:
    """torch.polygamma(n, self), in place."""
    result = torch.polygamma(n, self.clone())  # backward reads the copy
    if not torch.can_cast(result.dtype, self.dtype):
        raise RuntimeError(
            f"result type {result.dtype._class_name} can't be cast to the desired output type "
            f"{self.dtype._class_name}"
        )
    return self.copy_(result)


def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """torch.float_power(self, exponent), in place; the tensor must be of the result's dtype."""
    powers = torch.float_power(self.clone(), exponent)  # backward reads the copy
    if powers.dtype != self.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype._class_name} but the "
            f"operation's result requires dtype {powers.dtype._class_name}"
        )
    return self.copy_(powers)


def const_data_ptr(self: Tensor) -> int:
    """The address of the first element, for reading."""
    return self.data_ptr()


def _bools(self: Tensor) -> Tensor:
    if self.dtype != torch.bool:
        raise RuntimeError(f"expected a tensor of torch.bool, got {self.dtype}")
    return self


def _is_all_true(self: Tensor) -> Tensor:
    """Whether all elements of a boolean tensor are True, as a tensor."""
    return _bools(self).all()


def _is_any_true(self: Tensor) -> Tensor:
    """Whether an element of a boolean tensor is True, as a tensor."""
    return _bools(self).any()


def xpu(self: Tensor, device: Any = None, non_blocking: bool = False, **options: Any) -> Tensor:
    """The tensor on an Intel GPU."""
    return self.to("xpu" if device is None else device, non_blocking=non_blocking, **options)


def mtia(self: Tensor, device: Any = None, non_blocking: bool = False, **options: Any) -> Tensor:
    """The tensor on an MTIA device."""
    return self.to("mtia" if device is None else device, non_blocking=non_blocking, **options)
