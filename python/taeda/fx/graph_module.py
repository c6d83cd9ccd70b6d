"""GraphModule: a module whose forward is the code of a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import taeda
from taeda import _missing
from taeda.fx._namespace import _custom_builtins
from taeda.fx.graph import Graph, PythonCode, _PyTreeCodeGen
from taeda.nn import Module

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = itertools.count()


def _exec_with_source(src: str, globals: dict[str, Any]) -> None:
    """Runs source text so that tracebacks show its lines."""
    key = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[key] = (len(src), None, [line + "\n" for line in src.splitlines()], key)
    exec(compile(src, key, "exec", dont_inherit=True), globals)


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: Any = None) -> Callable:
    names = dict(globals)
    _exec_with_source(src, names)
    return names["forward"]


def _format_import_block(globals: dict[str, Any]) -> str:
    """The statements that import what the code needs besides the names all code has."""
    return "\n".join(
        sorted(
            f"from {value.__module__} import {value.__qualname__} as {name}"
            for name, value in globals.items()
            if name not in _custom_builtins
        )
    )


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """What pickles of GraphModules call."""
    names: dict[str, Any] = {name: builtin.obj for name, builtin in _custom_builtins.items()}
    _exec_with_source(f"{import_block}\n{body.get('_code') or body['code']}", names)
    return _deserialize_graph_module(names["forward"], body)


class _CodeOnlyModule(Module):
    """A GraphModule's attributes with its forward as a plain function."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(
    forward: Callable, body: dict[str, Any], graph_module_cls: type | None = None
) -> Module:
    """Traces `forward` again, with all modules whole."""
    from taeda.fx._symbolic_trace import Tracer

    tracer_cls: Any = body.get("_tracer_cls") or Tracer

    class KeepModules(tracer_cls):
        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    kind = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})
    root = kind(body)
    graph = KeepModules().trace(root, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_cls
    if body.get("_in_spec") is not None:
        from taeda.fx.graph import _PyTreeInfo

        names = body["_orig_args"]
        graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, body["_in_spec"], body["_out_spec"]))
    result = _make_graph_module(
        root, graph, body.get("_graphmodule_cls_name", "GraphModule"), graph_module_cls
    )
    for name, value in body.items():
        if not hasattr(result, name):
            setattr(result, name, value)
    return result


def _parent(module: Module, path: str) -> tuple[Module, str]:
    """The module that has an attribute with a path, made of empty modules where there is none."""
    *prefix, name = path.split(".")
    for item in prefix:
        found = getattr(module, item, None)
        if found is None:
            found = Module()
            setattr(module, item, found)
        module = found
    return module, name


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Sets the attribute with a path; tensors become buffers."""
    owner, name = _parent(to_module, target)
    if isinstance(from_obj, taeda.Tensor) and not isinstance(from_obj, taeda.nn.Parameter):
        owner.register_buffer(name, from_obj)
    else:
        setattr(owner, name, from_obj)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Gives a module the attribute of another one that has a path."""
    *prefix, name = target.split(".")
    for item in prefix:
        source, found = getattr(from_module, item), getattr(to_module, item, None)
        if source is found:
            return  # they share the submodule already
        if found is None:
            found = Module()
            setattr(to_module, item, found)
        from_module, to_module = source, found
    _assign_attr(getattr(from_module, name), to_module, name)


def _get_attr(model: Module, attr_name: str) -> Any:
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _get_attr_via_attr_list(model: Any, attr_list: list[str]) -> Any:
    for name in attr_list:
        model = getattr(model, name)
    return model


def _has_attr(model: Any, attr_name: str) -> bool:
    for name in attr_name.split("."):
        if not hasattr(model, name):
            return False
        model = getattr(model, name)
    return True


def _del_attr(model: Module, attr_name: str) -> None:
    *prefix, name = attr_name.split(".")
    delattr(_get_attr_via_attr_list(model, prefix), name)


def _make_graph_module(
    root: Any, graph: Graph, class_name: str = "GraphModule", graph_module_cls: Any = None
) -> GraphModule:
    return (graph_module_cls or GraphModule)(root, graph, class_name)


class _WrappedCall:
    """Calls a module; what fails in generated code is shown with its lines."""

    def __init__(self, cls: type, cls_call: Callable | None):
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[misc, arg-type]
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            if "eval_with_key" not in frame.filename or frame.lineno is None:
                raise
            lines, at = linecache.getlines(frame.filename), frame.lineno
            before, behind = "".join(lines[max(at - 2, 0) : at]), "".join(lines[at : at + 2])
            mark = "~" * len(frame.line or "") + "~~~ <--- HERE"
            print(
                f"{traceback.format_exc()}\nCall using an FX-traced Module, line {at} of the "
                f"traced Module's generated forward function:\n{before}\n{mark}\n{behind}",
                file=sys.stderr,
            )
            raise error.with_traceback(None)  # noqa: B904


