"""make_fx: a function's operators as a graph, as they run below autograd.

>>> from torch.fx.experimental.proxy_tensor import make_fx
>>> traced = make_fx(lambda x: (x * 2).relu())(torch.ones(3))
>>> [node.name for node in traced.graph.nodes]
['x_1', 'mul', 'relu', 'output']
>>> traced(torch.tensor([-1.0, 1.0]))
tensor([0., 2.])
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import ExitStack
from operator import getitem
from typing import Any

import taeda
from taeda import Tensor, _missing, strided
from taeda._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from taeda.fx._symbolic_trace import PH, Tracer
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node
from taeda.fx.proxy import Proxy
from taeda.nn import Module, Parameter
from taeda.overrides import TorchFunctionMode
from taeda.utils._mode_utils import no_dispatch
from taeda.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from taeda.utils._pytree import tree_flatten, tree_map

__all__ = ["get_proxy_mode", "make_fx"]


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    **_: Any,
) -> Callable[..., GraphModule]:
    """A function of `f`'s arguments that runs `f` on them and gives its operators as a module.

    Every operator is a node, those of a gradient that `f` computes too, with what it gives, as fake
    tensors, in its ``meta["val"]``. Other tensors than the arguments become attributes; those that
    `f` makes of Python's numbers and NumPy's arrays are copied from them in every run. What depends
    on values is as it was in this run.

    Args:
        decomposition_table: functions by operator, which run instead and are recorded.
        tracing_mode: real or fake, which run the operators on the arguments; symbolic raises
            NotImplementedError, as sizes are numbers.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")
    if tracing_mode == "symbolic":
        raise NotImplementedError("make_fx: sizes are numbers; use tracing_mode='real'")

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        tracer = _OperatorTracer()
        places: Any = tuple(tree_map(lambda leaf: PH, args))
        run = _run(f, args, tracer, decomposition_table or {})
        graph = tracer.trace(run, places)
        return GraphModule(tracer.root, graph, run.__wrapped__.__name__)  # type: ignore

    return wrapped


def _run(f: Callable, args: tuple, tracer: _OperatorTracer, table: dict) -> Callable:
    """A function of proxies that records what `f` does with `args`."""

    def run(*proxies: Any) -> Any:
        recorder = _Recorder(tracer, table)
        leaves = zip(tree_flatten(args)[0], tree_flatten(proxies)[0], strict=True)
        for value, proxy in leaves:
            recorder.remember(value, proxy.node)
            recorder.describe(proxy.node, value)
        with ExitStack() as modes:
            modes.enter_context(_Constants(recorder))
            modes.enter_context(recorder)
            result = f(*args)
        return tree_map(recorder.proxy_of, result)

    run.__wrapped__ = f if _has_names(f, len(args)) else _named(len(args))  # type: ignore
    return run


