"""Tracer: runs a program on proxies and keeps what they record as a graph."""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import taeda
from taeda import ScriptObject  # noqa: F401 - torch_geometric takes it from here
from taeda.fx._compatibility import compatibility  # noqa: F401
from taeda.fx._names import is_torch_module
from taeda.fx._patching import (
    _autowrap_check,
    _create_wrapped_func,
    _create_wrapped_method,
    _find_proxy,
    _maybe_revert_all_patches,  # noqa: F401
    _new_patcher,
    _Patcher,
)
from taeda.fx.graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from taeda.fx.graph_module import GraphModule, _make_graph_module
from taeda.fx.node import Argument, base_types
from taeda.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from taeda.nn import Module
from taeda.utils import _pytree as pytree

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_orig_module_call: Callable = Module.__call__
_orig_module_getattr: Callable = Module.__getattr__
_proxyable_classes: dict[type, None] = {}
_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """Metaclass of classes whose construction from proxies is recorded as a call."""

    def __init__(cls, name: str, bases: tuple, attrs: dict):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs) if is_fx_tracing() else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """What stands in ``concrete_args`` for values that are not known."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """One whose attributes the placeholder takes over."""

    def __init__(self, ph_key: str | None = None):
        self.ph_key = ph_key


def _transfer_attrs(fr: object, to: object) -> None:
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _patch_function(fn: FunctionType, nargs: int) -> FunctionType:
    """`fn` as a function of positional arguments alone: `*args` and `**kwargs` are two of them."""
    code = fn.__code__.replace(
        co_argcount=nargs,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=fn.__code__.co_flags & ~HAS_VARSTUFF,
    )
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def _annotation(function: Callable, name: str) -> Any:
    """The type that a function gives an argument, or "return"; None for Any and unknown names."""
    kind = inspect.get_annotations(function).get(name)
    if isinstance(kind, str):
        try:
            kind = eval(kind, getattr(function, "__globals__", {}))
        except Exception:  # a name that only type checkers know
            return None
    return None if kind is Any else kind


def _default(parameter: inspect.Parameter) -> tuple:
    return () if parameter.default is inspect.Parameter.empty else (parameter.default,)


class Tracer(TracerBase):
    """Traces programs. Subclasses say which modules stay whole and how calls are recorded.

    >>> class Whole(torch.fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return True
    >>> model = nn.Sequential(nn.Sequential(nn.Linear(2, 3)))
    >>> [node.op for node in Whole().trace(model).nodes]
    ['placeholder', 'call_module', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ):
        found = [value for module in autowrap_modules for value in _public(module)]
        self._autowrap_function_ids = {id(f) for f in (*found, *autowrap_functions)}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    def get_fresh_qualname(self, prefix: str) -> str:
        """`prefix` with a number that the root has no attribute for."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # --- values ---

    def create_arg(self, a: Any) -> Argument:
        """A value as a node's argument; parameters, buffers and tensors become get_attr nodes."""
        if isinstance(a, taeda.nn.Parameter):
            return self._attribute(_path(self.root.named_parameters(), a, "parameter"))
        if isinstance(a, taeda.Tensor | Module):
            named = self.root.named_modules if isinstance(a, Module) else self.root.named_buffers
            for name, found in named():
                if found is a:
                    return self._attribute(name)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            items = tuple(self.create_arg(item) for item in a)
            return self.create_node("call_function", type(a), items, {})
        if isinstance(a, taeda.Tensor):
            if a not in self.tensor_attrs:
                self.tensor_attrs[a] = self._keep(a, "_tensor_constant")
            return self._attribute(self.tensor_attrs[a])
        if type(a) in _proxyable_classes:
            return self._attribute(self._keep(a, f"_{type(a).__name__}_constant_"))
        return super().create_arg(a)

    def _attribute(self, path: str) -> Any:
        return self.create_node("get_attr", path, (), {})

    def _keep(self, value: Any, prefix: str) -> str:
        """Makes a value an attribute of the root."""
        name = self.get_fresh_qualname(prefix)
        setattr(self.root, name, value)
        return name

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What modules give for an attribute while they are traced: proxies for parameters."""
        if isinstance(attr_val, taeda.nn.Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, taeda.Tensor):
            named = self.root.named_buffers()
        else:
            return attr_val
        path = next((name for name, found in named if found is attr_val), None)
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            more: dict[str, Any] = {}
            takes = inspect.signature(self.create_proxy).parameters  # a subclass may lack it
            if self.param_shapes_constant and "proxy_factory_fn" in takes:
                more["proxy_factory_fn"] = lambda n: ParameterProxy(self, n, path, attr_val)
            parameter_proxy_cache[path] = self.create_proxy("get_attr", path, (), {}, **more)
        return parameter_proxy_cache[path]

    # --- modules ---

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of a module are recorded whole: by default, those of torch.nn."""
        module = type(m).__module__
        inside = is_torch_module(module) and module.partition(".")[2].startswith(("nn", "ao.nn"))
        return inside and not isinstance(m, taeda.nn.Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The path of a submodule of the root; NameError for others."""
        if not self.submodule_paths:
            return _path(self.root.named_modules(), mod, "module")
        if mod not in self.submodule_paths:
            raise NameError("module is not installed as a submodule")
        return self.submodule_paths[mod]

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """What a call of a module does: records it, or traces into `forward`."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            self.module_stack.popitem()
        return result

    # --- arguments ---

    def create_args_for_root(
        self, root_fn: Callable, is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable, list]:
        """The function to call and its arguments: placeholders, and the concrete ones."""
        function: Any = inspect.unwrap(root_fn)
        code, signature = function.__code__, inspect.signature(function)
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        if is_module and count == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        own = names[int(is_module) : count]
        args: list[Any] = [self.root] if is_module else []
        if isinstance(concrete_args, tuple):
            if code.co_flags & HAS_VARSTUFF and count == 1 and concrete_args:
                return root_fn, [*args, *self._numbered_placeholders(concrete_args)]
            if len(own) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(own)} arguments but got {len(concrete_args)} "
                    "concrete arguments"
                )
            concrete_args = dict(zip(own, concrete_args))
        starred, rest = [], iter(names[count:])
        for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                starred.append(stars + next(rest))
        for name in own + starred:
            args.append(self._proxy_placeholder(name, concrete_args, signature, function))
        if code.co_kwonlyargcount or starred:
            root_fn = _patch_function(root_fn, len(args))  # type: ignore[arg-type]
        flat, spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children()):
            return root_fn, args
        return self._on_leaves(root_fn, names[:count], spec), flat

    def _numbered_placeholders(self, concrete_args: tuple) -> list[Proxy]:
        """Placeholders for the items of `*args`."""
        found = []
        for index, value in enumerate(concrete_args):
            found.append(self.create_proxy("placeholder", f"input_{index}", (), {}))
            if isinstance(value, PHBase) and value is not PH:
                _transfer_attrs(fr=value, to=found[-1].node)
        return found

    def _on_leaves(self, function: Callable, names: list[str], spec: Any) -> Callable:
        """`function` on the leaves of its arguments, giving the leaves of its result."""
        self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, spec, None))

        def flattened(*leaves: Any) -> list:
            result = function(*pytree.tree_unflatten(list(leaves), spec))
            out, out_spec = pytree.tree_flatten(result)
            codegen = self.graph._codegen
            assert isinstance(codegen, _PyTreeCodeGen)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return out

        return flattened

    def _proxy_placeholder(
        self, name: str, concrete_args: dict | None, sig: inspect.Signature, function: Callable
    ) -> Any:
        """The placeholder of an argument, or its concrete value with placeholders in it."""
        default = () if name[0] == "*" else _default(sig.parameters[name])
        if concrete_args is None or name not in concrete_args:
            kind = _annotation(function, name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def replace(value: Any) -> Any:
            nonlocal count
            count += 1
            proxy = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                if value is not PH:
                    _transfer_attrs(fr=value, to=proxy.node)
                return proxy
            self._assert_value(name, proxy, value)
            return value

        return pytree.tree_map(replace, concrete_args[name])

    def _assert_value(self, name: str, proxy: Proxy, value: Any) -> None:
        """Records the check that an argument has the value that the trace was made with."""
        text = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, text), {})
        elif isinstance(value, base_types) and not isinstance(value, taeda.Tensor):
            taeda._assert(proxy == value, text)
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized "
                "function. It is up to the user to make sure that your inputs match the inputs "
                "you specialized the function with.",
                stacklevel=2,
            )

    # --- tracing ---

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function. Arguments in `concrete_args` have these values."""
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            return self._trace(root, concrete_args)
        finally:
            _is_fx_tracing_flag = before
            self.submodule_paths = None

    def _trace(self, root: Any, concrete_args: dict[str, Any] | None) -> Graph:
        is_module = isinstance(root, Module)
        function = root
        if is_module:
            self.root = root
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = Module()
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = _tensor_attributes(self.root)
        if not isinstance(function, FunctionType):
            raise AssertionError(f"expected a function written in Python, got {type(function)}")
        called, args = self.create_args_for_root(function, is_module, concrete_args)
        with _new_patcher() as patcher:
            self._patch(patcher, function.__globals__)
            kind = _annotation(inspect.unwrap(function), "return")
            result = (self.create_arg(called(*args)),)
            self.create_node("output", "output", result, {}, type_expr=kind)
        return self.graph

    def _patch(self, patcher: _Patcher, function_globals: dict[str, Any]) -> None:
        """Lets modules' calls and attributes come here, and wrapped functions be recorded."""
        cache: dict[str, Any] = {}

        @functools.wraps(_orig_module_getattr)
        def module_getattr(module: Module, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(module, attr), cache)

        @functools.wraps(_orig_module_call)
        def module_call(module: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(module, *args, **kwargs)

            found = getattr(getattr(module, "forward", module), "__globals__", {})
            _autowrap_check(patcher, found, self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        patcher.patch_method(Module, "__getattr__", module_getattr, deduplicate=False)
        patcher.patch_method(Module, "__call__", module_call, deduplicate=False)
        _patch_wrapped_functions(patcher)
        for found in (function_globals, *map(vars, self._autowrap_search)):
            _autowrap_check(patcher, found, self._autowrap_function_ids)

    def __deepcopy__(self, memo: dict) -> Tracer:
        copied = type(self).__new__(type(self))
        for name, value in vars(self).items():
            shared = name == "_autowrap_search"
            copied.__dict__[name] = copy.copy(value) if shared else copy.deepcopy(value, memo)
        return copied


def _public(module: ModuleType) -> list[Any]:
    return [f for name, f in vars(module).items() if not name.startswith("_") and callable(f)]


def _path(named: Any, wanted: Any, what: str) -> str:
    for name, found in named:
        if found is wanted:
            return name
    if what == "parameter":
        raise NameError("parameter is not a member of this module")
    raise NameError("module is not installed as a submodule")


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Lets the functions and methods that `wrap` has listed be recorded whole."""
    for (_, name), owner in list(_wrapped_fns_to_patch.items()):
        original = owner[name] if name in owner else getattr(builtins, name)
        patcher.patch(owner, name, _create_wrapped_func(original))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _tensor_attributes(root: Module) -> dict[Any, str]:
    """The tensors that are plain attributes of modules, and their paths."""
    return {
        value: f"{prefix}.{name}" if prefix else name
        for prefix, module in root.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, taeda.Tensor)
    }


_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []


def wrap(fn_or_name: Any) -> Any:
    """Lets traces record calls of a global function of this module whole; also a decorator.

    Called at the top level of a module, with the function or its name: ``wrap("len")``.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module or function as a GraphModule; arguments in `concrete_args` have these values.

    Control flow may depend on concrete arguments alone; `torch.fx.PH` stands in containers for
    values that are not known.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


@wrap
def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)
