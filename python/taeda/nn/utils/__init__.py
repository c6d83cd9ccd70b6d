"""Helpers around modules and their gradients."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import rnn
from .clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .init import skip_init

# Not lazily: the submodule would take the place of the function of its name when it is imported.
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grads_with_norm_",
    "clip_grad_value_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

# Rarely used parts load when first asked for: name -> (module, attribute or None for the module).
_LAZY: dict[str, tuple[str, str | None]] = {
    "convert_conv2d_weight_memory_format": ("memory_format", "convert_conv2d_weight_memory_format"),
    "convert_conv3d_weight_memory_format": ("memory_format", "convert_conv3d_weight_memory_format"),
    "fuse_conv_bn_eval": ("fusion", "fuse_conv_bn_eval"),
    "fuse_conv_bn_weights": ("fusion", "fuse_conv_bn_weights"),
    "fuse_linear_bn_eval": ("fusion", "fuse_linear_bn_eval"),
    "fuse_linear_bn_weights": ("fusion", "fuse_linear_bn_weights"),
    "fusion": ("fusion", None),
    "parametrizations": ("parametrizations", None),
    "parametrize": ("parametrize", None),
    "prune": ("prune", None),
    "stateless": ("stateless", None),
}


if TYPE_CHECKING:
    from . import fusion as fusion
    from . import parametrizations as parametrizations
    from . import parametrize as parametrize
    from . import prune as prune
    from . import stateless as stateless
    from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
    from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
    from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
    from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
    from .memory_format import (
        convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format,
    )
    from .memory_format import (
        convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format,
    )
else:

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module_name, attribute = _LAZY[name]
        module = importlib.import_module(f"{__name__}.{module_name}")
        value = module if attribute is None else getattr(module, attribute)
        globals()[name] = value
        return value
