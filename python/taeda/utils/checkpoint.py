"""Activation checkpointing: recompute a region in backward instead of keeping what it saved.

Without ``use_reentrant`` (recommended), the region runs once with hooks that keep a number for each
saved tensor; the first that backward asks for runs the region again and fills all of them.
With it, the region runs unrecorded and backward runs it again as a graph of its own.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.amp.autocast_mode import current_autocast
from taeda.autograd.function import Function
from taeda.autograd.graph import saved_tensors_hooks
from taeda.utils._pytree import tree_map

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "CheckpointError",
    "CheckpointFunction",
    "DefaultDeviceType",
    "check_backward_validity",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class CheckpointError(RuntimeError):
    """The recomputation did not repeat the forward call."""


class DefaultDeviceType:
    """The device whose random state is kept when arguments do not tell."""

    _device = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._device = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._device


_early_stop = True
_debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether a recomputation ends once all it is needed for is there (default: it does)."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted for programs that use it; the messages always carry what is known."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


def noop_context_fn() -> tuple:
    """The default ``context_fn``: nothing around the forward call and the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple) -> tuple:
    """The arguments cut off the graph, requiring grad as they did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


def check_backward_validity(inputs: Any) -> None:
    """Warns when no argument requires grad: the region's gradients would be None."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


def get_device_states(*args: Any) -> tuple[list, list]:
    """Devices of the arguments and their random states; the CPU's is kept apart."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Puts the random states of devices back."""


@contextlib.contextmanager
def _rng_state(state: Tensor | None) -> Iterator[None]:
    """Inside, random numbers are drawn from `state` on; after it, as if nothing had been drawn."""
    if state is None:
        yield
        return
    before = taeda.get_rng_state()
    taeda.set_rng_state(state)
    try:
        yield
    finally:
        taeda.set_rng_state(before)


# --- reentrant ---


class CheckpointFunction(Function):
    """The region as one step of the graph, whose backward records and differentiates it."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = taeda.get_rng_state() if preserve_rng_state else None
        ctx.precision = current_autocast()
        ctx.inputs = [None if isinstance(x, Tensor) else x for x in args]
        ctx.tensor_indices = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_indices))
        with taeda.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not _C._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter "
                "to .backward(). To resolve this error, you can either set use_reentrant=False, "
                "or call .backward() without "
                "passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.tensor_indices, ctx.saved_tensors):
            inputs[i] = tensor
        detached = detach_variable(tuple(inputs))
        with _rng_state(ctx.rng_state), taeda.enable_grad(), ctx.precision:
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [
            (y, gy) for y, gy in zip(outputs, grads) if isinstance(y, Tensor) and y.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        taeda.autograd.backward([y for y, _ in pairs], [gy for _, gy in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached))


# --- non-reentrant ---


class _StopRecomputation(Exception):
    """All tensors are found; the rest of the region is not needed."""


class _KeepInputs(Function):
    """Saves a region's arguments as any operator would, so that an outer region's hooks see "
    "them."""

    @staticmethod
    def forward(ctx: Any, marker: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return marker.detach().clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("the marker of a checkpoint takes no part in the graph")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> None:
        return None


def _metadata(tensor: Tensor) -> tuple:
    return tuple(tensor.shape), tensor.dtype, tensor.device


class _Hooks(saved_tensors_hooks):
    """A checkpoint's; transforms of taeda.func inside of its region save without them."""


class _Frame:
    """One run of a region: the numbers of what it saved, and the way to run it again."""

    def __init__(
        self, run: Callable, args: tuple, early_stop: bool, check: Callable | None
    ) -> None:
        self.run = run
        self.early_stop = early_stop
        self.check = check
        self.saved: list[tuple] = []  # the metadata of each saved tensor
        self.found: dict[int, Tensor] = {}
        self.complete = False  # the forward call has ended
        self.plain = [None if isinstance(x, Tensor) else x for x in args]
        self.indices = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        tensors = [args[i] for i in self.indices]
        with taeda.enable_grad():
            self.marker = _KeepInputs.apply(taeda.zeros((), requires_grad=True), *tensors)

    def args(self) -> list:
        values = list(self.plain)
        for i, tensor in zip(self.indices, self.marker.grad_fn.saved_tensors):
            values[i] = tensor
        return values

    # hooks of the forward call

    def pack(self, tensor: Tensor) -> int:
        self.saved.append(_metadata(tensor))
        return len(self.saved) - 1

    def unpack(self, index: int) -> Tensor:
        if index not in self.found:
            self.recompute()
        if index not in self.found:
            raise self.number_differs()
        return self.found.pop(index)

    def number_differs(self) -> CheckpointError:
        return CheckpointError(
            "torch.utils.checkpoint: A different number of tensors was saved during the original "
            "forward and recomputation.\n"
            f"Number of tensors saved during forward: {len(self.saved)}\n"
            f"Number of tensors saved during recomputation: {self.count}"
        )

    # the second run

    def recompute(self) -> None:
        self.found.clear()
        self.count = 0

        def keep(tensor: Tensor) -> Tensor:
            index = self.count
            self.count += 1
            if index < len(self.saved):
                self.compare(index, tensor)
                self.found[index] = tensor.detach()
            if self.early_stop and self.complete and self.count == len(self.saved):
                raise _StopRecomputation
            return tensor.detach()

        with (
            contextlib.suppress(_StopRecomputation),
            _Hooks(keep, lambda t: t),
            taeda.enable_grad(),
        ):
            self.run(self.args())
        if self.complete and self.count != len(self.saved):
            raise self.number_differs()

    def compare(self, index: int, tensor: Tensor) -> None:
        if self.check is None or _metadata(tensor) == self.saved[index]:
            return
        raise CheckpointError(
            "torch.utils.checkpoint: Recomputed values for the following tensors have different "
            "metadata than during the "
            f"forward pass.\ntensor at position {index}:\nsaved metadata: "
            f"{self.saved[index]}\nrecomputed metadata: "
            f"{_metadata(tensor)}\n"
        )


def _default_check(metadata: Any) -> Any:
    return metadata


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, keeping only its arguments for backward.

    Args:
        use_reentrant: True for the older way; PyTorch's programs should say False.
        preserve_rng_state: draw the same random numbers in the recomputation (default: True).
        context_fn: two context managers, around the forward call and around the recomputation.
        determinism_check: "default" compares shapes, dtypes and devices of what is recomputed,
            "none" does not.
        early_stop: end the recomputation once all saved tensors are there.

    Inside of ``torch.vmap``, ``torch.func.functionalize`` and of forward mode the function runs as
    if called without a checkpoint, and its results are copies of what it has computed: they may be
    written in place, as those of a checkpoint.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling "
            "checkpoint without use_reentrant will raise an exception. use_reentrant=False is "
            "recommended, but if you need to "
            "preserve the current default behavior, you can pass use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f'determinism_check must be "default" or "none", got {determinism_check!r}'
        )
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)

    around_forward, around_recompute = context_fn()
    if not taeda.is_grad_enabled() or _C._level_is_active() or _C._dual_level():
        with around_forward:
            return _writable(lambda: function(*args, **kwargs))
    state = taeda.get_rng_state() if preserve else None
    precision = current_autocast()

    def run(values: list) -> None:
        with _rng_state(state), precision, around_recompute:
            function(*values, **kwargs)

    frame = _Frame(
        run,
        args,
        early_stop and _early_stop,
        _default_check if determinism_check == "default" else None,
    )
    with _Hooks(frame.pack, frame.unpack), around_forward:
        result = function(*args, **kwargs)
    frame.complete = True
    return result


