"""Graphs for the backends that programs give to torch.compile: a function is run once on fake
tensors, and what it does with them is recorded as a torch.fx.GraphModule.

As in PyTorch the graph takes the tensors that it reads, parameters among them, and gives a tuple.
Numbers, strings and sizes are as they were in the recorded run; a call with others is recorded
anew (`key`). What depends on values of tensors, or is no function of them, raises `NotRecorded`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor, fx
from taeda._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from taeda.nn import Module
from taeda.overrides import TorchFunctionMode
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

_PLAIN = (bool, int, float, complex, str, bytes, type(None), taeda.dtype, taeda.device)
#: What reads values, or has an effect that no graph has.
_REFUSED = frozenset(
    """
    __bool__ __int__ __float__ __index__ __complex__ __array__ __set__ __delitem__ allclose backward
    equal is_nonzero item numpy register_hook tolist
    """.split()
)
_OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "div": "truediv"}


class NotRecorded(Exception):
    """The function does what no graph says: it has to run as it is."""


def modules_of(function: Any) -> list[Module]:
    """The modules that a function has: itself, the one whose method it is, those in its closure."""
    owners = [function, getattr(function, "__self__", None)]
    for cell in getattr(function, "__closure__", None) or ():
        try:
            owners.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    code, names = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    owners += [names[name] for name in getattr(code, "co_names", ()) if name in names]
    return list({m: None for owner in owners if isinstance(owner, Module) for m in owner.modules()})


def _of_tensor(x: Tensor) -> tuple:
    strides = x.stride() if x.layout is taeda.strided else ()
    return type(x), x.dtype, x.device, x.shape, strides, x.requires_grad


def _plain_names(values: dict[str, Any]) -> tuple:
    return tuple((name, v) for name, v in values.items() if type(v) in _PLAIN)


def key(function: Any, leaves: list, spec: Any, modules: list[Module]) -> tuple:
    """What a recorded graph depends on: two calls of the same key have one graph."""
    found: list[Any] = [repr(spec), taeda.is_grad_enabled()]
    for x in leaves:
        if isinstance(x, Tensor):
            found.append(_of_tensor(x))
        else:
            found.append((type(x), x) if type(x) in _PLAIN else id(x))
    for module in modules:
        tensors = [*module._parameters.values(), *module._buffers.values()]
        found.append(_plain_names(vars(module)))
        found += [(id(x), *_of_tensor(x)) for x in tensors if x is not None]
    code, names = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    found.append(_plain_names({n: names[n] for n in getattr(code, "co_names", ()) if n in names}))
    cells = getattr(function, "__closure__", None) or ()
    found.append(_plain_names({str(i): _contents(cell) for i, cell in enumerate(cells)}))
    return tuple(found)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


class _Recorder(TorchFunctionMode):
    """Makes a node of every function of tensors that is called in its block."""

    def __init__(self, names: dict[int, str]) -> None:
        super().__init__()
        self.fake, self.graph = FakeTensorMode(allow_non_fake_inputs=True), fx.Graph()
        self.names = names  # id of a tensor -> what its placeholder is called
        self.inputs: list[Tensor] = []  # in the order of the placeholders
        self.nodes: dict[int, tuple[Any, fx.Node]] = {}  # id -> the tensor, which must live, node
        self.autocast = taeda.is_autocast_enabled("cpu")
        self.grad = taeda.is_grad_enabled()

    # --- tensors and their nodes ---

    def as_fake(self, x: Any) -> Any:
        """The fake form of a tensor that the function reads; its placeholder is made."""
        if not isinstance(x, Tensor) or isinstance(x, FakeTensor):
            return x
        fake = self.fake.from_tensor(x)
        if id(fake) not in self.nodes:
            nodes = self.graph.nodes
            first = next((n for n in nodes if n.op != "placeholder"), None)
            name = self.names.get(id(x), f"L_tensor_{len(self.inputs)}_")
            if first is None:
                node = self.graph.placeholder(name)
            else:
                with self.graph.inserting_before(first):
                    node = self.graph.placeholder(name)
            node.meta["example_value"] = fake
            self.inputs.append(x)
            self.nodes[id(fake)] = fake, node
        return fake

    def node_of(self, x: Any) -> Any:
        """The node of a tensor, anything else as it is."""
        if not isinstance(x, Tensor):
            return x
        found = self.nodes.get(id(self.as_fake(x)))
        if found is None:
            raise NotRecorded("a tensor comes from somewhere else than a function of tensors")
        return found[1]

    def _remember(self, result: Any, node: fx.Node) -> None:
        if isinstance(result, Tensor):
            self.nodes[id(result)] = result, node
            node.meta["example_value"] = result
        elif isinstance(result, list | tuple):
            for i, item in enumerate(result):
                if any(isinstance(x, Tensor) for x in tree_flatten(item)[0]):
                    self._remember(item, self.graph.call_function(operator.getitem, (node, i)))

    # --- calls ---

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _REFUSED:
            raise NotRecorded(f"{name.strip('_')} reads a tensor's values or changes more than one")
        if taeda.is_autocast_enabled("cpu") != self.autocast:
            raise NotRecorded("autocast is entered in the function")
        self._follow_grad_mode()
        args, kwargs = tree_map(self.as_fake, (args, kwargs or {}))
        result = func(*args, **kwargs)
        made = any(isinstance(x, Tensor) for x in tree_flatten(result)[0])
        if made or name == "__setitem__":
            inputs = tree_map(self.node_of, (args, kwargs))
            self._remember(result, self._call(func, name, *inputs))
        return result

    def _follow_grad_mode(self) -> None:
        """A node for no_grad and its like, which call no function of tensors."""
        if taeda.is_grad_enabled() != self.grad:
            self.grad = taeda.is_grad_enabled()
            self.graph.call_function(taeda._C._set_grad_enabled, (self.grad,))

    def _call(self, func: Any, name: str, args: tuple, kwargs: dict) -> fx.Node:
        if name == "__get__":
            return self.graph.call_function(getattr, (args[0], func.__self__.__name__))
        is_method = getattr(Tensor, name, None) is func
        if not is_method:
            return self.graph.call_function(func, args, kwargs)
        special = re.fullmatch(r"__(r?)(\w+?)__", name)
        if special and hasattr(operator, name):
            return self.graph.call_function(getattr(operator, name), args)
        if special and hasattr(operator, f"__{special[2]}__"):  # __rtruediv__
            unreflected = getattr(operator, f"__{special[2]}__")
            return self.graph.call_function(unreflected, args[::-1])
        if name in _OPERATORS and len(args) == 2 and not kwargs:
            return self.graph.call_function(getattr(operator, _OPERATORS[name]), args)
        return self.graph.call_method(name, args, kwargs)


class _Unchanged:
    """What modules hold, to see that a recorded run leaves it as it is, and to put it back."""

    def __init__(self, modules: list[Module]) -> None:
        self.found = [(m, d, dict(d)) for m in modules for d in (vars(m), m._buffers)]

    def restore(self) -> bool:
        """Whether anything had changed."""
        changed = False
        for _, now, before in self.found:
            same = now.keys() == before.keys() and all(now[k] is before[k] for k in before)
            if not same:
                now.clear()
                now.update(before)
                changed = True
        return changed


def _names(function: Any, args: tuple, kwargs: dict, modules: list[Module]) -> dict[int, str]:
    """What placeholders of arguments and of modules' tensors are called, as in PyTorch."""
    code = getattr(getattr(function, "forward", function), "__code__", None)
    words = list(code.co_varnames[: code.co_argcount]) if code else []
    words = words[1:] if words[:1] == ["self"] else words
    words += [f"args_{i}" for i in range(len(words), len(args))]
    found = {id(x): f"L_{name}_" for name, x in [*zip(words, args), *kwargs.items()]}
    for module in modules:
        for kind in ("parameters", "buffers"):
            for path, x in getattr(module, f"named_{kind}")():
                *owners, name = path.split(".")
                owner = "".join(f"modules_{part}_" for part in owners)
                found.setdefault(id(x), f"L_self_{owner}{kind}_{name}_")
    return found


