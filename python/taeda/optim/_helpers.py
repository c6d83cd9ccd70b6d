"""What optimizers of other packages take from ``torch.optim.optimizer`` beside `Optimizer`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
)

__all__: list[str] = []

_foreach_supported_types = [Tensor, taeda.nn.Parameter]


def _use_grad_for_differentiable(step: Callable) -> Callable:
    """A ``step`` that records gradients where the optimizer is ``differentiable``, else none."""

    @functools.wraps(step)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with taeda.set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **kwargs)

    return wrapped


def _get_value(x: Any) -> Any:
    """The number in a tensor of one element; other values as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without its dimensions; other values as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    """The list as it is: nothing is compiled."""
    return x


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Callable | None = None,
) -> Callable[[Callable], Callable]:
    """A decorator that leaves functions as they are: nothing is compiled."""
    return lambda function: function


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(fused, foreach): which of both all the parameters allow, foreach where both do and
    `use_fused` is not set."""
    if differentiable:
        return False, False

    def all_on(devices: list[str], only_floats: bool) -> bool:
        return all(
            p is None
            or (
                type(p) in _foreach_supported_types
                and p.device.type in devices
                and (p.is_floating_point() or not only_floats)
            )
            for p in params
        )

    fused = use_fused and all_on(_get_fused_kernels_supported_devices(), True)
    return fused, not fused and all_on(_get_foreach_kernels_supported_devices(), False)


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """RuntimeError where a fused step does not take the parameter."""
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if p.device.type not in devices or not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of "
            f"supported devices: {devices} but {p.dtype} and {p.device.type}"
        )


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Puts views as pairs of real numbers into the lists where a parameter is complex."""
    for i, p in enumerate(params):
        if p.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = taeda.view_as_real(tensors[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> taeda.dtype:
    """What step counters are: float32, or float64 where that is the default."""
    is_double = taeda.get_default_dtype() == taeda.float64 and not is_fused
    return taeda.float64 if is_double else taeda.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Where PyTorch's ``capturable=True`` is allowed."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]
