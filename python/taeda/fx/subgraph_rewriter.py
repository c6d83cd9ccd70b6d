"""Replacing the operations of a pattern by others wherever a graph has them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule, _assign_attr, _get_attr, _has_attr
from taeda.fx.node import Node
from taeda.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = [
    "Match",
    "ReplacedPatterns",
    "replace_pattern",
    "replace_pattern_with_filters",
]


class Match(NamedTuple):
    """A place where the pattern was: its last node and the nodes of the graph by those of it."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A match and the nodes that have come in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph(program: Any) -> Graph:
    from taeda.fx._symbolic_trace import symbolic_trace

    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def _take_over_attributes(gm: GraphModule, replacement: Any) -> None:
    """Gives `gm` what its new nodes name and only the replacement has."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        path = str(node.target)
        if node.op in ("call_module", "get_attr") and not _has_attr(gm, path):
            if not hasattr(replacement, "named_modules") or not _has_attr(replacement, path):
                raise RuntimeError(
                    f"Attempted to create a {node.op} node during subgraph rewriting with target "
                    f"{path}, but the referenced attribute does not exist in the replacement"
                )
            _assign_attr(copy.deepcopy(_get_attr(replacement, path)), gm, path)
    gm.graph.lint()


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replaces, in place, all places that do not overlap where `gm` does what `pattern` does.

    Both are functions or modules with the same arguments, which stand for any values.

    >>> traced = torch.fx.symbolic_trace(lambda x, y: torch.relu(x + y))
    >>> matches = torch.fx.replace_pattern(traced, lambda a, b: a + b, lambda a, b: a - b)
    >>> len(matches), traced(torch.tensor(5), torch.tensor(3))
    (1, tensor(2))
    """
    made = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in made]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same, where all filters accept the match; `replacement_callback` makes each's graph."""
    graph, wanted = gm.graph, _graph(pattern)
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    common = _graph(replacement) if replacement is not None else None
    replaced: list[ReplacedPatterns] = []
    now: dict[Node, Node] = {}  # what has come in the place of nodes of earlier matches
    for match in matcher.match(graph):
        if not all(accept(match, graph, wanted) for accept in match_filters or ()):
            continue
        new = replacement_callback(match, graph, wanted) if common is None else common  # type: ignore[misc]
        replaced.append(_replace(graph, match, new, now))
    gm.recompile()
    if replaced and common is not None:
        _take_over_attributes(gm, replacement)
    return replaced


def _replace(
    graph: Graph, match: InternalMatch, new: Graph, now: dict[Node, Node]
) -> ReplacedPatterns:
    """Puts a copy of a graph in the place of one match."""

    def current(value: Any) -> Any:
        while isinstance(value, Node) and value in now:
            value = now[value]
        return value

    inputs = new.find_nodes(op="placeholder")
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(
            f"pattern and replacement take {len(match.placeholder_nodes)} and {len(inputs)} inputs"
        )
    known = {p: current(v) for p, v in zip(inputs, match.placeholder_nodes)}
    ends = match.returning_nodes
    users = [user for end in ends for user in end.users if user not in match.nodes_map.values()]
    before = set(graph.nodes)
    with graph.inserting_before(min(users) if users else max(ends).next):
        results = graph.graph_copy(new, known)
    values = results if isinstance(results, list | tuple) else (results,)
    if len(values) != len(ends):
        raise AssertionError(f"pattern and replacement return {len(ends)} and {len(values)} values")
    for old, value in zip(ends, values):
        old.replace_all_uses_with(value, lambda user: user not in match.nodes_map.values())
        now[old] = value
    inside = {n for p, n in match.nodes_map.items() if p.op not in ("placeholder", "output")}
    for node in sorted(inside, reverse=True):
        if not node.users:
            graph.erase_node(node)
    added = [node for node in graph.nodes if node not in before]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)
