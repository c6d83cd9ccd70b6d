"""A model's state by names that do not depend on how it is wrapped, in one process.

>>> from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
>>> model = torch.nn.Linear(2, 1)
>>> set_model_state_dict(model, get_model_state_dict(model))
<All keys matched successfully>
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from taeda import Tensor, _missing, distributed, nn
from taeda.nn.modules.module import _IncompatibleKeys


@dataclass
class StateDictOptions:
    """What is read or written.

    Args:
        full_state_dict: whole tensors; reading returns a plain dict, and writing keeps the model's
            own values where the state has none.
        cpu_offload: results lie on the CPU.
        ignore_frozen_params: leaves out parameters without requires_grad.
        keep_submodule_prefixes: names of submodules' values begin with the submodule's name.
        strict: writing needs exactly the model's names.
        broadcast_from_rank0: needs a process group, which taeda has not.
        flatten_optimizer_state_dict, dsd_fqn_modifiers: for optimizers' state and for modules with
            names of their own; unused here.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _plain(name: str) -> str:
    """A name without what torch.compile puts into it."""
    return name.replace("_orig_mod.", "")


def _of_submodules(
    state: dict[str, Any], model: nn.Module, submodules: set[nn.Module], keep: bool
) -> dict[str, Any]:
    prefixes = [f"{_plain(n)}." for n, m in model.named_modules() if n and m in submodules]
    return {
        name if keep else name.removeprefix(prefix): value
        for prefix in prefixes
        for name, value in state.items()
        if name.startswith(prefix)
    }


def get_model_state_dict(
    model: nn.Module,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The model's parameters and buffers, detached; `submodules` (deprecated) leaves out others."""
    options = _checked(options)
    state = model.state_dict()
    if options.ignore_frozen_params:
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                state.pop(name, None)
    for name in [name for name in state if name != _plain(name)]:
        state[_plain(name)] = state.pop(name)
    if options.cpu_offload:
        state = {n: v.cpu() if isinstance(v, Tensor) else v for n, v in state.items()}
    if submodules:
        warnings.warn(
            "Getting submodules only model/optim state_dict is deprecated: filter the names",
            FutureWarning,
            stacklevel=2,
        )
        return _of_submodules(state, model, submodules, options.keep_submodule_prefixes)
    return dict(state) if options.full_state_dict else state


def _fill(state: dict[str, Any], own: dict[str, Any]) -> bool:
    """Brings the state to the model's device and adds the model's values that it lacks; whether
    the model has meta tensors, which the state's replace."""
    devices = {v.device for v in own.values() if isinstance(v, Tensor) and v.dim() > 0}
    real = {device for device in devices if device.type != "meta"}
    if not real:
        distributed.get_rank()  # a group would know the device
    if len(real) > 1:
        raise ValueError(f"Multiple devices found: {sorted(map(str, real))}")
    for name, value in state.items():
        if isinstance(value, Tensor) and value.dim() > 0:
            state[name] = value.detach().to(next(iter(real))) if real else value.detach()
    state.update({name: value for name, value in own.items() if name not in state})
    return len(devices) > len(real)


def set_model_state_dict(
    model: nn.Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads a state as `get_model_state_dict` returns it.

    Returns:
        The names that are missing and those that are unexpected.
    Raises:
        RuntimeError: if names (with `strict`) or sizes differ.
        ValueError: for what needs a process group, an empty state among it.
    """
    options = _checked(options)
    if options.broadcast_from_rank0 or (options.strict and not model_state_dict):
        distributed.get_rank()
    if not model_state_dict:
        return _IncompatibleKeys([], [])
    own = model.state_dict()
    assign = options.full_state_dict and _fill(
        model_state_dict, {_plain(name): value for name, value in own.items()}
    )
    wrapped = {_plain(name): name for name in own}
    state = {wrapped.get(name, name): value for name, value in model_state_dict.items()}
    return model.load_state_dict(state, strict=options.strict, assign=assign)


__getattr__, __dir__ = _missing.attributes(__name__)
