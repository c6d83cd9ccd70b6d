"""Preparing models for quantization: layers are observed, and train with fake quantization."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from taeda import Tensor, _missing, nn
from taeda.ao.nn.intrinsic import _FusedModule
from taeda.ao.nn.quantized import FXFloatFunctional
from taeda.nn import Module
from taeda.nn.utils.parametrize import type_before_parametrizations

from .fake_quantize import FakeQuantizeBase
from .observer import _is_activation_post_process
from .quantization_mappings import (
    DEFAULT_MODULE_TO_ACT_POST_PROCESS,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
)
from .stubs import DeQuantStub, QuantWrapper

_NO_QUANTIZED = (
    "convert: taeda has no quantized tensors; a model of fake quantization runs as it is, and "
    "to_float() of its layers gives those without"
)


def get_default_custom_config_dict() -> dict[str, Any]:
    """What `prepare` and `convert` do with layers of a program's own: nothing."""
    return {"float_to_observed_custom_module_class": {},
            "observed_to_quantized_custom_module_class": {}}  # fmt: skip


def propagate_qconfig_(
    module: Module,
    qconfig_dict: dict[Any, Any] | None = None,
    prepare_custom_config_dict: dict[str, Any] | None = None,
) -> None:
    """Gives every module the `qconfig` of its own, else of its name or type, else its parent's."""
    known, skipped = qconfig_dict or {}, prepare_custom_config_dict or {}
    names = skipped.get("non_traceable_module_name", ())
    classes = skipped.get("non_traceable_module_class", ())

    def propagate(module: Module, inherited: Any, prefix: str) -> None:
        qconfig = known.get(type_before_parametrizations(module), inherited)
        qconfig = known.get(prefix, qconfig)
        module.qconfig = getattr(module, "qconfig", qconfig)
        for name, child in module.named_children():
            if name not in names and type(child) not in classes:
                propagate(child, module.qconfig, f"{prefix}.{name}" if prefix else name)

    propagate(module, None, "")


# --- observers ---


def _observer_forward_hook(self: Any, input: Any, output: Tensor) -> Tensor:
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Any, input: Any) -> Tensor:
    return self.activation_post_process(input[0])


def _is_memoryless(observer: Any) -> bool:
    if isinstance(observer, FakeQuantizeBase):
        observer = getattr(observer, "activation_post_process", observer)
    return getattr(observer, "averaging_constant", None) == 1


def _observe(module: Any, device: Any, make: Callable[[], Module] | None = None) -> None:
    """Hangs an observer on a module's results; on its input where it keeps no memory of others."""
    if getattr(module, "qconfig", None) is None or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", _made(make or module.qconfig.activation, device))
    if _is_memoryless(module.qconfig.activation()):
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _made(make: Callable[[], Module], device: Any) -> Module:
    observer = make()
    return observer if device is None else observer.to(device)


def _device_of(module: Module) -> Any:
    tensors = [*module.parameters(), *module.buffers()]
    devices = {x.device for x in tensors if x.device.type != "meta"}
    if len(devices) > 1:
        raise AssertionError(
            "_add_observer_ only works with cpu or single-device CUDA modules, but got devices "
            f"{devices}"
        )
    return next(iter(devices), None)


def _is_leaf(module: Module) -> bool:
    """Whether a module has no children but those of its parametrizations."""
    return all(name == "parametrizations" for name, _ in module.named_children())


def _add_observer_(
    module: Module, observed: set[Any], whole: set[Any], device: Any, own: dict[Any, Any]
) -> None:
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        if kind is nn.Dropout:
            continue
        if isinstance(child, FXFloatFunctional):
            config: Any = getattr(child, "qconfig", None)
            if config is not None:
                child.activation_post_process = _made(config.activation, device)
        elif isinstance(child, _FusedModule) or kind in whole:
            _observe(child, device)
        elif child.training and type(child) in DEFAULT_MODULE_TO_ACT_POST_PROCESS:
            _observe(child, device, DEFAULT_MODULE_TO_ACT_POST_PROCESS[kind])
        elif getattr(child, "qconfig", None) is not None and kind in own:
            made = own[kind].from_float(child)
            setattr(module, name, made)
            _observe(made, device)
        else:
            _add_observer_(child, observed, whole, device, own)
    is_layer = type_before_parametrizations(module) in observed
    if is_layer and not isinstance(module, nn.Sequential):
        if _is_leaf(module) or hasattr(module, "weight_fake_quant"):
            _observe(module, device)


