"""Checkpoints that keep the results of some operators: policies for ``utils.checkpoint``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from enum import Enum
from typing import Any

import taeda
from taeda._ops import OpOverload, OpOverloadPacket
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils._pytree import tree_map

__all__ = [
    "CheckpointPolicy",
    "GraphExecGroup",
    "SAC_IGNORED_OPS",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointPolicy(Enum):
    """What becomes of an operator's result: kept, or computed again. Without a compiler MUST and
    PREFER are the same, and what is to be kept on the CPU is kept where it is."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_RECOMPUTED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)
SAC_IGNORED_OPS = {taeda.ops.aten.detach.default}


class SelectiveCheckpointContext:
    """What a policy is told: whether it is asked in the recomputation, and the result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class GraphExecGroup:
    """A block whose backwards recompute once; without graphs, any block does."""

    def __enter__(self) -> GraphExecGroup:
        return self

    def __exit__(self, *exc_info: Any) -> None: ...


class _Kept:
    """A tensor, and its version when it was kept."""

    def __init__(self, value: Any) -> None:
        self.value = value.detach() if isinstance(value, taeda.Tensor) else value
        self.version = value._version if isinstance(value, taeda.Tensor) else None

    def get(self, may_change: bool) -> Any:
        if self.version is not None and not may_change and self.value._version != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return self.value


_RECOMPUTE, _CONSUMED = object(), object()
_WHY = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend "
    "on global state that changed between forward and backward."
)


class _CachingTorchDispatchMode(TorchDispatchMode):
    """Around the forward call: keeps the results that the policy picks."""

    def __init__(self, policy_fn: Callable, storage: dict) -> None:
        super().__init__()
        self.policy_fn, self.storage = policy_fn, storage
        self.func_counter: dict[Any, int] = defaultdict(int)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        policy = self.policy_fn(context, func, *args, **kwargs)
        keep = policy if isinstance(policy, bool) else policy not in _RECOMPUTED
        kept = tree_map(_Kept, result) if keep else _RECOMPUTE
        self.storage[func][self.func_counter[func]] = kept
        self.func_counter[func] += 1
        return result


class _CachedTorchDispatchMode(TorchDispatchMode):
    """Around the recomputation: gives the kept results in place of computing them."""

    def __init__(
        self, policy_fn: Any, storage: dict, allow_cache_entry_mutation: bool = False
    ) -> None:
        super().__init__()
        self.storage = storage
        self.allow_cache_entry_mutation = allow_cache_entry_mutation
        self.func_counter: dict[Any, int] = defaultdict(int)

    def __enter__(self) -> Any:
        self.func_counter.clear()
        return super().__enter__()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func in SAC_IGNORED_OPS:
            return func(*args, **(kwargs or {}))
        index = self.func_counter[func]
        self.func_counter[func] += 1
        if func not in self.storage:
            raise RuntimeError(
                f"{func} encountered during backward but not found in storage. {_WHY}"
            )
        entry = self.storage[func].get(index)
        if entry is None:
            raise RuntimeError(
                f"{func} invocation index {index} encountered during backward but not found in "
                f"storage. {_WHY}"
            )
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        if entry is _RECOMPUTE:
            return func(*args, **(kwargs or {}))
        self.storage[func][index] = _CONSUMED
        return tree_map(lambda kept: kept.get(self.allow_cache_entry_mutation), entry)


def _policy_of(operators: list) -> Callable:
    for op in operators:
        if not isinstance(op, OpOverload):
            more = (
                "Please update the OpOverloadPacket to a specific OpOverload."
                "For example, if you have `torch.ops.aten.mm`, change it to "
                "`torch.ops.aten.mm.default`."
            )
            raise ValueError(
                f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                f"{more if isinstance(op, OpOverloadPacket) else ''}"
            )
    return lambda context, op, *args, **kwargs: op in operators


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple:
    """Two contexts for ``checkpoint(context_fn=...)``, that keep some operators' results.

    Args:
        policy_fn_or_list: the operators to keep (``torch.ops.aten.mm.default``, ...), or a
            function (context, operator, *args, **kwargs) that gives a CheckpointPolicy, or True
            to keep.
        allow_cache_entry_mutation: no error where a kept tensor was changed meanwhile.

    >>> import functools
    >>> from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = [torch.ops.aten.exp.default]
    >>> x = torch.ones(2, requires_grad=True)
    >>> y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False,
    ...     context_fn=functools.partial(create_selective_checkpoint_contexts, keep))
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.2534, 1.2534])
    """
    if isinstance(policy_fn_or_list, list):
        policy = _policy_of(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict[Any, dict[int, Any]] = defaultdict(dict)
    cached = _CachedTorchDispatchMode(None, storage, allow_cache_entry_mutation)
    return _CachingTorchDispatchMode(policy, storage), cached