def _writable(call: Callable) -> Any:
    """The results of a call, copied where a node that it made may have saved them."""
    first = _C._next_sequence_number()

    def owned(x: Any) -> Any:
        if not isinstance(x, Tensor) or x.grad_fn is None or x._version != 0 or x._is_view():
            return x
        return x.clone() if x.grad_fn._sequence_nr() >= first else x

    return tree_map(owned, call())


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs a sequence of modules in ``segments`` pieces, all but the last one checkpointed."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    modules = (
        list(functions.children())
        if isinstance(functions, taeda.nn.Sequential)
        else list(functions)
    )

    def run(first: int, last: int) -> Callable:
        def forward(x: Any) -> Any:
            for module in modules[first : last + 1]:
                x = module(x)
            return x

        return forward

    size = len(modules) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(
            run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return run(end + 1, len(modules) - 1)(input)


_SELECTIVE = (
    "CheckpointPolicy",
    "GraphExecGroup",
    "SAC_IGNORED_OPS",
    "SelectiveCheckpointContext",
    "_CachedTorchDispatchMode",
    "_CachingTorchDispatchMode",
    "create_selective_checkpoint_contexts",
)


if TYPE_CHECKING:
    from taeda.utils._selective_checkpoint import SAC_IGNORED_OPS as SAC_IGNORED_OPS
    from taeda.utils._selective_checkpoint import CheckpointPolicy as CheckpointPolicy
    from taeda.utils._selective_checkpoint import GraphExecGroup as GraphExecGroup
    from taeda.utils._selective_checkpoint import (
        SelectiveCheckpointContext as SelectiveCheckpointContext,
    )
    from taeda.utils._selective_checkpoint import (
        _CachedTorchDispatchMode as _CachedTorchDispatchMode,
    )
    from taeda.utils._selective_checkpoint import (
        _CachingTorchDispatchMode as _CachingTorchDispatchMode,
    )
    from taeda.utils._selective_checkpoint import (
        create_selective_checkpoint_contexts as create_selective_checkpoint_contexts,
    )
else:

    def __getattr__(name: str) -> Any:
        if name not in _SELECTIVE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from taeda.utils import _selective_checkpoint

        return getattr(_selective_checkpoint, name)