def prepare(
    model: Module,
    inplace: bool = False,
    allow_list: set[Any] | None = None,
    observer_non_leaf_module_list: set[Any] | None = None,
    prepare_custom_config_dict: dict[str, Any] | None = None,
) -> Module:
    """A copy of a model whose layers observe their results, as their `qconfig` says.

    Args:
        inplace: the model itself.
        allow_list: the types of the layers that are observed.
        observer_non_leaf_module_list: types that are observed as a whole.
    """
    if not inplace:
        model = copy.deepcopy(model)
    custom = prepare_custom_config_dict or get_default_custom_config_dict()
    own = custom.get("float_to_observed_custom_module_class", {})
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct "
            "configuration through `qconfig_dict` or by assigning the `.qconfig` attribute "
            "directly on submodules",
            stacklevel=2,
        )
    observed = get_default_qconfig_propagation_list() if allow_list is None else set(allow_list)
    whole = set(observer_non_leaf_module_list or ())
    _add_observer_(model, observed, whole, _device_of(model), own)
    return model


def prepare_qat(
    model: Module, mapping: dict[Any, Any] | None = None, inplace: bool = False
) -> Module:
    """A copy of a model in training that fake quantizes its weights and its layers' results.

    Args:
        mapping: which types are replaced by which; those of
            `get_default_qat_module_mappings` without.
        inplace: the model itself.
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping, inplace=True, remove_qconfig=False)
    return prepare(model, True, observer_non_leaf_module_list=set(mapping.values()))


# --- replacing layers ---


def convert(
    module: Module,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: dict[str, Any] | None = None,
    use_precomputed_fake_quant: bool = False,
) -> Module:
    """A copy of a model whose layers are replaced by `from_float` of what `mapping` has for them.

    Without a mapping NotImplementedError: there are no quantized layers.
    """
    if mapping is None:
        raise NotImplementedError(_NO_QUANTIZED)
    if not inplace:
        module = copy.deepcopy(module)
    custom = convert_custom_config_dict or get_default_custom_config_dict()
    own = custom.get("observed_to_quantized_custom_module_class", {})
    _replace(module, mapping, own)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _replace(module: Module, mapping: dict[Any, Any], own: dict[Any, Any]) -> None:
    for name, child in list(module.named_children()):
        is_whole = isinstance(child, _FusedModule) or type_before_parametrizations(child) in own
        if not is_whole:
            _replace(child, mapping, own)
        module._modules[name] = swap_module(child, mapping, own)


def swap_module(
    mod: Any,
    mapping: dict[Any, Any],
    custom_module_class_mapping: dict[Any, Any],
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """The layer that replaces `mod`, with its hooks; `mod` where there is none or no `qconfig`."""
    if getattr(mod, "qconfig", None) is None:
        return mod
    kind = type_before_parametrizations(mod)
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        make = mapping[kind].from_float
        takes = "use_precomputed_fake_quant" in inspect.signature(make).parameters
        options = {"use_precomputed_fake_quant": use_precomputed_fake_quant} if takes else {}
        made = make(mod, **options)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    device = _device_of(mod)
    return made if device is None else made.to(device)


def _remove_qconfig(module: Any) -> None:
    """Takes away what `prepare` put on a model."""
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if _is_activation_post_process(getattr(module, "activation_post_process", None)):
        del module.activation_post_process
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for key, hook in list(hooks.items()):
            if hook in (_observer_forward_hook, _observer_forward_pre_hook):
                hooks.pop(key)


def add_quant_dequant(module: Module) -> Module:
    """A model whose layers with a `qconfig` stand between stubs."""
    if _is_leaf(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def quantize(
    model: Module, run_fn: Callable, run_args: Any, mapping: Any = None, inplace: bool = False
) -> Module:
    """Prepares a model, calls ``run_fn(model, *run_args)`` to observe data, and converts it."""
    model = prepare(model.eval(), inplace)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_qat(model: Module, run_fn: Callable, run_args: Any, inplace: bool = False) -> Module:
    """Prepares a model, calls ``run_fn(model, *run_args)`` to train it, and converts it."""
    model = model if inplace else copy.deepcopy(model)
    prepare_qat(model.train(), inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


__getattr__, __dir__ = _missing.attributes(__name__)