class GraphModule(Module):
    """A module made of a graph: ``forward`` is its code, ``graph`` can be edited.

    `root` has the parameters and submodules that the graph names: a module, or a dictionary of them
    by path. After the graph was edited in place, ``recompile`` makes the code anew.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each object has a class of its own, as forward is set on it.
        base = next(t for t in cls.__mro__ if t.__qualname__.split(".")[-1] != "GraphModuleImpl")

        class GraphModuleImpl(base):  # type: ignore[misc, valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        paths = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            if isinstance(root, _CodeOnlyModule):
                for named in (root.named_children, root.named_buffers, root.named_parameters):
                    for name, _ in named():  # type: ignore[operator]
                        _copy_attr(root, self, name)
            for path in paths:
                _copy_attr(root, self, str(path))
        elif isinstance(root, dict):
            for path in sorted(map(str, paths), key=lambda path: path.count(".")):
                if path not in root:
                    raise RuntimeError(
                        f"Node referenced target {path} but that target was not provided in "
                        "``root``!"
                    )
                _assign_attr(root[path], self, path)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        local = "<locals>" in getattr(graph._tracer_cls, "__qualname__", "")
        self._tracer_cls = None if local else graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        self._replace_hooks: list[Callable] = []
        self._create_node_hooks: list[Callable] = []
        self._erase_node_hooks: list[Callable] = []
        self._deepcopy_hooks: list[Callable] = []

    __jit_unused_properties__ = ["graph"]

    @property
    def graph(self) -> Graph:
        """The graph; assigning another one makes the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source text of ``forward``."""
        return self._code

    def recompile(self) -> PythonCode:
        """Makes ``forward`` of the graph as it is now."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._orig_args, self._in_spec, self._out_spec = codegen.pytree_info
        made = self._graph.python_code(root_module="self")
        self._code, self._lineno_map = made.src, made._lineno_map
        self._prologue_start = made._prologue_start
        cls: Any = type(self)
        cls.forward = _forward_from_src(made.src, made.globals)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))

            def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
                return self._wrapped_call(self, *args, **kwargs)

            cls.__call__ = call_wrapped
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return made

    # --- submodules ---

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a module at a path, with empty modules on the way; whether that was possible."""
        found: Any = self
        *prefix, name = target.split(".")
        for item in prefix:
            if getattr(found, item, None) is None:
                setattr(found, item, Module())
            found = getattr(found, item)
            if not isinstance(found, Module):
                return False
        found.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Deletes the submodule at a path; whether there was one."""
        *prefix, name = target.split(".")
        owner: Any = self
        for item in prefix:
            owner = getattr(owner, item, None)
            if not isinstance(owner, Module):
                return False
        if not isinstance(getattr(owner, name, None), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Deletes the submodules that the graph neither calls nor reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            path = str(node.target)
            used.update(itertools.accumulate(path.split("."), lambda a, b: f"{a}.{b}"))
            if node.op == "call_module" and _has_attr(self, path):
                used.update(f"{path}.{n}" for n, _ in self.get_submodule(path).named_modules() if n)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # --- copies ---

    def __reduce__(self) -> tuple:
        made = self.recompile()
        body = {name: value for name, value in vars(self).items() if name != "_graph"}
        return reduce_graph_module, (body, _format_import_block(made.globals))

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict) -> GraphModule:
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        body = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(result, body, body.__dict__["_graph"])
        result.__class__.__name__ = type(self).__name__
        for name, value in body.__dict__.items():
            if name.endswith("_hooks"):
                result.__dict__[name] = value
        result.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in result.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(result, name, value)
        for hook in self._deepcopy_hooks:
            hook(result)
        return result

    def __copy__(self) -> GraphModule:
        result = _make_graph_module(self, self.graph)
        result.meta = getattr(self, "meta", {})
        return result

    # --- text ---

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Writes the module as a package, for ``from FOLDER import MODULE_NAME``.

        Layers whose repr makes them anew are lines of its ``module.py``; others, and all values,
        are files beside it.
        """
        from ._to_folder import to_folder

        to_folder(self, folder, module_name)

    def print_readable(self, print_output: bool = True, *args: Any, **kwargs: Any) -> str:
        """The code as a class, with those of submodules, and with shapes where they are known."""
        code = self.graph.python_code("self", verbose=True).src.lstrip("\n")
        text = f"class {self._get_name()}(torch.nn.Module):\n{code}".replace("\n", "\n    ")
        for child in self.children():
            if isinstance(child, GraphModule):
                text += "\n" + child.print_readable(print_output=False).replace("\n", "\n    ")
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def _replicate_for_data_parallel(self) -> GraphModule:
        replica = copy.copy(self)
        object.__setattr__(replica, "_is_replica", True)
        return replica

    # --- hooks ---

    def _register_replace_node_hook(self, f: Callable) -> None:
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable) -> None:
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable) -> None:
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable) -> None:
        self._erase_node_hooks.remove(f)

    @contextmanager
    def _set_replace_hook(self, f: Callable) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


__getattr__, __dir__ = _missing.attributes(__name__)
