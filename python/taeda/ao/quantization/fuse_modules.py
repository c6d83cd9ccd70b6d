"""Fusing layers of a model that follow each other, before it is prepared for quantization."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from taeda import _missing, nn
from taeda.ao.nn import intrinsic
from taeda.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval


def _numbered(n: int) -> dict[tuple[Any, ...], tuple[Any, Any]]:
    """Of layers: what they become in training, and in evaluation without their norm."""
    conv, bn = getattr(nn, f"Conv{n}d"), getattr(nn, f"BatchNorm{n}d")
    pair, triple = getattr(intrinsic, f"ConvBn{n}d"), getattr(intrinsic, f"ConvBnReLU{n}d")
    relu = getattr(intrinsic, f"ConvReLU{n}d")
    return {
        (conv, bn): (pair, None),
        (conv, bn, nn.ReLU): (triple, relu),
        (conv, nn.ReLU): (relu, relu),
    }


_KNOWN: dict[tuple[Any, ...], tuple[Any, Any]] = {
    **_numbered(1),
    **_numbered(2),
    **_numbered(3),
    (nn.Linear, nn.ReLU): (intrinsic.LinearReLU, intrinsic.LinearReLU),
    (nn.Linear, nn.BatchNorm1d): (intrinsic.LinearBn1d, None),
    (nn.BatchNorm2d, nn.ReLU): (intrinsic.BNReLU2d, intrinsic.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): (intrinsic.BNReLU3d, intrinsic.BNReLU3d),
}
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def _fused(layers: Sequence[Any], is_qat: bool) -> Any:
    """One layer for several."""
    kinds = tuple(type(layer) for layer in layers)
    if kinds not in _KNOWN:
        raise NotImplementedError(f"Cannot fuse modules: {kinds}")
    if len({layer.training for layer in layers}) > 1:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")
    in_training, in_evaluation = _KNOWN[kinds]
    has_norm = len(kinds) > 1 and kinds[1] in _NORMS
    if is_qat or not has_norm:
        return in_training(*layers)
    if layers[0].training:
        raise NotImplementedError(f"Cannot fuse train modules: {kinds}; use fuse_modules_qat")
    fuse = fuse_linear_bn_eval if kinds[0] is nn.Linear else fuse_conv_bn_eval
    layer = fuse(layers[0], layers[1])
    return layer if in_evaluation is None else in_evaluation(layer, *layers[2:])


def _fuse_list(model: Any, names: Sequence[str], is_qat: bool) -> None:
    layers = [model.get_submodule(name) for name in names]
    made = _fused(layers, is_qat)
    first, last = layers[0], layers[-1]
    for key, hook in list(first._forward_pre_hooks.items()):
        made.register_forward_pre_hook(hook)
        del first._forward_pre_hooks[key]
    for key, hook in list(last._forward_hooks.items()):
        made.register_forward_hook(hook)
        del last._forward_hooks[key]
    if hasattr(first, "qconfig"):
        made.qconfig = first.qconfig
    for name, layer in zip(names, [made, *(nn.Identity() for _ in names[1:])]):
        parent, _, own = name.rpartition(".")
        layer.training = first.training
        setattr(model.get_submodule(parent), own, layer)


def fuse_modules(
    model: Any,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Any = None,
    fuse_custom_config_dict: Any = None,
    *,
    is_qat: bool = False,
) -> Any:
    """A copy of a model in which layers that follow each other are one.

    The first of a list becomes the fused layer, the others `Identity`. Convolution, batch norm and
    relu fuse, and what remains of them; a norm is folded into the weight.

    Args:
        modules_to_fuse: names of layers, or lists of such lists.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    >>> torch.ao.quantization.fuse_modules(model, ["0", "1"])
    Sequential(
      (0): LinearReLU(
        (0): Linear(in_features=2, out_features=2, bias=True)
        (1): ReLU()
      )
      (1): Identity()
    )
    """
    if not inplace:
        model = copy.deepcopy(model)
    lists = [modules_to_fuse] if isinstance(modules_to_fuse[0], str) else modules_to_fuse
    for names in lists:
        _fuse_list(model, names, is_qat)
    return model


def fuse_modules_qat(model: Any, modules_to_fuse: Any, inplace: bool = False, **_: Any) -> Any:
    """`fuse_modules` for a model in training, whose norms stay layers."""
    return fuse_modules(model, modules_to_fuse, inplace, is_qat=True)


__getattr__, __dir__ = _missing.attributes(__name__)
