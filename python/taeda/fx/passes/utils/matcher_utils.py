"""Where a graph has the same operations as a pattern."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import taeda
from taeda.fx.graph import Graph
from taeda.fx.node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One place where the pattern was found: its nodes and those they stand for."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


def _attribute(graph: Graph, path: Any) -> Any:
    found: Any = graph.owning_module
    for part in str(path).split("."):
        found = getattr(found, part, None)
    return found


def _plain(value: Any) -> Any:
    """Containers without the types that nodes give them."""
    if isinstance(value, slice):
        return value.start, value.stop, value.step
    return value


class SubgraphMatcher:
    """Finds a pattern: its placeholders stand for anything, its output's nodes are its ends.

    Nodes inside a match have no users outside. With `match_placeholder` placeholders match
    placeholders alone, with `match_output` the output node is part of the pattern; literals may
    differ with `ignore_literals`.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ):
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        self.pattern, self.match_output = pattern, match_output
        self.match_placeholder, self.ignore_literals = match_placeholder, ignore_literals
        self.remove_overlapping_matches = remove_overlapping_matches
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = [output]
        if not match_output:
            ends = self.pattern_returning_nodes
            self.pattern_anchors = [n for n in ends if len(n.users) == 1] or ends

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All matches, in the order in which their ends run."""
        candidates = [
            [n for n in graph.nodes if self._same_operation(anchor, n)]
            for anchor in self.pattern_anchors
        ]
        found: list[InternalMatch] = []
        taken: set[Node] = set()
        for ends in itertools.product(*candidates):
            match = self._match_at(ends)
            if match is None:
                continue
            inside = set(self._inside(match))
            if self.remove_overlapping_matches and inside & taken:
                continue
            taken |= inside
            found.append(match)
        return found

    def _match_at(self, ends: Iterable[Node]) -> InternalMatch | None:
        match = InternalMatch(anchors=list(self.pattern_anchors))
        for anchor, node in zip(self.pattern_anchors, ends):
            if not self._match_nodes(anchor, node, match.nodes_map):
                return None
        values = [node for node in match.nodes_map.values() if isinstance(node, Node)]
        if any(p not in match.nodes_map for p in self.pattern_returning_nodes):
            return None
        match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
        match.placeholder_nodes = [match.nodes_map.get(p) for p in self.pattern_placeholder_nodes]
        match.name_node_map = {p.name: n for p, n in match.nodes_map.items()}
        return match if values and self._is_contained(match) else None

    def _inside(self, match: InternalMatch) -> list[Node]:
        return [n for p, n in match.nodes_map.items() if p.op not in ("placeholder", "output")]

    def _is_contained(self, match: InternalMatch) -> bool:
        inside = set(match.nodes_map.values()) if match.nodes_map else set()
        return all(
            user in inside
            for node in self._inside(match)
            if node not in match.returning_nodes
            for user in node.users
        )

    def _same_operation(self, pattern: Node, node: Node) -> bool:
        if pattern.op == "placeholder" and not self.match_placeholder:
            return True
        if pattern.op != node.op:
            return False
        if pattern.op in ("placeholder", "output"):
            return True
        if pattern.op == "call_module":
            first = _attribute(pattern.graph, pattern.target)
            second = _attribute(node.graph, node.target)
            return type(first) is type(second)
        if pattern.op == "get_attr":
            first = _attribute(pattern.graph, pattern.target)
            second = _attribute(node.graph, node.target)
            return isinstance(first, taeda.Tensor) and isinstance(second, taeda.Tensor)
        return pattern.target == node.target

    def _match_values(self, pattern: Any, value: Any, found: dict[Node, Any]) -> bool:
        if (
            isinstance(pattern, Node)
            and pattern.op == "placeholder"
            and not isinstance(value, Node)
        ):
            if self.match_placeholder or (pattern in found and found[pattern] != value):
                return False
            found[pattern] = value
            return True
        if isinstance(pattern, Node) or isinstance(value, Node):
            both = isinstance(pattern, Node) and isinstance(value, Node)
            return both and self._match_nodes(pattern, value, found)
        if isinstance(pattern, list | tuple) and isinstance(value, list | tuple):
            pairs = zip(pattern, value)
            same_length = len(pattern) == len(value)
            return same_length and all(self._match_values(p, v, found) for p, v in pairs)
        if self.ignore_literals and not isinstance(pattern, dict):
            return True
        return type(pattern) is type(value) and _plain(pattern) == _plain(value)

    def _match_nodes(self, pattern: Node, node: Node, found: dict[Node, Any]) -> bool:
        if pattern in found:
            return found[pattern] is node
        if node in found.values() and pattern.op != "placeholder":
            return False
        if not self._same_operation(pattern, node):
            return False
        found[pattern] = node
        if pattern.op == "placeholder":
            return True
        first, second = _normalized(pattern), _normalized(node)
        if first.keys() == second.keys() and all(
            self._match_values(first[key], second[key], found) for key in first
        ):
            return True
        del found[pattern]
        return False


def _normalized(node: Node) -> dict[Any, Any]:
    """The arguments by index and name."""
    return {**dict(enumerate(node.args)), **node.kwargs}
