"""Modules under transforms: many as one, and batch norms that keep no statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn.modules.batchnorm import _BatchNorm
from taeda.nn.modules.module import Module
from taeda.nn.utils.stateless import _functional_call

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls ``module`` with the given tensors in the place of its own, by dotted name.

    In-place changes that the call makes to buffers go to the given tensors. With ``tie_weights``
    a value for one name of a shared tensor is used for its other names.

    >>> import taeda as torch
    >>> model = torch.nn.Linear(2, 1)
    >>> params = {"weight": torch.tensor([[1., 2.]]), "bias": torch.zeros(1)}
    >>> torch.func.functional_call(model, params, (torch.ones(2),))
    tensor([3.])
    """
    return _functional_call(
        module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Parameters and buffers of equal models, each stacked along a new first dimension.

    >>> import taeda as torch
    >>> models = [torch.nn.Linear(3, 2) for _ in range(4)]
    >>> params, buffers = torch.func.stack_module_state(models)
    >>> params["weight"].shape
    torch.Size([4, 2, 3])
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = {}
    for name, first in models[0].named_parameters():
        stacked = taeda.stack([m.get_parameter(name).detach() for m in models])
        params[name] = stacked.requires_grad_(first.requires_grad)
    buffers = {
        name: taeda.stack([m.get_buffer(name) for m in models])
        for name, _ in models[0].named_buffers()
    }
    return params, buffers


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Makes all batch norms in ``root`` use each batch's own statistics, and keep none.

    Running statistics are written in place, which vmap cannot do: all samples would share them.
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
