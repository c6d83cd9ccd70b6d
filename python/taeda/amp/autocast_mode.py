"""autocast: operators convert their arguments to the precision that suits them.

Which operators do so stands in the table (``autocast:`` in ops/*.yaml); this module switches the
calling thread's state. The state of a type of device that is absent is kept and changes nothing.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C

__all__ = [
    "autocast",
    "autocast_decorator",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
]

_DTYPES = (taeda.bfloat16, taeda.float16)
_DEVICES = ("cpu", "cuda")  # those that there are
_ABSENT = {  # with the dtype that autocast uses there unless told otherwise
    "mps": taeda.float16,
    "xpu": taeda.float16,
    "mtia": taeda.float16,
    "ipu": taeda.float16,
    "hpu": taeda.bfloat16,
    "maia": taeda.bfloat16,
    "xla": taeda.bfloat16,
}


class _ThreadState(threading.local):
    def __init__(self) -> None:
        self.nesting = 0
        self.enabled = dict.fromkeys(_ABSENT, False)
        self.dtype = dict(_ABSENT)


_state = _C._carry_thread_local(_ThreadState())


def _known(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    kind = device_type.partition(":")[0]
    if kind not in _DEVICES and kind not in _ABSENT:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return kind


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows this type of device.

    >>> import taeda as torch
    >>> torch.amp.is_autocast_available("cpu")
    True
    """
    kind = device_type.partition(":")[0]
    return kind in _DEVICES or kind in _ABSENT


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on this type of device choose their precision.

    >>> import taeda as torch
    >>> with torch.autocast("cpu"):
    ...     print(torch.is_autocast_enabled("cpu"))
    True
    """
    kind = _known(device_type)
    return _C._autocast_state(kind)[0] if kind in _DEVICES else _state.enabled[kind]


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switches autocast on or off for a type of device; ``set_autocast_enabled(x)`` means 'cuda'.

    >>> import taeda as torch
    >>> torch.set_autocast_enabled("cpu", True)
    >>> torch.is_autocast_enabled("cpu")
    True
    >>> torch.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    kind = _known(device_type)
    if kind in _DEVICES:
        _C._set_autocast_state(kind, bool(enabled), *_C._autocast_state(kind)[1:])
    else:
        _state.enabled[kind] = bool(enabled)


def get_autocast_dtype(device_type: str) -> Any:
    """The lower precision that autocast uses.

    >>> import taeda as torch
    >>> torch.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    kind = _known(device_type)
    return _C._autocast_state(kind)[1] if kind in _DEVICES else _state.dtype[kind]


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Changes the lower precision that autocast uses.

    >>> import taeda as torch
    >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    kind = _known(device_type)
    if kind in _DEVICES:
        enabled, _, cache = _C._autocast_state(kind)
        _C._set_autocast_state(kind, enabled, dtype, cache)
    else:
        _state.dtype[kind] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether parameters are converted once in a block and kept.

    >>> import taeda as torch
    >>> torch.is_autocast_cache_enabled()
    True
    """
    return _C._autocast_state("cpu")[2]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Switches the cache of converted parameters on or off.

    >>> import taeda as torch
    >>> torch.set_autocast_cache_enabled(True)
    """
    _C._set_autocast_state("cpu", *_C._autocast_state("cpu")[:2], bool(enabled))


def autocast_increment_nesting() -> int:
    """Counts one more autocast block on this thread."""
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Counts one autocast block less on this thread."""
    _state.nesting -= 1
    return _state.nesting


def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu")."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """set_autocast_enabled("cpu", enabled)."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> Any:
    """get_autocast_dtype("cpu")."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """set_autocast_dtype("cpu", dtype)."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Any:
    """get_autocast_dtype("cuda")."""
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """set_autocast_dtype("cuda", dtype)."""
    set_autocast_dtype("cuda", dtype)


def autocast_decorator(autocast_instance: autocast, func: Callable) -> Callable:
    """`func`, run inside of the block that `autocast_instance` opens."""

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return inside


class autocast:
    """Context manager and decorator: operators in the block choose their precision.

    Matrix products, convolutions and attention run in ``dtype``, losses and operators that need the
    range in float32, ``cat`` and ``stack`` in the widest type they are given; everything else in
    the types of its arguments. float64 stays. Only the forward pass and the loss belong in the
    block; backward runs in the precision that forward used.

    Args:
        device_type: 'cpu' or 'cuda': tensors on other devices stay as they are. Without a device
            'cuda' warns and does nothing, and other accelerators ('mps', 'xpu', ...) do nothing.
        dtype: bfloat16 (the default on the CPU) or float16 (that on CUDA devices).
        enabled: False makes the block run without autocast, also inside another.
        cache_enabled: whether parameters are converted once in the outermost block.

    >>> import taeda as torch
    >>> layer = torch.nn.Linear(2, 2)
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     y = layer(torch.ones(1, 2))
    >>> y.dtype, layer.weight.dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = _known(device_type)
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        )
        self._enabled = bool(enabled)
        self._before: list[tuple] = []  # the states to return to; blocks may nest
        if not self._enabled:
            return
        if self.device == "cuda" and not taeda.cuda.is_available():
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling",
                stacklevel=2,
            )
            self._enabled = False
        elif self.fast_dtype not in _DTYPES:
            kind = self.device.upper()
            warnings.warn(
                f"In {kind} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{kind} Autocast only supports dtype of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            self._enabled = False

    def __enter__(self) -> autocast:
        self._before.append(
            (
                is_autocast_enabled(self.device),
                get_autocast_dtype(self.device),
                is_autocast_cache_enabled(),
            )
        )
        self._set(self._enabled, self.fast_dtype, self._cache_enabled)
        autocast_increment_nesting()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        self._set(*self._before.pop())

    def _set(self, enabled: bool, dtype: Any, cache_enabled: bool) -> None:
        set_autocast_enabled(self.device, enabled)
        set_autocast_dtype(self.device, dtype)
        set_autocast_cache_enabled(cache_enabled)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapped


class current_autocast:
    """A block with this thread's settings, for running something again as it ran now."""

    def __init__(self) -> None:
        cached = is_autocast_cache_enabled()
        self._blocks = [
            autocast(device, get_autocast_dtype(device), is_autocast_enabled(device), cached)
            for device in _DEVICES
        ]

    def __enter__(self) -> None:
        for block in self._blocks:
            block.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        for block in reversed(self._blocks):
            block.__exit__(*exc_info)


def _converted(value: Any, device_type: str, dtype: Any) -> Any:
    """Floating tensors of the device, also inside lists and dicts, in another dtype."""
    if isinstance(value, taeda.Tensor):
        concerned = value.is_floating_point() and value.device.type == device_type
        return value.to(dtype) if concerned and value.dtype != taeda.float64 else value
    if isinstance(value, dict):
        return {
            _converted(k, device_type, dtype): _converted(v, device_type, dtype)
            for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        items = [_converted(item, device_type, dtype) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


_cast = _converted  # as libraries import it


def custom_fwd(
    fwd: Callable | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable:
    """Decorator for ``forward`` of an autograd.Function that is called under autocast.

    Args:
        cast_inputs: under autocast, convert floating arguments to this dtype and run the body
            without autocast; None runs it with the block's settings.
    """
    _known(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if not enabled or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                *_converted(args, device_type, cast_inputs),
                **_converted(kwargs, device_type, cast_inputs),
            )

    return decorated


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorator for ``backward`` beside ``custom_fwd``: runs it with forward's settings."""
    _known(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return decorated