def _has_names(f: Any, count: int) -> bool:
    """Whether a function, or the one that it wraps, names as many arguments as there are."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    return (
        hasattr(f, "__name__")
        and code is not None
        and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        and code.co_argcount + code.co_kwonlyargcount == count
    )


def _named(count: int) -> Callable:
    names = ", ".join(f"arg{i}" for i in range(count))
    return eval(f"lambda {names}: None")


class _OperatorTracer(Tracer):
    """Records no modules: their operators are recorded."""

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        return attr_val

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, Parameter):
            if a not in self.tensor_attrs:
                self.tensor_attrs[a] = self._keep(a, "_param_constant")
            return self._attribute(self.tensor_attrs[a])
        return super().create_arg(a)


class _Recorder(TorchDispatchMode):
    """Makes a node of every operator."""

    def __init__(self, tracer: _OperatorTracer, table: dict[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self.tracer, self.table = tracer, table
        self.active: set[Any] = set()  # operators whose decompositions run
        self.nodes: dict[Any, Any] = {}
        self.kept: list[Any] = []  # so that no other tensor gets a known id
        self.fakes = FakeTensorMode()

    def remember(self, value: Any, node: Any) -> None:
        """Notes that a node stands for a tensor."""
        if isinstance(value, Tensor):
            self.nodes[id(value)] = self.nodes[_memory(value)] = node
            self.kept.append(value)

    def _fake_of(self, value: Any) -> Any:
        """What a tensor is without its values; others as they are."""
        if not isinstance(value, Tensor):
            return value
        if isinstance(value, FakeTensor):
            return value.detach()
        with no_dispatch():
            plain = value.detach()
        self.kept.append(plain)  # its memory too, which `value.data = ...` would give away
        return self.fakes.from_tensor(plain)

    def describe(self, node: Any, value: Any) -> None:
        """Puts what a node gives into its ``meta["val"]``: tensors without values."""
        leaves = tree_flatten(value)[0]
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        if tensors and all(x.layout is strided for x in tensors):
            node.meta["val"] = tree_map(self._fake_of, value)

    def node_of(self, value: Any) -> Any:
        """The node of a tensor, an attribute's for one that is not known; other values as is."""
        if not isinstance(value, Tensor):
            return value
        if id(value) not in self.nodes and _memory(value) not in self.nodes:
            proxy = self.tracer.create_arg(value)
            node = getattr(proxy, "node", proxy)
            self.remember(value, node)
            self.describe(node, value)
        return self.nodes.get(id(value)) or self.nodes[_memory(value)]

    def copy_constant(self, constant: Tensor, copied: Tensor) -> None:
        """Records that a tensor is a copy of one that the graph keeps."""
        attribute = self.node_of(constant)
        copy = taeda.ops.aten.lift_fresh_copy.default
        node = self.tracer.graph.create_node(
            "call_function", copy, (attribute,), name="lift_fresh_copy"
        )
        self.remember(copied, node)
        self.describe(node, copied)

    def proxy_of(self, value: Any) -> Any:
        """`node_of`, as a proxy."""
        node = self.node_of(value)
        return Proxy(node, self.tracer) if isinstance(node, Node) else node

    def _made_of(self, func: Any) -> Any:
        """The table's function for an operator; of those that PyTorch has not, the package's."""
        if func in self.table or func.namespace != "taeda":
            return self.table.get(func)
        from taeda import _decomp

        return _decomp.decomposition_table.get(func)

    def _decomposed(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """What the table's function gives. An operator that it is made of itself is recorded."""
        self.active.add(func)
        try:
            with self:
                return self._made_of(func)(*args, **kwargs)
        finally:
            self.active.discard(func)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._made_of(func) is not None and func not in self.active:
            result = self._decomposed(func, args, kwargs)
            if result is not NotImplemented:
                return result
        inputs = tree_map(self.node_of, args), tree_map(self.node_of, kwargs)
        result = func(*args, **kwargs)
        if func is taeda.ops.aten._local_scalar_dense.default:
            return result  # a number, which later nodes have as it is
        name = func._schema.name.partition("::")[2]
        node = self.tracer.graph.create_node("call_function", func, *inputs, name=name)
        if isinstance(result, list | tuple):
            for i, item in enumerate(result):
                if isinstance(item, Tensor):
                    part = self.tracer.graph.call_function(getitem, (node, i))
                    self.remember(item, part)
                    self.describe(part, item)
        self.remember(result, node)
        self.describe(node, result)
        return result


class _Constants(TorchFunctionMode):
    """Makes constants of the tensors that a program writes as numbers: torch.tensor([1., 2.])."""

    _MAKERS = frozenset(
        ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "new_tensor")
    )

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", None) not in self._MAKERS or self._reads_tensor(args, kwargs):
            return func(*args, **kwargs)
        with no_dispatch():
            made = func(*args, **kwargs)
            self.recorder.copy_constant(made.detach().clone(), made)
        return made

    @staticmethod
    def _reads_tensor(args: tuple, kwargs: dict) -> bool:
        """Whether the values are a tensor's, but for the one whose `new_tensor` is called."""
        read = args[1:] if args and isinstance(args[0], Tensor) and len(args) > 1 else args
        return any(isinstance(leaf, Tensor) for leaf in tree_flatten((read, kwargs))[0])


def _memory(tensor: Tensor) -> Any:
    """Where a tensor's elements are: what autograd saved is another object of the same ones."""
    if tensor.is_meta or not tensor.numel():
        return id(tensor)
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


def get_proxy_mode() -> TorchDispatchMode | None:
    """The recorder of the innermost make_fx that runs."""
    modes = _get_current_dispatch_mode_stack()
    return next((mode for mode in reversed(modes) if isinstance(mode, _Recorder)), None)


__getattr__, __dir__ = _missing.attributes(__name__)
