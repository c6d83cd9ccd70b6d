"""How functions that PyTorch writes in Python hand their calls to __torch_function__."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

# Operators that PyTorch binds as they are: these hand on what they were given.
BUILT_IN = frozenset(
    "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot "
    "scaled_dot_product_attention softplus softshrink".split()
)
# Parameters of operators that nn.functional's functions lack.
_HIDDEN = ("cudnn_enable", "cudnn_enabled")


def _gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> None:
    """The parameters that all overloads share."""


@functools.cache
def _signature(function: Callable) -> inspect.Signature | None:
    """Of a function of nn.functional; None for operators bound as they are."""
    if function.__name__ in BUILT_IN:
        return None
    if function.__name__ == "gaussian_nll_loss":
        return inspect.signature(_gaussian_nll_loss)
    try:
        return inspect.signature(function)
    except ValueError:  # an operator with several overloads
        return None


def arranged(function: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Required arguments by position, those with a default by name and filled in.

    >>> arranged(torch.nn.functional.dropout, (x,), {})
    ((x,), {'p': 0.5, 'training': True, 'inplace': False})
    """
    signature = _signature(function)
    if signature is None:
        return args, kwargs
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:  # the function itself says what is wrong
        return args, kwargs
    bound.apply_defaults()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if name in _HIDDEN and name not in kwargs:
            continue
        _place(signature.parameters[name], value, positional, named)
    return tuple(positional), named


def _place(parameter: Parameter, value: Any, positional: list, named: dict) -> None:
    if parameter.kind is Parameter.VAR_POSITIONAL:
        positional.extend(value)
    elif parameter.kind is Parameter.VAR_KEYWORD:
        named.update(value)
    elif parameter.kind is Parameter.KEYWORD_ONLY or parameter.default is not Parameter.empty:
        named[parameter.name] = value
    else:
        positional.append(value)
