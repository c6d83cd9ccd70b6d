"""Node: one operation of a graph, with its arguments and the nodes that use its result."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import taeda
from taeda._ops import OpOverload
from taeda.fx._names import qualified_name as _get_qualified_name
from taeda.fx._names import type_repr as _type_repr
from taeda.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from taeda.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

base_types = (
    str, int, float, bool, complex, taeda.dtype, taeda.Tensor, taeda.device,
    taeda.memory_format, taeda.layout, OpOverload,
)  # fmt: skip
BaseArgumentTypes = Any
Argument = Any
Target = Callable[..., Any] | str

_legal_ops = dict.fromkeys(
    ["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"]
)
_BLOCKS = "profiler._record_function_"  # the operators that enter and leave a profile's blocks
_side_effectful_functions: set[Callable] = {taeda._assert, operator.setitem}


def has_side_effect(fn: Callable) -> Callable:
    """Registers a function whose calls are kept though nothing uses their results."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """`a` with `fn` applied to all leaves of its tuples, lists, dictionaries and slices."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(item, fn)) for key, item in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(item, fn) for item in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """`a` with `fn` applied to each Node in it."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _format_arg(arg: object, max_list_len: float = float("inf")) -> str:
    """An argument as printed graphs show it, nodes with a % in front."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, list | tuple):
        items = ", ".join(_format_arg(a) for i, a in enumerate(arg) if i < max_list_len)
        if len(arg) > max_list_len:
            items += f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{items}]"
        return f"({items},)" if len(arg) == 1 else f"({items})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(item)}" for key, item in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """An operation of a graph. ``op`` says of which kind, ``target`` what it names:

    - ``placeholder``: an input; `target` is its name, ``args`` its default value if it has one.
    - ``get_attr``: a parameter, buffer or other attribute of the module, by its path `target`.
    - ``call_function``: ``target(*args, **kwargs)``.
    - ``call_method``: the method `target` of ``args[0]``.
    - ``call_module``: the submodule with the path `target`.
    - ``output``: what the graph returns, ``args[0]``.

    ``users`` are the nodes that use the result, ``meta`` is a dictionary for passes.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple,
        kwargs: dict,
        return_type: Any = None,
    ) -> None:
        expected = "Callable" if op == "call_function" else "str"
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not one of {', '.join(_legal_ops)}")
        if not (callable(target) if op == "call_function" else isinstance(target, str)):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{taeda.typename(target)} but a {expected} is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = (
            graph,
            name,
            op,
            target,
            return_type,
        )
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._update_args_kwargs(args, kwargs)

    # --- the list of nodes ---

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Moves `x`, a node of the same graph, in front of this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._order = None

    def append(self, x: Node) -> None:
        """Moves `x`, a node of the same graph, behind this one."""
        self._next.prepend(x)

    @property
    def _sort_key(self) -> int:
        return self.graph._indices()[self]

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    # --- arguments ---

    @property
    def args(self) -> tuple:
        """The positional arguments; assigning them updates the users of the nodes among them."""
        return self._args

    @args.setter
    def args(self, a: tuple) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict:
        """The keyword arguments; assigning them updates the users of the nodes among them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict) -> None:
        self._update_args_kwargs(self._args, k)

    def _update_args_kwargs(self, args: tuple, kwargs: dict) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes[node] = node.users[self] = None
            return node

        self._args = map_arg(tuple(args), use)
        self._kwargs = map_arg(immutable_dict(kwargs), use)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, in order, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Puts `arg` in the place of ``args[idx]``."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Inserts `arg` in front of ``args[idx]``."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_arg: index {idx} is not between 0 and {len(self.args)}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Sets one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Puts `new_input` wherever `old_input` is among the arguments."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            hook(old=old_input, new=new_input.name, user=self)

        def replace(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self.args, replace), map_arg(self.kwargs, replace))

    _replace_input_with = replace_input_with

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Lets all users, or those that `delete_user_cb` accepts, use another node instead.

        Returns the nodes that were changed. `propagate_meta` copies ``meta``, which `replace_with`
        must not have yet.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("propagate_meta: replace_with already has .meta keys")
            replace_with.meta.update(self.meta)
        chosen = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in chosen:
            user.replace_input_with(self, replace_with)
        return chosen

    @property
    def _called(self) -> Any:
        return self.target

    # --- questions ---

    @property
    def stack_trace(self) -> str | None:
        """Where the operation was traced, if the tracer records that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node matters though nothing uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("is_impure() of a call_module needs the graph's module")
            module = self.graph.owning_module.get_submodule(self.target)
            return getattr(module, "_is_impure", False)
        if self.op != "call_function":
            return False
        if self.target in _side_effectful_functions or str(self.target).startswith(_BLOCKS):
            return True
        if isinstance(self.target, OpOverload):
            return self.target._schema.is_mutable
        return bool(impure_random and _is_random(self.target))

    def normalized_arguments(
        self,
        root: taeda.nn.Module,
        arg_types: tuple | None = None,
        kwarg_types: dict | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments by the callee's signature, defaults included; None without a signature."""
        from taeda.fx.operator_schemas import normalize_function, normalize_module

        keywords = normalize_to_only_use_kwargs
        if self.op == "call_function":
            return normalize_function(
                self._called, self.args, self.kwargs, arg_types, kwarg_types, keywords
            )
        if self.op == "call_module":
            return normalize_module(root, str(self.target), self.args, self.kwargs, keywords)
        return None

    # --- names ---

    def _rename(self, candidate: str) -> None:
        if candidate == self.name:
            return
        namespace = self.graph._graph_namespace
        self.name = namespace.create_name(candidate, None)
        namespace._rename_object(self, self.name)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        if isinstance(target, str):
            return target
        module = getattr(target, "__module__", None)
        if module in ("builtins", "_operator"):
            return f"{module.removeprefix('_')}.{target.__name__}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a line of the printed graph.

        With `placeholder_names` a placeholder is noted there, and its line is None.
        """
        kind = f"{_type_repr(self.type)} " if self.type else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        target = self._pretty_print_target(self.target)
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(target + (f": {kind.strip()}" if kind else ""))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={target}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        arguments = f"args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)}"
        return f"{head}[target={target}]({arguments})"


def _is_random(function: Any) -> bool:
    """Whether the operator's schema has a generator: it draws numbers."""
    name = getattr(function, "__name__", "")
    packet = getattr(taeda.ops.aten, name, None) if name.isidentifier() else None
    overloads = (getattr(packet, each) for each in packet.overloads()) if packet else ()
    return any(a.name == "generator" for o in overloads for a in o._schema.arguments)
