"""A pass as a class, and its result."""

from __future__ import annotations

import abc
from typing import NamedTuple

from taeda.fx.graph_module import GraphModule
from taeda.nn import Module

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module that a pass gives, and whether the pass has changed it."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass: subclasses write ``call``, and what it needs and promises where that is checked."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Checks, runs the pass, checks what it gives."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The pass itself."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises where the module is none that the pass takes."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises where the module is not as the pass promises."""
