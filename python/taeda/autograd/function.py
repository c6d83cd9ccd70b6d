"""Functions with a gradient of their own."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from taeda import _C, _missing
from taeda._C import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = [
    "Function",
    "FunctionCtx",
    "BackwardCFunction",
    "FunctionMeta",
    "InplaceFunction",
    "once_differentiable",
]


class FunctionCtx(_C._ContextBase):
    """What ``forward`` leaves for ``backward``; any attribute may be set on it.

    ``save_for_backward(*tensors)`` keeps arguments and results, ``saved_tensors`` gives them back
    (RuntimeError when one was changed in place since), ``needs_input_grad`` says which arguments
    require grad, and ``mark_dirty``, ``mark_non_differentiable``, ``set_materialize_grads`` and
    ``save_for_forward`` describe the call.
    """

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing: shared storage is found by itself."""

    @property
    def saved_variables(self) -> tuple:
        """The old name of ``saved_tensors``."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors


class BackwardCFunction(FunctionCtx):
    """Base of the context classes that go with each Function."""

    _forward_cls: type[Function]

    @staticmethod
    def _backward(ctx: BackwardCFunction, *grads: Any) -> Any:
        cls = ctx._forward_cls
        if cls.vjp is not Function.vjp:
            if cls.backward is not Function.backward:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not "
                    "allowed. You should only "
                    "implement one of them."
                )
            return cls.vjp(ctx, *grads)
        return cls.backward(ctx, *grads)


class FunctionMeta(type):
    """Gives each Function a context class of its own, named after it."""

    def __init__(cls, name: str, bases: tuple, attributes: dict) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        base = bases[0] if bases else None
        cls._has_setup_context = (
            base is not None and cls.setup_context is not Function.setup_context  # type: ignore[attr-defined]
        )


class Function(metaclass=FunctionMeta):
    """Base of functions with a hand-written gradient; call ``apply``.

    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, gy):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * gy
    >>> x = torch.tensor(3., requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)

    ``forward`` runs without recording. With a ``setup_context(ctx, inputs, output)``, forward takes
    no ctx. ``backward`` gives one gradient an argument of forward, None where there is none; its
    operators are recorded under create_graph. ``jvp(ctx, *tangents)`` is the rule of forward mode.
    """

    _backward_cls: type[BackwardCFunction]
    _has_setup_context: bool
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the results from ``(ctx, *args)``, or from ``(*args)`` beside a "
        "setup_context."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    if TYPE_CHECKING:  # any parameters: those of subclasses differ

        @staticmethod
        def setup_context(*args: Any, **kwargs: Any) -> Any: ...
        @staticmethod
        def backward(*args: Any, **kwargs: Any) -> Any: ...
        @staticmethod
        def vjp(*args: Any, **kwargs: Any) -> Any: ...
        @staticmethod
        def jvp(*args: Any, **kwargs: Any) -> Any: ...

    else:

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
            """Fills ctx after forward."""
            raise NotImplementedError("setup_context is not implemented.")

        @staticmethod
        def backward(ctx: Any, *grad_outputs: Any) -> Any:
            """Gradients of the results to gradients of the arguments."""
            raise NotImplementedError(
                "You must implement either the backward or vjp method for your custom "
                "autograd.Function to use it with backward mode AD."
            )

        @staticmethod
        def vjp(ctx: Any, *grad_outputs: Any) -> Any:
            """Another name for backward."""
            raise NotImplementedError("vjp is not implemented.")

        @staticmethod
        def jvp(ctx: Any, *grad_inputs: Any) -> Any:
            """Tangents of the arguments to tangents of the results."""
            raise NotImplementedError(
                "You must implement the jvp function for custom autograd.Function to use it with "
                "forward mode AD."
            )

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """The rule of vmap: what a batch gives, and the dimensions its results have it along.

        Called with the arguments as the code outside of vmap has them; ``in_dims`` has the batch's
        dimension of each, None where it has none, ``info`` a batch_size and a randomness. Instead
        of it, ``generate_vmap_rule = True`` runs forward, backward and jvp inside vmap.
        """
        raise NotImplementedError("vmap is not implemented.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls forward and records it."""
        if cls._has_setup_context:
            args = _bind_defaults(cls.forward, args, kwargs)
        elif kwargs:
            args = _in_order(cls.forward, args, kwargs)
        if _C._level_is_active():
            from taeda.func._rules import apply_in_level

            return apply_in_level(cls, args)
        return _C._apply_function(cls, cls._backward_cls(), args)


@functools.lru_cache(maxsize=256)
def _signature(function: Callable) -> inspect.Signature:
    return inspect.signature(function)


def _bind_defaults(function: Callable, args: tuple, kwargs: dict) -> tuple:
    bound = _signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"forward() got an unexpected keyword argument '{next(iter(bound.kwargs))}'"
        )
    return bound.args


def _in_order(forward: Callable, args: tuple, kwargs: dict) -> tuple:
    """Arguments for forward(ctx, ...), those given by name put in its order of parameters.

    As in PyTorch, no default is filled in between: backward gives one gradient for each argument.
    """
    names = [
        p.name
        for p in _signature(forward).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ][1:]
    for name in kwargs:
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if name in names[: len(args)]:
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    rest = names[len(args) : 1 + max(names.index(name) for name in kwargs)]
    for i, name in enumerate(rest, len(args)):
        if name not in kwargs:
            raise TypeError(f"forward() missing required argument: '{name}' (position {i})")
    return (*args, *(kwargs[name] for name in rest))


class InplaceFunction(Function):
    """A Function with a flag for callers that may want to overwrite their argument."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def once_differentiable(fn: _F) -> _F:
    """Marks a backward that cannot be differentiated itself: doing so raises instead of being "
    "wrong."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        import taeda

        with taeda.no_grad():
            outputs = fn(ctx, *args)
        if not taeda.is_grad_enabled():
            return outputs
        if not any(isinstance(arg, Tensor) and arg.requires_grad for arg in args):
            return outputs
        from taeda.autograd._nodes import fails_in_backward

        many = isinstance(outputs, tuple)
        marked = fails_in_backward(
            "trying to differentiate twice a function that was marked with @once_differentiable",
            outputs if many else (outputs,),
        )
        return marked if many else marked[0]

    return wrapper  # type: ignore[return-value]


__getattr__, __dir__ = _missing.attributes(__name__)
