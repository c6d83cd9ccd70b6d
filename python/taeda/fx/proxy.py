"""Proxy: stands for a value while a program is traced and records what is done with it."""

from __future__ import annotations

import collections
import copy
import dis
import enum
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import CodeType, FrameType
from typing import Any

import taeda
from taeda import _missing
from taeda._ops import OpOverload
from taeda.fx._names import is_tensor_member
from taeda.fx.graph import Graph, magic_methods, reflectable_magic_methods
from taeda.fx.node import Argument, Node, Target, base_types, map_aggregate, map_arg
from taeda.overrides import is_tensor_method_or_property

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


class Scope:
    """The module whose forward is being traced: its path and type."""

    def __init__(self, module_path: str, module_type: Any):
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Changes a scope into another one for a block."""

    def __init__(self, scope: Scope, current_scope: Scope):
        self._scope, self._before = scope, copy.copy(scope)
        vars(scope).update(vars(current_scope))

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exc: object) -> None:
        vars(self._scope).update(vars(self._before))


class TraceError(ValueError):
    """The program does what a trace cannot record."""


def _user_stack() -> str:
    """The stack from the outermost forward on, without the tracer's own frames."""
    frames = [f for f in traceback.extract_stack() if "taeda/fx/" not in f.filename]
    start = next((i for i, frame in enumerate(frames) if frame.name == "forward"), len(frames))
    return "".join(traceback.format_list(frames[start:])).strip()


def _no_proxy_in_key(node: Node) -> Node:
    raise RuntimeError(
        f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}"
    )


class TracerBase:
    """What proxies record into; `Tracer` is the one for programs."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: collections.OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple,
        kwargs: dict,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Appends a node; subclasses check or change here what is recorded."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = _user_stack() or None
        return node

    def proxy(self, node: Node) -> Proxy:
        """What stands for a node's result."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple,
        kwargs: dict,
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Records an operation on proxies and other values, and gives the proxy of its result."""
        node_args, node_kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, node_args, node_kwargs, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """A value as a node's argument: nodes for proxies, also in containers."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(item) for key, item in a.items()}
        if isinstance(a, slice | range):
            return type(a)(*(self.create_arg(i) for i in (a.start, a.stop, a.step)))
        if isinstance(a, OpOverload):
            return a
        if is_dataclass(a) and not isinstance(a, type):
            kwargs = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", type(a), (), kwargs)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        return key if isinstance(key, str) else map_arg(self.create_arg(key), _no_proxy_in_key)

    def to_bool(self, obj: Proxy) -> bool:
        """The truth of a proxy, which is not known."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """The items of a proxy, whose number is not known."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. Move the loop into a function "
            "that torch.fx.wrap keeps whole, or index the proxy with a known number of indices"
        )

    def keys(self, obj: Proxy) -> Any:
        """The result of a proxy's keys()."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends to a graph that exists already."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: object) -> None:
    """What a traced ``assert`` calls."""
    if not x:
        raise AssertionError("Assertion failed")


def _instruction(frame: FrameType) -> tuple[list[dis.Instruction], int]:
    """The instructions of a frame's code and the index of the one that runs."""
    found = _instructions(frame.f_code)
    return found, next(i for i, each in enumerate(found) if each.offset >= frame.f_lasti)


def _instructions(code: CodeType) -> list[dis.Instruction]:
    return list(dis.get_instructions(code))


def _calling_frame() -> FrameType:
    frame = sys._getframe(2)
    assert frame is not None
    return frame


def _starts_assert(frame: FrameType) -> bool:
    """Whether the truth that the frame asks for decides an ``assert``."""
    found, at = _instruction(frame)
    if not found[at].opname.startswith("POP_JUMP") or "IF_TRUE" not in found[at].opname:
        return False
    return found[at + 1].opname in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")


class Proxy:
    """Stands for the result of a node: operators, methods and functions on it append nodes.

    Its truth, length and items are not known while tracing; they raise.

    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> (x + 1).sum().node
    sum_1
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)  # recorded once it is used, as most are methods that are called

    def __getstate__(self) -> dict:
        return self.__dict__

    def __setstate__(self, state: dict) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict) -> Proxy:
        copied = Proxy.__new__(type(self))
        copied.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return copied

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator:
        instructions, at = _instruction(_calling_frame())
        if instructions[at].opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(instructions[at].argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _starts_assert(_calling_frame()):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Recorded as a call; what ``**proxy`` asks for."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want "
            "this call to be recorded, please call torch.fx.wrap('len') at "
            "module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        tracers: dict[TracerBase, None] = {}
        kwargs = kwargs or {}

        def note(value: Any) -> None:
            if isinstance(value, cls):
                tracers[value.tracer] = None

        map_aggregate((args, kwargs), note)
        if len(tracers) != 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while "
                f"trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        name = getattr(orig_method, "__name__", None)
        if name is not None and (
            is_tensor_member(orig_method) or is_tensor_method_or_property(orig_method)
        ):
            return tracer.create_proxy("call_method", name, args, kwargs)
        if name is not None:
            name = tracer.graph._target_to_str(name)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


class Attribute(Proxy):
    """An attribute of a proxy: recorded as a call of a method, or of getattr when it is used."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The call of getattr."""
        if self._node is None:
            arguments = (self.root, self.attr)
            self._node = self.tracer.create_proxy("call_function", getattr, arguments, {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter; its shape, size and number of dimensions are known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any):
        super().__init__(node, tracer)
        if not isinstance(param, taeda.nn.Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.ndim

    def size(self, *args: Any) -> Any:
        """The parameter's size."""
        return self.param.size(*args)

    def dim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.dim()

    def numel(self) -> int:
        """The parameter's number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The parameter's number of elements."""
        return self.param.nelement()


def _operator_method(name: str) -> Callable[..., Any]:
    target = getattr(operator, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    method.__name__ = f"__{name.strip('_')}__"
    return method


def _reflected_method(name: str) -> Callable[..., Any]:
    target = getattr(operator, name)

    def method(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    method.__name__ = f"__r{name.strip('_')}__"
    return method


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator_method(_name))
for _name in reflectable_magic_methods:
    if _name not in ("getitem", "div"):
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected_method(_name))

__getattr__, __dir__ = _missing.attributes(__name__)