class Recorded:
    """The graph of a call, as a GraphModule, and how it is called."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict, modules: list[Module]):
        recorder = _Recorder(_names(function, args, kwargs, modules))
        leaves, _ = tree_flatten((args, kwargs))
        before = _Unchanged(modules)
        try:
            with recorder.fake, recorder:
                result = function(*args, **kwargs)
        finally:
            changed = before.restore()
        if changed:
            raise NotRecorded("attributes of the module are set")
        flat, self._results = tree_flatten(result)
        self._constants = [None if isinstance(x, Tensor) else x for x in flat]
        self._is_tensor = [isinstance(x, Tensor) for x in flat]
        recorder._follow_grad_mode()
        recorder.graph.output(tuple(recorder.node_of(x) for x in flat if isinstance(x, Tensor)))
        places = {id(x): i for i, x in enumerate(leaves)}
        self._inputs = [places.get(id(x), x) for x in recorder.inputs]
        self.example_inputs = [recorder.fake.from_tensor(x) for x in recorder.inputs]
        self.module = fx.GraphModule(Module(), recorder.graph)

    def call(self, compiled: Callable, leaves: list) -> Any:
        """What the function gives, of a backend's result for the graph."""
        inputs = [leaves[x] if isinstance(x, int) else x for x in self._inputs]
        tensors = iter(compiled(*inputs))
        pairs = zip(self._is_tensor, self._constants)
        return tree_unflatten([next(tensors) if t else c for t, c in pairs], self._results)
