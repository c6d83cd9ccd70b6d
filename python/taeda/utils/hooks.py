"""Handles of registered hooks, and the autograd side of module backward hooks."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import taeda

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks", "BackwardHook"]

_ids = itertools.count()


class RemovableHandle:
    """Removes a hook from the dictionary it was registered in; also a context manager.

    ``extra_dict`` names further dictionaries (or sets) that hold the same id.
    """

    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = next(_ids)
        extras = () if extra_dict is None else extra_dict
        if not isinstance(extras, (list, tuple)):
            extras = (extras,)
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras)

    def remove(self) -> None:
        """Forgets the hook; calling it twice does nothing more."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            entries = ref()
            if entries is not None and self.id in entries:
                del entries[self.id]

    def __getstate__(self) -> tuple:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state: tuple) -> None:
        hooks_dict, self.id = state[0], state[1]
        extras = state[2] if len(state) > 2 else ()
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks_dict is None else hooks_dict)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if e is None else e) for e in extras)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.remove()


def unserializable_hook(f: Callable) -> Callable:
    """Marks ``f`` so that serializing a tensor that has it as a hook warns."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns for each hook of ``tensor`` that was marked by ``unserializable_hook``."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=2,
            )


def _identity_function() -> Any:
    """The autograd function that passes tensors through and gives hooks a node to hang on."""
    global _Identity
    if _Identity is None:

        class BackwardHookFunction(taeda.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *tensors: Any) -> tuple:
                ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
                return tuple(t.view_as(t) for t in tensors)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> tuple:
                return grads

        _Identity = BackwardHookFunction
    return _Identity


_Identity: type | None = None


class BackwardHook:
    """Runs a module's full backward hooks once the gradients of its inputs and outputs are known.

    The inputs and the outputs of ``forward`` pass through an identity node each. The output node
    sees grad_output (pre-hooks may replace it), the input node grad_input (hooks may replace it).
    """

    def __init__(self, module: Any, user_hooks: Iterable, user_pre_hooks: Iterable) -> None:
        self.module = module
        self.user_hooks = list(user_hooks)
        self.user_pre_hooks = list(user_pre_hooks)
        self.grad_outputs: tuple | None = None
        self.n_inputs = -1
        self.n_outputs = -1
        self.input_index: list[int] = []
        self.output_index: list[int] = []

    @staticmethod
    def _spread(values: Iterable, index: list[int], length: int) -> tuple:
        spread: list = [None] * length
        for position, value in zip(index, values):
            spread[position] = value
        return tuple(spread)

    @staticmethod
    def _gather(values: tuple, index: list[int]) -> tuple:
        return tuple(values[position] for position in index)

    def _pass_through(self, values: tuple, install: Callable) -> tuple[tuple, list[int] | None]:
        index = [i for i, value in enumerate(values) if isinstance(value, taeda.Tensor)]
        tensors = [values[i] for i in index]
        if not (taeda.is_grad_enabled() and any(t.requires_grad for t in tensors)):
            return values, None
        passed = _identity_function().apply(*tensors)
        node = next((t.grad_fn for t in passed if t.grad_fn is not None), None)
        if node is None:
            raise RuntimeError(
                "Error while setting up backward hooks: no input of the module has a gradient."
            )
        install(node)
        result = list(values)
        for position, tensor in zip(index, passed):
            result[position] = tensor
        return tuple(result), index

    def setup_input_hook(self, args: tuple) -> tuple:
        """Watches the gradients of the module's positional arguments."""

        def on_grad_input(grad_input: tuple, _grad_output: tuple) -> Any:
            if self.grad_outputs is None:
                return None  # this module's output had no part in the backward pass
            grad_input = self._spread(grad_input, self.input_index, self.n_inputs)
            grad_input = self._run_hooks(grad_input)
            self.grad_outputs = None
            return self._gather(grad_input, self.input_index)

        args, index = self._pass_through(args, lambda node: node.register_hook(on_grad_input))
        self.n_inputs = len(args)
        self.input_index = index or []
        self.watches_input = index is not None
        return args

    def _run_hooks(self, grad_input: tuple) -> tuple:
        for hook in self.user_hooks:
            out = hook(self.module, grad_input, self.grad_outputs)
            if out is None:
                continue
            if not isinstance(out, tuple):
                out = (out,)
            if len(out) != len(grad_input):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(out)}, but expected {len(grad_input)}"
                )
            grad_input = out
        return grad_input

    def _run_pre_hooks(self, grad_output: tuple) -> tuple:
        for hook in self.user_pre_hooks:
            out = hook(self.module, grad_output)
            if out is None:
                continue
            if not isinstance(out, tuple):
                out = (out,)
            if len(out) != len(grad_output):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(out)}, but expected {len(grad_output)}"
                )
            grad_output = out
        return grad_output

    def setup_output_hook(self, result: Any) -> Any:
        """Watches the gradients of what ``forward`` returned: a tensor or a tuple with tensors."""
        is_tuple = isinstance(result, tuple)
        values = result if is_tuple else (result,)

        def on_grad_output(grad_output: tuple) -> tuple:
            self.grad_outputs = self._spread(grad_output, self.output_index, self.n_outputs)
            self.grad_outputs = self._run_pre_hooks(self.grad_outputs)
            grads = self._gather(self.grad_outputs, self.output_index)
            if not self.watches_input:
                warnings.warn(
                    "a full backward hook runs when the gradients of the module's outputs are "
                    "known: no input of the module requires grad, so grad_input is empty",
                    stacklevel=2,
                )
                # No input needs a gradient: the input node will not run, so the hooks run here.
                if any(out is not None for out in self._no_input_results()):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should "
                        "always return None or None for all gradients."
                    )
                self.grad_outputs = None
            return grads

        values, index = self._pass_through(
            values, lambda node: node.register_prehook(on_grad_output)
        )
        self.n_outputs = len(values)
        self.output_index = index or []
        if not is_tuple:
            return values[0]
        return values if type(result) is tuple else _rebuild_tuple(result, values)

    def _no_input_results(self) -> list:
        grad_inputs = self._spread([], [], self.n_inputs)
        results: list = []
        for hook in self.user_hooks:
            out = hook(self.module, grad_inputs, self.grad_outputs)
            if out is not None:
                results.extend(out if isinstance(out, tuple) else (out,))
        return results


def _rebuild_tuple(template: tuple, values: tuple) -> tuple:
    if hasattr(template, "_make"):  # namedtuple
        return template._make(values)
    return type(template)(values)
