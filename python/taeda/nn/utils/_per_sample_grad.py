"""Gradients of each sample of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import taeda
from taeda.func import functional_call, vmap
from taeda.utils._pytree import arg_tree_leaves, tree_map

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(
    module: Any,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable:
    """The module's forward call, whose backward leaves in each parameter's ``grad_sample`` the
    gradient of each sample, [batch, *parameter's shape], and no ``grad``.

    Args:
        loss_reduction: how the loss adds samples up: "sum" or "mean".
        batch_first: whether the batch is the first dimension of arguments and results, or the
            second.

    >>> from torch.nn.utils._per_sample_grad import call_for_per_sample_grads
    >>> layer = torch.nn.Linear(2, 1)
    >>> call_for_per_sample_grads(layer)(torch.tensor([[1., 2.], [3., 4.]])).sum().backward()
    >>> layer.weight.grad_sample
    tensor([[[1., 2.]],
    <BLANKLINE>
            [[3., 4.]]])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, taeda.nn.Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(
            f"Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    if any(getattr(p, "grad_sample", None) is not None for p in module.parameters()):
        raise RuntimeError(
            "a parameter has a grad_sample already: set it to None before another call"
        )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        n = batch_size if batch_size is not None else _batch_size(args, kwargs, dim)
        scale = n if loss_reduction == "mean" else 1
        parameters = {k: _expanded(p, n, scale) for k, p in module.named_parameters()}

        def one(parameters: dict, args: tuple, kwargs: dict) -> Any:
            args, kwargs = tree_map(lambda t: _with_batch(t, dim), (args, kwargs))
            result = functional_call(module, parameters, args, kwargs)
            return tree_map(lambda t: t.squeeze(dim), result)

        in_dims = tree_map(lambda t: dim if isinstance(t, taeda.Tensor) else None, (args, kwargs))
        return vmap(one, in_dims=(0, *in_dims), out_dims=dim, randomness="different")(
            parameters, args, kwargs
        )

    return wrapper


def _with_batch(x: Any, dim: int) -> Any:
    return x.unsqueeze(dim) if isinstance(x, taeda.Tensor) else x


def _batch_size(args: tuple, kwargs: dict, dim: int) -> int:
    tensors = [t for t in arg_tree_leaves(*args, **kwargs) if isinstance(t, taeda.Tensor)]
    sizes = {t.shape[dim] for t in tensors}
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs, of which the batch size could "
            "be computed. Please specify it explicitly"
        )
    if len(sizes) > 1:
        raise RuntimeError(
            "When computing batch size, found at least one input with batch size "
            f"{max(sizes)} and one with batch size {min(sizes)}. Please specify it explicitly "
            "using the batch size kwarg in call_for_per_sample_grads"
        )
    return sizes.pop()


def _expanded(parameter: Any, n: int, scale: int) -> Any:
    """The parameter for each sample, whose gradient goes to ``grad_sample``."""
    if not parameter.requires_grad:
        return parameter.expand(n, *parameter.shape)
    own = parameter.detach().expand(n, *parameter.shape).requires_grad_()

    def keep(gradient: Any) -> None:
        if gradient is None:
            return
        before = getattr(parameter, "grad_sample", None)
        found = gradient.detach() * scale
        parameter.grad_sample = found if before is None else before + found

    own.register_hook(keep)
    return own
