"""The recorded graph: its nodes, edges, and hooks on what it saves."""

from __future__ import annotations

import abc
import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import taeda
from taeda import _C, _missing
from taeda._C import Tensor
from taeda.autograd.function import BackwardCFunction

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


class Node(abc.ABC):
    """A step of the backward pass, as ``tensor.grad_fn`` shows it; also a custom function's ctx.

    Each kind of step has a type of its own, which answers ``isinstance`` and ``issubclass`` without
    having this class among its bases.

    >>> y = torch.ones(2, requires_grad=True).exp()
    >>> isinstance(y.grad_fn, torch.autograd.graph.Node), y.grad_fn.name()
    (True, 'ExpBackward0')
    """

    @abc.abstractmethod
    def name(self) -> str:
        """The step's name, ``"MulBackward0"``."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The steps that receive this one's results, with the number of their input."""

    @abc.abstractmethod
    def metadata(self) -> dict:
        """A dictionary for anything that belongs to the step."""

    @abc.abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> Any:
        """Calls ``fn(grad_inputs, grad_outputs)`` after the step; a result replaces the first."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> Any:
        """Calls ``fn(grad_outputs)`` before the step; a result replaces them."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        from taeda.autograd import _nodes

        made = (_C._Node, BackwardCFunction, _nodes.DelayedError, _nodes.UndefinedGrad)
        return issubclass(other, made) or NotImplemented


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


class _Active(threading.local):
    hooks: tuple[saved_tensors_hooks, ...] = ()  # those that this thread is in


_active = _Active()


@contextlib.contextmanager
def without_hooks_of(kind: type) -> Iterator[None]:
    """Takes all hooks off while the block runs, if some are of this class."""
    hooks = _active.hooks
    if not any(isinstance(each, kind) for each in hooks):
        yield
        return
    for each in reversed(hooks):
        each.__exit__()
    try:
        yield
    finally:
        for each in hooks:
            each.__enter__()


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
        _active.hooks = (*_active.hooks, self)

    def __exit__(self, *exc_info: Any) -> None:
        _C._pop_saved_tensors_default_hooks()
        _active.hooks = _active.hooks[:-1]


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors in main memory until backward wants them on their device again."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple:
            if tensor._is_any_sparse():
                return tensor.device, tensor.detach().clone().to("cpu")
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


def allow_mutation_on_saved_tensors() -> contextlib.AbstractContextManager:
    """Inside, tensors that backward needs may be changed in place: it sees the values of before.

    A saved tensor is copied when an operator is about to write its memory, once however often it
    was saved. The graph must be walked inside of the block too, which cannot be nested.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y ** 2).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    from taeda.autograd._mutation import allow_mutation

    return allow_mutation()


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


class _Arrived:
    """The gradients that a backward pass has brought so far."""

    def __init__(self, expected: int, tensors: int) -> None:
        self.thread = threading.get_ident()
        self.expected = expected
        self.count = 0
        self.grads: list[Tensor | None] = [None] * tensors


def _forget_failed(state: dict[int, _Arrived]) -> None:
    """Drops what passes of this thread left that an error ended."""
    running = _C._graph_task_ids()
    for task, arrived in list(state.items()):
        if arrived.thread == threading.get_ident() and task not in running:
            del state[task]


def _step_of(tensor: Tensor) -> Any:
    """Where a tensor's gradient goes, without keeping it: the hook would keep itself alive."""
    node = get_gradient_edge(tensor).node
    return weakref.ref(tensor) if tensor.grad_fn is None else _C._node_identity(node)


def _is_reached(step: Any) -> bool:
    """Whether the running backward goes there."""
    if not isinstance(step, weakref.ref):
        return _C._task_reaches(step)
    leaf = step()
    return leaf is not None and _C._task_reaches(get_gradient_edge(leaf).node)


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
    steps = [_step_of(t) for t in tensors]
    state: dict[int, _Arrived] = {}  # by the number of the backward pass

    def hook_of(index: int) -> Callable:
        def hook(grad: Tensor | None) -> None:
            task = _C._current_graph_task_id()
            with lock:
                if task not in state:
                    _forget_failed(state)
                    expected = sum(map(_is_reached, steps)) if mode == "all" else 1
                    state[task] = _Arrived(expected, len(steps))
                    _C._queue_callback(lambda: state.pop(task, None))
                arrived = state[task]
                arrived.grads[index] = grad
                arrived.count += 1
                call = arrived.count == arrived.expected
            if call:
                fn(grad if mode == "any" else arrived.grads)

        return hook

    return _MultiHandle([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


__getattr__, __dir__ = _missing.attributes(__name__)
