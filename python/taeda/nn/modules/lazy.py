"""Modules that learn their sizes from the first input."""

from __future__ import annotations

from typing import Any

from taeda.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


_Mixed: Any = object  # the Module that the mixin is mixed into


class LazyModuleMixin(_Mixed):
    """Mixin for modules whose parameters get their shape at the first call.

    A subclass defines ``initialize_parameters(*args)``; a pre-forward hook calls it once, and the
    module then becomes an instance of ``cls_to_become``.
    """

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        # Uninitialized tensors cannot be detached: they are stored as they are.
        for name, param in self._parameters.items():
            if param is not None:
                keep = is_lazy(param) or keep_vars
                destination[prefix + name] = param if keep else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                keep = is_lazy(buffer) or keep_vars
                destination[prefix + name] = buffer if keep else buffer.detach()

    def _lazy_load_hook(self, state_dict: dict, prefix: str, *_: Any) -> None:
        """Gives uninitialized tensors the shapes of those about to be loaded."""
        for name, tensor in {**self._parameters, **self._buffers}.items():
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(tensor) and not is_lazy(given):
                with _no_grad():
                    tensor.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether some parameter or buffer has no shape yet."""
        tensors = (*self._parameters.values(), *self._buffers.values())
        return any(is_lazy(tensor) for tensor in tensors)

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        delattr(module, "_initialize_hook")
        delattr(module, "_load_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules"
        )


def _no_grad() -> Any:
    import taeda

    return taeda.no_grad()
