"""Names around torch.compile, which runs programs eagerly: marks and questions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from taeda import _missing
from taeda._dynamo import config, eval_frame, exc, external_utils, utils  # noqa: F401
from taeda._dynamo.eval_frame import OptimizedModule, is_compiling, optimize
from taeda.compiler import allow_in_graph, assume_constant_result, disable, reset

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "maybe_mark_unbacked",
    "mark_unbacked",
    "nonstrict_trace",
    "optimize",
    "optimize_assert",
    "register_backend",
    "reset",
    "run",
    "substitute_in_graph",
]

_backends: dict[str, Callable] = {}
disallow_in_graph = forbid_in_graph = nonstrict_trace = run = allow_in_graph


def optimize_assert(backend: Any = None, **kwargs: Any) -> Callable:
    """As `optimize`; nothing can break the graph."""
    return optimize(backend, **kwargs)


def graph_break(msg: str = "") -> None:
    """There is no graph to break."""


@contextlib.contextmanager
def error_on_graph_break(error_on_graph_break: bool) -> Iterator[None]:
    """A block without effect."""
    yield


def mark_dynamic(t: Any, index: Any, **_: Any) -> None:
    """Sizes are read anew at each call."""


maybe_mark_dynamic = mark_unbacked = maybe_mark_unbacked = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Sizes are read anew at each call."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Addresses are read anew at each call."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names of what programs registered."""
    return sorted(_backends)


def register_backend(
    compiler_fn: Callable | None = None, name: str | None = None, tags: Any = ()
) -> Any:
    """Notes a backend; also a decorator. Programs run eagerly all the same."""

    def register(found: Callable) -> Callable:
        _backends[name or found.__name__] = found
        return found

    return register if compiler_fn is None else register(compiler_fn)


def substitute_in_graph(original_fn: Callable, **_: Any) -> Callable:
    """Decorator: notes a function that stands for another one where it is compiled."""
    return lambda substitute: substitute


__getattr__, __dir__ = _missing.attributes(__name__)
