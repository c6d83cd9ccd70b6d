"""A model's operators as TensorBoard's graph: what one run of it calls, in the modules' scopes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import taeda
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils._pytree import tree_leaves

from ._proto import shape, types

_PRODUCER = 22  # the version that TensorBoard's own writers say


def _node(name: str, op: str, inputs: list[str], sizes: Any = None, text: str = "") -> Any:
    attributes = []
    if text:
        attributes.append(_attribute("attr", types["AttrValue"](s=text)))
    if sizes is not None:
        shapes = types["AttrList"](shape=[shape(sizes)])
        attributes.append(_attribute("_output_shapes", types["AttrValue"](list=shapes)))
    return types["NodeDef"](name=name, op=op, input=inputs, attr=attributes)


def _attribute(key: str, value: Any) -> Any:
    return types["AttrEntry"](key=key, value=value)


class _Recorder(TorchDispatchMode):
    """Makes a node of each operator that runs, and of each tensor it meets for the first time."""

    _sees_table = True  # a linear layer as one node, not as a product with a transposed weight

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.nodes: list[Any] = []
        self.scopes = [type(model).__name__]
        self._names: dict[int, str] = {}
        self._alive: list[Any] = []  # an id names a tensor while it lives
        self._used: Counter = Counter()
        self._own = {id(t): n for n, t in _named_tensors(model)}

    def unique(self, name: str) -> str:
        self._used[name] += 1
        return name if self._used[name] == 1 else f"{name}_{self._used[name] - 1}"

    def name_of(self, tensor: Any) -> str:
        if id(tensor) not in self._names:
            own = self._own.get(id(tensor))
            op = "prim::GetAttr" if own else "prim::Constant"
            name = f"{self.scopes[-1]}/{own.rpartition('.')[2] if own else 'constant'}"
            self.add(tensor, self.unique(name), op, [])
        return self._names[id(tensor)]

    def add(self, tensor: Any, name: str, op: str, inputs: list[str], text: str = "") -> None:
        self._names[id(tensor)] = name
        self._alive.append(tensor)
        self.nodes.append(_node(name, op, inputs, tensor.shape, text))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = tree_leaves([args, kwargs or {}])
        inputs = [self.name_of(t) for t in given if isinstance(t, taeda.Tensor)]
        text = str({i: v for i, v in enumerate(args) if not tree_has_tensor(v)})
        op = func._schema.name if hasattr(func, "_schema") else str(func)
        for tensor in tree_leaves(result):
            if isinstance(tensor, taeda.Tensor):
                name = self.unique(f"{self.scopes[-1]}/{op.rpartition('::')[2]}")
                self.add(tensor, name, op, inputs, text)
        return result


def tree_has_tensor(tree: Any) -> bool:
    return any(isinstance(leaf, taeda.Tensor) for leaf in tree_leaves(tree))


def _named_tensors(model: Any) -> Iterator[tuple[str, Any]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


@contextmanager
def _scopes(model: Any, recorder: _Recorder) -> Iterator[None]:
    """Keeps ``recorder.scopes`` at the module that runs."""
    handles = []

    def watch(module: Any, name: str) -> None:
        def enter(*_: Any) -> None:
            recorder.scopes.append(f"{recorder.scopes[-1]}/{type(module).__name__}[{name}]")

        def leave(*_: Any) -> None:
            recorder.scopes.pop()

        handles.append(module.register_forward_pre_hook(enter))
        handles.append(module.register_forward_hook(leave))

    for name, module in model.named_modules():
        if name:
            watch(module, name.rpartition(".")[2])
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def graph(
    model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True
) -> tuple[Any, Any]:
    """(GraphDef, RunMetadata) of one run of ``model``, in evaluation mode without gradients."""
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    recorder = _Recorder(model)
    for i, leaf in enumerate(leaf for leaf in tree_leaves(args) if isinstance(leaf, taeda.Tensor)):
        recorder.add(leaf, f"input/input_{i}", "IO Node", [])
    training = model.training
    model.train(False)
    try:
        with taeda.no_grad(), _scopes(model, recorder), recorder:
            result = model(*args)
    finally:
        model.train(training)
    outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, taeda.Tensor)]
    sinks = [
        _node(f"output/output.{i + 1}", "IO Node", [recorder.name_of(tensor)], tensor.shape)
        for i, tensor in enumerate(outputs)
    ]
    if verbose:
        print("\n".join(f"{node.name} = {node.op}({node.input})" for node in recorder.nodes))
    stats = types["StepStats"](dev_stats=[types["DeviceStepStats"](device="/device:CPU:0")])
    versions = types["VersionDef"](producer=_PRODUCER)
    found = types["GraphDef"](node=recorder.nodes + sinks, versions=versions)
    return found, types["RunMetadata"](step_stats=stats)
