"""The recorded graph: its nodes, edges, and hooks on what it saves."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import taeda
from taeda import _C, _missing
from taeda._C import Tensor
from taeda._C import _Node as Node

__all__ = [
    "Node",
    "GradientEdge",
    "get_gradient_edge",
    "saved_tensors_hooks",
    "save_on_cpu",
    "disable_saved_tensors_hooks",
    "register_multi_grad_hook",
    "increment_version",
    "allow_mutation_on_saved_tensors",
]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes; stands for the tensor in ``grad`` and ``backward``."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor that requires grad."""
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Marks tensors as changed, for code that writes their memory without an operator."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if t.is_inference() and not _C.is_inference_mode_enabled():
            raise RuntimeError(
                "increment_version: Inplace update to inference tensor outside InferenceMode is "
                "not allowed"
            )
        _C._increment_version(t)


class saved_tensors_hooks:
    """Inside, ``pack_hook(tensor)`` chooses what is kept of each tensor saved for backward.

    ``unpack_hook(packed)`` must give back a tensor with the same values.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc_info: Any) -> None:
        _C._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors in main memory until backward wants them on their device again."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple:
            copy = taeda.empty(tensor.size(), dtype=tensor.dtype, device="cpu")
            copy.copy_(tensor)
            return tensor.device, copy

        def unpack(packed: tuple) -> Tensor:
            device, copy = packed
            return copy.to(device)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, entering ``saved_tensors_hooks`` raises RuntimeError with this message."""
    before = _C._saved_tensors_hooks_disabled_message()
    _C._saved_tensors_hooks_disable(error_message)
    try:
        yield
    finally:
        if before is None:
            _C._saved_tensors_hooks_enable()
        else:
            _C._saved_tensors_hooks_disable(before)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """Inside, tensors that backward needs may be changed in place: it sees the values of before.

    What is saved is copied at once, whether it will be changed or not: that costs the memory and
    the time of the copies. The graph may be walked inside or outside of the block.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y ** 2).sum()
    ...     _ = y.zero_()
    >>> z.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    with saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda copy: copy):
        yield


class _MultiHandle:
    """Removes several hooks."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all"
) -> _MultiHandle:
    """Calls ``fn`` when the gradients of several tensors have been computed.

    ``mode="all"``: once all of those that take part in the running backward are there, with a
    list of them (None for the others). ``mode="any"``: with the first one.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    state: dict[int, dict] = {}
    count = len(tensors)

    def finish(key: int) -> None:
        with lock:
            entry = state.pop(key, None)
        if entry is not None and mode == "all" and not entry["called"]:
            fn([entry["grads"].get(i) for i in range(count)])

    def hook_of(index: int) -> Callable:
        def hook(grad: Tensor) -> None:
            key = threading.get_ident()
            with lock:
                entry = state.get(key)
                first = entry is None
                if entry is None:
                    entry = state[key] = {"grads": {}, "called": False}
                entry["grads"][index] = grad
                complete = len(entry["grads"]) == count
                call = not entry["called"] and (mode == "any" or complete)
                entry["called"] = entry["called"] or call
            if first:
                _C._queue_callback(lambda: finish(key))
            if call:
                fn(grad if mode == "any" else [entry["grads"][i] for i in range(count)])

        return hook

    return _MultiHandle([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


__getattr__, __dir__ = _missing.attributes(__name__)
