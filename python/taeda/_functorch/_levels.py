"""What ``torch._C._functorch`` has: the levels of vmap, one by one.

Levels count from 1, the outermost. A tensor of a level is batched there; what it stands for, the
tensor of all samples, is found with `get_unwrapped`. The transforms that differentiate keep no
tensors of their own: inside of them a tensor is one that requires gradients.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from taeda import _C, Tensor, _missing

_GRADIENTS = "taeda's transforms that differentiate wrap no tensors; use torch.func.grad or vjp"
_FUNCTIONAL = "taeda has no functional tensors of this kind; use torch.func.functionalize"
_STACK = "taeda shows no stack of transforms; use torch.func"


class TransformType(Enum):
    """The kinds of transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


class RandomnessType(Enum):
    """What random operators do under vmap."""

    Error = 0
    Same = 1
    Different = 2


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Opens a level of vmap and gives its depth."""
    return _C._vmap_enter(batch_size, randomness)


def _vmap_decrement_nesting() -> int:
    """Closes the innermost level and gives the depth it had."""
    depth = _C._vmap_level()
    if not depth:
        raise RuntimeError("_vmap_decrement_nesting: there is no level of vmap to close")
    _C._vmap_exit()
    return depth


def _add_batch_dim(tensor: Tensor, in_dim: int, level: int) -> Tensor:
    """The tensor of one sample, for a tensor with all of them along `in_dim`."""
    return _C._add_batch_dim(tensor, in_dim, level)


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """The tensor of all samples along `out_dim`; one not of this level is repeated."""
    return _C._remove_batch_dim(tensor, level, out_dim)


def _unwrap_batched(tensor: Tensor, level: int) -> tuple[Tensor, int | None]:
    """What a tensor stands for outside of a level, and where the batch lies; None if in none."""
    return _C._batch_value(tensor, level)


def current_level() -> int:
    """The depth of the innermost level; RuntimeError outside of all."""
    depth = _C._vmap_level()
    if not depth:
        raise RuntimeError("current_level: no transform is running")
    return depth


def maybe_current_level() -> int | None:
    """The depth of the innermost level; None outside of all."""
    return _C._vmap_level() or None


def get_dynamic_layer_stack_depth() -> int:
    """How many levels of vmap there are."""
    return _C._vmap_level()


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor is of a level of vmap."""
    return isinstance(tensor, Tensor) and _C._batch_level(tensor) != 0


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """The same: only vmap wraps tensors."""
    return is_batchedtensor(tensor)


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """False: there is one kind of batched tensors."""
    return False


def is_gradtrackingtensor(tensor: Any) -> bool:
    """False: inside of grad and jvp a tensor is one that requires gradients, not a wrapper."""
    return False


def is_functionaltensor(tensor: Any) -> bool:
    """False: functionalize keeps its records beside the tensors."""
    return False


def is_dead_tensor_wrapper(tensor: Any) -> bool:
    """Whether a tensor is of a level that has ended."""
    return isinstance(tensor, Tensor) and _C._batch_level(tensor) < 0


def unwrap_if_dead(tensor: Tensor) -> Tensor:
    """The tensor as it is: those of a level that has ended say so when they are used."""
    return tensor


def maybe_get_level(tensor: Any) -> int:
    """The depth of the level a tensor is batched at, -2 where that has ended, -1 for others."""
    depth = _C._batch_level(tensor) if isinstance(tensor, Tensor) else 0
    return -2 if depth < 0 else depth or -1


def maybe_get_bdim(tensor: Any) -> int:
    """Where the batch lies in what a tensor stands for; -1 for others than batched ones."""
    depth = maybe_get_level(tensor)
    return _C._batch_value(tensor, depth)[1] if depth > 0 else -1


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor of all samples that a batched one stands for; RuntimeError for others."""
    depth = maybe_get_level(tensor)
    if depth <= 0:
        raise RuntimeError("get_unwrapped: expected a tensor of a level of vmap")
    return _C._batch_value(tensor, depth)[0]


_allowed = {"inplace_requires_grad": False, "single_level_autograd_function": False}


def get_inplace_requires_grad_allowed() -> bool:
    """What `set_inplace_requires_grad_allowed` has set."""
    return _allowed["inplace_requires_grad"]


def set_inplace_requires_grad_allowed(allowed: bool) -> None:
    """Keeps the setting; requires_grad_() works inside of transforms in any case."""
    _allowed["inplace_requires_grad"] = allowed


def get_single_level_autograd_function_allowed() -> bool:
    """What `set_single_level_autograd_function_allowed` has set."""
    return _allowed["single_level_autograd_function"]


def set_single_level_autograd_function_allowed(allowed: bool) -> None:
    """Keeps the setting; autograd functions work inside of transforms in any case."""
    _allowed["single_level_autograd_function"] = allowed


def _missing_names() -> dict[str, Any]:
    """What other transforms' levels have in PyTorch: each raises when called."""
    reasons = {
        _GRADIENTS: "_grad_increment_nesting _grad_decrement_nesting _jvp_increment_nesting "
        "_jvp_decrement_nesting _wrap_for_grad _unwrap_for_grad _unwrap_for_grad",
        _FUNCTIONAL: "_func_increment_nesting _func_decrement_nesting _wrap_functional_tensor "
        "_unwrap_functional_tensor _assert_wrapped_functional _propagate_functional_input_mutation "
        "_maybe_unsafe_set_level",
        _STACK: "peek_interpreter_stack pop_dynamic_layer_stack push_dynamic_layer_stack "
        "get_interpreter_stack",
    }
    found = {
        name: _missing.function(f"torch._C._functorch.{name}", why)
        for why, names in reasons.items()
        for name in names.split()
    }
    kinds = "CInterpreter CGradInterpreterPtr CJvpInterpreterPtr CVmapInterpreterPtr"
    return found | {
        name: _missing.class_(f"torch._C._functorch.{name}", _STACK) for name in kinds.split()
    }


globals().update(_missing_names())
