"""torch.__future__: how Module._apply changes parameters; taeda has one way, PyTorch's default."""

from __future__ import annotations

from taeda import _missing

_ONE_WAY = "parameters are changed by setting .data; leave the flag False"


def get_overwrite_module_params_on_conversion() -> bool:
    """False: ``module.to(...)`` keeps the Parameter objects."""
    return False


def get_swap_module_params_on_conversion() -> bool:
    """False: ``module.to(...)`` does not swap tensors."""
    return False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """NotImplementedError for True."""
    if value:
        _missing.function("torch.__future__.set_overwrite_module_params_on_conversion", _ONE_WAY)()


def set_swap_module_params_on_conversion(value: bool) -> None:
    """NotImplementedError for True."""
    if value:
        _missing.function("torch.__future__.set_swap_module_params_on_conversion", _ONE_WAY)()
