"""torch.compile and the marks and questions around it: programs run eagerly, as they are, or by
what a backend of their own makes of their graphs."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar, overload

from taeda import _missing

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]


_F = TypeVar("_F", bound=Callable[..., Any])
# What `backend` and `mode` may say.
_BACKENDS = frozenset(
    "aot_eager aot_eager_decomp_partition aot_eager_decomp_partition_with_mode "
    "aot_eager_default_partitioner aot_ts cudagraphs eager eager_debug eager_noexcept inductor "
    "invoke_subgraph onnxrt openxla openxla_eval pre_dispatch_eager tensorrt ts tvm".split()
)
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def _check_options(backend: Any, mode: str | None, options: dict[str, Any] | None) -> None:
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if isinstance(backend, str) and backend not in (_BACKENDS | set(list_backends(()))):
        from taeda._dynamo.exc import InvalidBackend  # type: ignore[attr-defined]

        raise InvalidBackend(
            f"Invalid backend: {backend!r}, expected one of {', '.join(sorted(_BACKENDS))}"
        )
    if backend in (None, "inductor") and mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")


@overload
def compile(
    model: _F,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> _F: ...
@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Callable[[_F], _F]: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """A module as an OptimizedModule, a function as a function, both of which run eagerly.

    Without `model`, a decorator. `backend` and `mode` must be PyTorch's, or a function of a graph
    (a torch.fx.GraphModule) and a list of fake tensors, or the name that a program registered one
    by: it is called once for each kind of arguments, and what it returns is called with the graph's
    inputs and gives its outputs. The graph is what the call does with tensors; where it reads their
    values, or sets attributes of the module, the function runs eagerly, with a warning. Other
    Python statements of it run only when it is recorded. The other options change nothing. With
    TORCHDYNAMO_DISABLE=1 in the environment, or `disable`, the module or function itself.

    >>> @torch.compile(mode="reduce-overhead")
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    _check_options(backend, mode, options)
    from taeda._dynamo.eval_frame import _own_backend, compiled

    if model is not None and not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    disable = disable or os.environ.get("TORCHDYNAMO_DISABLE") == "1"
    own = _own_backend(_default_backend if backend is None else backend)
    given = {"mode": mode, "options": options}
    given = {name: value for name, value in given.items() if value is not None}
    if own is not None and given:
        own = functools.partial(own, **given)
    if model is None:
        return lambda found: found if disable else compiled(found, own)
    return model if disable else compiled(model, own)


_default_backend: Any = "inductor"


def get_default_backend() -> Any:
    """The backend of ``torch.compile`` without one; none of them changes anything."""
    return _default_backend


def set_default_backend(backend: Any) -> None:
    """Changes it: a name that PyTorch has, or a function; None for PyTorch's own choice."""
    global _default_backend
    _check_options(backend, None, None)
    _default_backend = "inductor" if backend is None else backend


def is_compiling() -> bool:
    """Whether the code is being compiled: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether the code is being compiled: never."""
    return False


def is_exporting() -> bool:
    """Whether the code is being exported: never."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Marks a function that must not be compiled; also as ``@disable()``."""
    return fn if callable(fn) else lambda function: function


def allow_in_graph(fn: Any) -> Any:
    """Marks a function, or several, that the compiler leaves as they are."""
    for function in fn if isinstance(fn, list | tuple) else [fn]:
        if not callable(function):
            raise AssertionError("allow_in_graph expects a callable")
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Marks a function whose result does not change."""
    return fn


def substitute_in_graph(original_fn: Callable, **_: Any) -> Callable:
    """Decorator: notes a function that stands for another one where it is compiled."""
    return lambda substitute: substitute


def nested_compile_region(fn: Any = None, **_: Any) -> Any:
    """Marks a function that would be compiled once."""
    return fn if callable(fn) else lambda function: function


def wrap_numpy(fn: Callable) -> Callable:
    """A function of NumPy arrays as one of tensors."""
    import numpy

    import taeda
    from taeda.utils import _pytree

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        plain = _pytree.tree_map_only(taeda.Tensor, lambda x: x.numpy(), (args, kwargs))
        result = fn(*plain[0], **plain[1])
        return _pytree.tree_map_only(numpy.ndarray, taeda.as_tensor, result)

    return wrapped


class set_stance(contextlib.ContextDecorator):
    """Says how functions are to be compiled, in a block or from here on; they run eagerly."""

    def __init__(self, stance: str = "default", **_: Any):
        known = "default force_eager eager_on_recompile fail_on_recompile eager_then_compile"
        if stance not in known.split():
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...


def set_enable_guard_collectives(enabled: bool) -> bool:
    """There are no guards; returns False, what it was before."""
    return False


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names of what programs registered."""
    from taeda import _dynamo

    return _dynamo.list_backends(exclude_tags)


def reset() -> None:
    """There is nothing to forget."""


def cudagraph_mark_step_begin() -> None:
    """There are no CUDA graphs."""


__path__: list[str] = []  # modules in it: taeda/_missing/members.py
__getattr__, __dir__ = _missing.attributes(__name__)
