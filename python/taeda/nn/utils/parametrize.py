"""Parameters computed from others: a module's tensor becomes a function of what is trained."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import taeda
from taeda import Tensor, _missing
from taeda.nn.modules.container import ModuleDict, ModuleList
from taeda.nn.modules.module import Module
from taeda.nn.parameter import Parameter

__all__ = [
    "cached",
    "ParametrizationList",
    "register_parametrization",
    "is_parametrized",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within the context each parametrized tensor is computed once."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if _cache_depth == 0:
            _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the ``original`` values behind it."""

    original: Tensor

    def __init__(self, modules: list[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with taeda.no_grad():
            new: Any = original
            module: Any
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    # One that cannot be inverted takes the tensor as it is.
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, Tensor) and not isinstance(new, (list, tuple)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            if dtype != new.dtype and not unsafe:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            with taeda.no_grad():
                original.data = new.data
            _register(self, "original", original)
        else:
            for i, value in enumerate(new):
                if not isinstance(value, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors "
                        f"(list, tuple...). Got element {i} of the sequence with type "
                        f"{type(value).__name__}."
                    )
                if isinstance(original, Parameter):
                    value = Parameter(value, original.requires_grad)
                value.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", value)
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueError(
                    f"A parametrization must return a tensor. Got {type(result).__name__}."
                )
            if result.dtype != dtype:
                raise ValueError(
                    "Registering a parametrization may not change the dtype of the tensor, unless "
                    f"`unsafe` flag is enabled.\nunparametrized dtype: {dtype}\n"
                    f"parametrized dtype: {result.dtype}"
                )
            if result.shape != shape:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, unless "
                    f"`unsafe` flag is enabled.\nunparametrized shape: {shape}\n"
                    f"parametrized shape: {result.shape}"
                )

    def right_inverse(self, value: Tensor) -> None:
        """Sets the original values so that the tensor becomes ``value``."""
        with taeda.no_grad():
            new: Any = value
            module: Any
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                new = module.right_inverse(new)
            if self.is_tensor:
                self.original.set_(new) if new.shape != self.original.shape else (
                    self.original.copy_(new)
                )
                return
            if len(new) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(new)}."
                )
            for i, tensor in enumerate(new):
                getattr(self, f"original{i}").copy_(tensor)

    def forward(self) -> Tensor:
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for i in range(1, len(self)):
            x = self[i](x)
        return x


def _inject_class(module: Module) -> None:
    """Gives the instance a class of its own, to which properties can be added."""
    cls = type(module)

    def default_deepcopy(self: Module, memo: dict) -> Module:
        if id(self) in memo:
            return memo[id(self)]
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        return replica

    def getstate(self: Module) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    fields: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        fields["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), fields)


def _inject_property(module: Module, name: str) -> None:
    def get(self: Module) -> Tensor:
        parametrization = self._modules["parametrizations"][name]
        if not _cache_depth:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def set_(self: Module, value: Tensor) -> None:
        self._modules["parametrizations"][name].right_inverse(value)

    setattr(type(module), name, property(get, set_))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes ``module.tensor_name`` the result of ``parametrization`` of what it was.

    The parametrization's ``right_inverse``, if it has one, gives the value to start from.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parametrizations = module._modules["parametrizations"][tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            if after.dtype != before.dtype or after.shape != before.shape:
                raise ValueError(
                    "Registering a parametrization may not change the dtype or shape of the "
                    "tensor, unless the `unsafe` flag is enabled."
                )
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _inject_class(module)
        module.parametrizations = ModuleDict()
    _inject_property(module, tensor_name)
    module._modules["parametrizations"][tensor_name] = parametrizations
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether ``module`` has parametrizations, or one of that tensor."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    if tensor_name is None:
        return len(parametrizations) > 0
    return tensor_name in parametrizations


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes a parametrized tensor plain again, with its present or its original value."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module._modules["parametrizations"][tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with taeda.no_grad():
                value = getattr(module, tensor_name)
                original.data = value.detach().clone() if value is original else value.detach()
    else:
        if not leave_parametrized:
            raise ValueError(
                "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
                "parametrized in terms of a sequence of tensors."
            )
        value = getattr(module, tensor_name)
        trained = isinstance(parametrizations.original0, Parameter)
        original = Parameter(value.detach()) if trained else value.detach()
    delattr(type(module), tensor_name)
    del module._modules["parametrizations"][tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of ``module`` before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


__getattr__, __dir__ = _missing.attributes(__name__)
