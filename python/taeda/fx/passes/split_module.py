"""split_module: a graph's nodes put into submodules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule, _get_attr
from taeda.fx.node import Node, map_arg
from taeda.fx.proxy import Proxy
from taeda.nn import Module

__all__ = ["Partition", "split_module"]


class Partition:
    """The nodes of a submodule, the names of what it takes and gives, and its graph."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n"
            f" nodes: {self.node_names},\n"
            f" inputs: {self.inputs},\n"
            f" outputs: {self.outputs},\n"
            f" partitions depended on: {self.dependencies},\n"
            f" partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that does what `m` does in submodules ``submod_0``, ``submod_1``, ...

    Args:
        split_callback: gives the number of a node's submodule; not asked about inputs, attributes
            and the output, which stay outside.
        qualname_map: filled with the paths in `m` of what the submodules hold.
        keep_original_order: call the submodules in the order in which their first nodes come.
        keep_original_node_name: give the submodules' nodes the names of those in `m`.
        keep_original_input_name: name the submodules' inputs after the nodes; else arg_0, arg_1.
        partition_affix: the submodules are ``submod_AFFIX_0`` and so on.
        tuple_return: submodules with one result give a tuple too.

    RuntimeError where submodules need each other's results in a cycle.
    """
    split = _Split(m, split_callback, partition_affix)
    order = _in_order(split.partitions, bool(keep_original_order))
    split.fill(order, qualname_map, bool(keep_original_node_name), keep_original_input_name)
    return split.call(order, tuple_return)


class _Split:
    def __init__(self, m: GraphModule, callback: Callable, affix: str | None) -> None:
        self.m = m
        self.nodes = list(m.graph.nodes)
        self.by_name = {node.name: node for node in self.nodes}
        self.partitions: dict[str, Partition] = {}
        self.of: dict[Node, str] = {}  # the name of each node's partition
        for node in self.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            name = str(callback(node))
            name = name if affix is None else f"{affix}_{name}"
            self.of[node] = name
            self.partitions.setdefault(name, Partition(name)).node_names.append(node.name)
        for node in self.nodes:
            map_arg(_inputs(node), partial(self._use, node))

    def _use(self, by: Node, used: Node) -> None:
        """Notes what crosses from one partition, or from outside, to another."""
        source, target = self.of.get(used), self.of.get(by)
        if source == target:
            return
        if source is not None:
            self.partitions[source].outputs.setdefault(used.name)
        if target is not None:
            self.partitions[target].inputs.setdefault(used.name)
        if source is not None and target is not None:
            self.partitions[source].dependents.setdefault(target)
            self.partitions[target].dependencies.setdefault(source)

    def fill(
        self, order: list[Partition], paths: dict | None, same_names: bool, same_inputs: bool
    ) -> None:
        """Copies the nodes into their partitions' graphs."""
        for partition in order:
            for i, name in enumerate(partition.inputs):
                node = self.by_name[name]
                shown = name if same_inputs else f"arg_{i}"
                place = partition.graph.placeholder(shown, type_expr=node.type)
                place.meta = node.meta.copy()
                partition.environment[node] = place
        for node in self.nodes:
            if node in self.of:
                self._copy(node, self.partitions[self.of[node]], paths, same_names)

    def _copy(self, node: Node, partition: Partition, paths: Any, same_names: bool) -> None:
        target: Any = node.target
        if node.op == "call_module":
            target = str(node.target).replace(".", "_")
            partition.targets[target] = _get_attr(self.m, str(node.target))
            if paths is not None:
                paths[f"{partition.submod_name}.{target}"] = node.target
        args, kwargs = (map_arg(v, partition.environment.__getitem__) for v in _inputs(node))
        name = node.name if same_names else None
        copied = partition.graph.create_node(node.op, target, args, kwargs, name, node.type)
        copied.meta = node.meta.copy()
        partition.environment[node] = copied

    def call(self, order: list[Partition], tuple_return: bool) -> GraphModule:
        """The module that calls the partitions' modules."""
        graph, found, attributes = Graph(), dict[str, Node](), dict[str, Any]()
        for node in self.nodes:
            if node.op == "placeholder":
                found[node.name] = graph.node_copy(node)
            elif node.op == "get_attr":
                found[node.name] = graph.get_attr(str(node.target))
                attributes[str(node.target)] = _get_attr(self.m, str(node.target))
        for partition in order:
            outputs = tuple(partition.environment[self.by_name[n]] for n in partition.outputs)
            alone = len(outputs) == 1 and not tuple_return
            partition.graph.output(outputs[0] if alone else outputs)
            module = GraphModule(partition.targets, partition.graph)
            attributes[partition.submod_name] = module
            inputs = tuple(found[name] for name in partition.inputs)
            called = graph.create_node("call_module", partition.submod_name, inputs)
            if alone:
                found[next(iter(partition.outputs))] = called
                continue
            for i, name in enumerate(partition.outputs):
                found[name] = Proxy(called)[i].node  # type: ignore[index]
        output = next(node for node in self.nodes if node.op == "output")
        graph.output(map_arg(output.args[0], lambda n: found[n.name]))
        return GraphModule(attributes, graph)


def _inputs(node: Node) -> tuple[Any, Any]:
    return node.args, node.kwargs


def _in_order(partitions: dict[str, Partition], original: bool) -> list[Partition]:
    """The partitions, each after those that it depends on."""
    waiting = {name: set(p.dependencies) for name, p in partitions.items()}
    ready = [name for name, needs in waiting.items() if not needs]
    rank = {name: i for i, name in enumerate(partitions)}
    order = []
    while ready:
        if original:
            ready.sort(key=rank.__getitem__)
        name = ready.pop(0)
        order.append(partitions[name])
        for dependent in partitions[name].dependents:
            waiting[dependent].discard(name)
            if not waiting[dependent]:
                ready.append(dependent)
    if len(order) != len(partitions):
        raise RuntimeError("cycle exists between partitions!")
    return order
