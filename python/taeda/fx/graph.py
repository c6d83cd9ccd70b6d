"""Graph: the operations of a program as a list of nodes in the order in which they run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Signature
from typing import Any

import taeda
from taeda.fx import _codegen
from taeda.fx._codegen import (  # noqa: F401
    CodeGen,
    PythonCode,
    _format_target,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from taeda.fx._names import is_from_torch as _is_from_torch  # noqa: F401
from taeda.fx._namespace import _custom_builtins, _Namespace, _register_custom_builtin  # noqa: F401
from taeda.fx.node import Argument, Node, Target, _get_qualified_name, map_arg  # noqa: F401

__all__ = ["CodeGen", "Graph", "PythonCode"]


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


class _node_list:
    """The nodes of a graph; nodes may be erased and inserted while it is iterated."""

    def __init__(self, graph: Graph, direction: str = "_next"):
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """A program: nodes in the order in which they run.

    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.relu, (x,))
    >>> print(graph.output(y).args)
    (relu,)
    """

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ):
        self._root = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._graph_namespace = _Namespace()
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._order: dict[Node, int] | None = None
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras

    def _indices(self) -> dict[Node, int]:
        """The index of each node in the order of running."""
        if self._order is None:
            self._order = {node: index for index, node in enumerate(self.nodes)}
        return self._order

    @property
    def nodes(self) -> _node_list:
        """All nodes in order."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The node of the result; it is the last one."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"the last node is {node.op}, not output")
        return node

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, those with a target if one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # --- making nodes ---

    def _target_to_str(self, target: Target | None) -> str:
        name = target if isinstance(target, str) else getattr(target, "__name__", None)
        if name is None:
            name = str(target)
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return _snake_case(name)

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple | None = None,
        kwargs: dict | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node at the place of insertion, by default the end."""
        if not isinstance(args, tuple | None):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict | None):
            raise AssertionError("kwargs must be a dict")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        self._order = None
        return node

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, of the function's arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The function's result, of the output node's value."""
        return self._codegen.process_outputs(out)

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = Signature.empty
    ) -> Node:
        """An input; those with a default value follow the others."""
        args = () if default_value is Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def _warn_if_missing(self, path: str, call: str) -> None:
        module = self.owning_module
        if module is None:
            return
        found = module
        for part in path.split("."):
            if not hasattr(found, part):
                warnings.warn(
                    f"Attempted to insert a {call} Node with no underlying reference in the owning "
                    f"GraphModule: it has no '{path}'. Call GraphModule.add_submodule or "
                    "register_parameter or register_buffer before.",
                    stacklevel=3,
                )
                return
            found = getattr(found, part)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """The parameter, buffer or other attribute of the module that has a path."""
        self._warn_if_missing(qualified_name, "get_attr")
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of the submodule that has a path."""
        self._warn_if_missing(module_name, "call_module")
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a method of ``args[0]``."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the graph returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    # --- editing ---

    def inserting_before(self, n: Node | None = None) -> Any:
        """Context manager: new nodes go in front of `n`, by default of all."""
        return self._insertion(n, self._root.append if n is None else n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Context manager: new nodes go behind `n`, by default behind all."""
        return self._insertion(n, self._root.prepend if n is None else n.append)

    def _insertion(self, n: Node | None, insert: Callable[[Node], None]) -> Any:
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert before or after is not in graph.")
        return _InsertPoint(self, insert)

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node that has no users out of the graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} "
                f"users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase._update_args_kwargs((), {})
        self._len -= 1
        self._order = None

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x
    ) -> Node:
        """A node of another graph again in this one; `arg_transform` gives its nodes' new ones."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = dict(node.meta)
        return result

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Inserts the nodes of `g` here and returns what it returned: nodes of this graph.

        `val_map` gives the nodes to use for some of `g`'s, and takes in the others.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict | None = None) -> Graph:
        memo = {} if memo is None else memo
        copied = Graph(tracer_cls=self._tracer_cls)
        copied._codegen = self._codegen
        copied._co_fields = self._co_fields
        val_map: dict[Node, Node] = {}
        output = copied.graph_copy(self, val_map, return_output_node=True)
        for old, new in val_map.items():
            memo[id(old)] = new
        if isinstance(output, tuple):
            value, old = output
            new = copied.output(value, type_expr=old.type)
            new.meta = dict(old.meta)
        return copied

    def eliminate_dead_code(
        self, is_impure_node: Callable[[Node], bool] | None = None, **_: Any
    ) -> bool:
        """Erases nodes whose results nothing uses and that matter for nothing else.

        Returns whether there were any.
        """
        self.lint()
        before = len(self.nodes)
        for node in reversed(self.nodes):
            impure = is_impure_node(node) if is_impure_node else node.is_impure()
            if not node.users and not impure:
                self.erase_node(node)
        return len(self.nodes) < before

    def lint(self) -> None:
        """RuntimeError where the graph makes no sense: order, users, names, missing attributes."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but "
                        "was used as an argument! If you are copying nodes from another graph, "
                        "make sure to use ``arg_transform`` on node_copy() to remap values"
                    )
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
                if node not in used.users:
                    raise RuntimeError(f"Node '{used}' does not know its user '{node}'")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        if self.owning_module is None or node.op not in ("get_attr", "call_module"):
            return
        found, path = self.owning_module, str(node.target)
        for part in path.split("."):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Node {node} target {path} references nonexistent attribute {part} of {found}"
                )
            found = getattr(found, part)
        if node.op == "call_module" and not isinstance(found, taeda.nn.Module):
            raise RuntimeError(
                f"Node {node} target {path} does not reference an nn.Module but {type(found)}"
            )

    # --- text ---

    def python_code(self, root_module: str, *, verbose: bool = False, **kwargs: Any) -> PythonCode:
        """The source of a function that runs the graph; `root_module` names the module in it."""
        namespace = _Namespace()
        shown = {node: node._repr_fn for node in self.nodes}
        for node in self.nodes:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(
                self.nodes, root_module, namespace, verbose=verbose, **kwargs
            )
        finally:
            for node, function in shown.items():
                node._repr_fn = function

    def __str__(self) -> str:
        lines = (f"\n    {node.format_node()}" for node in self.nodes)
        return f"graph():{''.join(lines)}"

    def print_tabular(self) -> None:
        """Prints the nodes as a table, laid out as the tabulate package lays it out."""
        rows: list[tuple[str, ...]] = [("opcode", "name", "target", "args", "kwargs")]
        rows += [tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes]
        widths = [max(len(head) + 2, *map(len, cells)) for head, *cells in zip(*rows)]
        rows.insert(1, tuple("-" * width for width in widths))
        for row in rows:
            print("  ".join(c.ljust(width) for c, width in zip(row, widths)).rstrip())

    def set_codegen(self, codegen: CodeGen) -> None:
        """Replaces what writes the code."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Installs a function that changes the lines of code; `make_transformer` gets the one
        before, or None. The result can be used as a context manager that takes it back."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        return _restoring(self._codegen, before)


@contextmanager
def _restoring(codegen: CodeGen, before: Any) -> Iterator[None]:
    try:
        yield
    finally:
        codegen._body_transformer = before


class _InsertPoint:
    """Where new nodes go: from its construction until the end of its block."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]):
        self.graph, self.before, graph._insert = graph, graph._insert, new_insert

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None:
        self.graph._insert = self.before


last_uses = _codegen.last_uses
