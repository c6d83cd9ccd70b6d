"""The older interface of functorch: a module as a function of its parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.func import functional_call
from taeda.nn import Module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


class FunctionalModuleWithBuffers(Module):
    """``f(params, buffers, *args)`` runs a module with these parameters and buffers."""

    def __init__(
        self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    def forward(
        self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers)))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """``f(params, *args)`` runs a module without buffers with these parameters."""

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:  # type: ignore
        return super().forward(params, (), *args, **kwargs)


def _stateless(
    model: Module, disable_autograd_tracking: bool
) -> tuple[Module, dict[str, Tensor], dict[str, Tensor]]:
    """The module without values, its parameters and buffers."""
    params: dict[str, Tensor] = dict(model.named_parameters())
    buffers = dict(model.named_buffers())
    bare = copy.deepcopy(model).to("meta")
    if disable_autograd_tracking:
        params = {name: p.detach() for name, p in params.items()}
    return bare, params, buffers


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple, tuple]:
    """(a function of parameters, buffers and arguments; the parameters; the buffers).

    >>> from torch._functorch.make_functional import make_functional_with_buffers
    >>> f, params, buffers = make_functional_with_buffers(nn.Linear(2, 1))
    >>> f(params, buffers, torch.ones(3, 2)).shape
    torch.Size([3, 1])
    """
    bare, params, buffers = _stateless(model, disable_autograd_tracking)
    made = FunctionalModuleWithBuffers(bare, list(params), list(buffers))
    return made, tuple(params.values()), tuple(buffers.values())


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple]:
    """(a function of parameters and arguments; the parameters). RuntimeError for buffers."""
    bare, params, buffers = _stateless(model, disable_autograd_tracking)
    if buffers:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return FunctionalModule(bare, list(params), ()), tuple(params.values())


def _only_models(models: Sequence[Module]) -> type:
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same training/eval mode."
        )
    kind = type(models[0])
    if any(type(m) is not kind for m in models):
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to be of the same class."
        )
    return kind


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple, tuple]:
    """`make_functional_with_buffers` of models of one class, parameters and buffers stacked."""
    _only_models(models)
    functions, params, buffers = zip(*(make_functional_with_buffers(m) for m in models))
    stacked, stacked_buffers = (
        tuple(taeda.stack(values).detach() for values in zip(*rows)) for rows in (params, buffers)
    )
    return functions[0], stacked, stacked_buffers


def functional_init(
    model_class: Callable[..., Module], ensemble_shape: tuple = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """A function of the class's arguments that gives what `combine_state_for_ensemble` gives of
    new models, one for each place of a shape of at most one dimension."""
    if len(ensemble_shape) > 1:
        raise ValueError("NYI: ensemble_shape with more than 1 element")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not ensemble_shape:
            return make_functional(model_class(*args, **kwargs).to(device))
        if ensemble_shape[0] <= 0:
            raise ValueError(f"num_models {ensemble_shape[0]} should be > 0")
        models = [model_class(*args, **kwargs).to(device) for _ in range(ensemble_shape[0])]
        made, params, _ = combine_state_for_ensemble(models)
        return FunctionalModule(made.stateless_model, made.param_names, ()), params

    return wrapped
