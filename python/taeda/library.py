"""torch.library: operators of a program's own, beside those of the table.

An operator that is registered here has a schema, runs through the same keys as the table's
(autograd, autocast, the profiler, __torch_dispatch__) and is found in torch.ops.
"""

from __future__ import annotations

import collections
import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, cast

from taeda import _C, _missing, _ops
from taeda._library import fake_context
from taeda._library import tags as _tags
from taeda._library.autograd import autograd_kernel
from taeda._library.custom_op import OPDEFS, CustomOpDef, check_dispatch_class, custom_op
from taeda._library.infer_schema import infer_schema
from taeda._library.opcheck import OpCheckError as _OpCheckError  # noqa: F401
from taeda._library.opcheck import opcheck

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_KEYS_OF_DEVICES = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}
# Keys of PyTorch's that calls do not pass here.
_KEYS_WITHOUT_KERNELS = (
    "ADInplaceOrView",
    "BackendSelect",
    "CompositeExplicitAutogradNonFunctional",
    "Conjugate",
    "FuncTorchBatchedDecomposition",
    "FuncTorchDynamicLayerBackMode",
    "FuncTorchDynamicLayerFrontMode",
    "FuncTorchGradWrapper",
    "Negative",
    "NestedTensor",
    "PreDispatch",
    "PythonDispatcher",
    "PythonTLSSnapshot",
    "SparseCPU",
    "SparseCsrCPU",
    "ZeroTensor",
)
_open: weakref.WeakSet[Library] = weakref.WeakSet()


def _never_met(key: str) -> bool:
    """Whether it is a key of PyTorch's for devices that taeda has not, or for autocast on them.

    Packages give kernels for all devices they know; these are never called.
    """
    from taeda._dispatch_keys import BACKENDS

    if key == "AutocastCUDA" or key.startswith("Quantized"):
        return True
    device = key.removeprefix("Autocast").removeprefix("Autograd")
    return device in BACKENDS and device not in _KEYS_OF_DEVICES.values()


# How many kernels libraries have given for an operator and a key: "aten::add.Tensor/CPU".
_implemented: collections.Counter[str] = collections.Counter()
# Kernels for operators that are not defined yet: name -> library, function, arguments of impl().
_waiting: dict[str, list[tuple[weakref.ref[Library], Callable, dict]]] = {}
_warned = False  # of a kernel that replaces one of the table's


def _forget(
    rules: list[tuple[str, type]],
    implemented: list[str],
    watched: list[tuple],
    fallbacks: list[str],
    tagged: list[str],
) -> None:
    while tagged:
        _tags.given.pop(tagged.pop(), None)
    while rules:
        _C._torch_dispatch_rules.pop(rules.pop(), None)
    while implemented:
        _implemented.subtract([implemented.pop()])
    while watched:
        _C._watch_shown(*watched.pop(), False)
    while fallbacks:
        key = fallbacks.pop()
        counts = import_module("taeda._dispatch_keys").FALLBACKS
        counts[key] -= 1
        if counts[key] == 0:
            del counts[key]
            if key not in _KEYS_WITHOUT_KERNELS and not _never_met(key):
                _C._set_key_fallback(key)


def _check_override(name: str, key: str) -> None:
    """Before an operator of the table gets a kernel: a warning, once for all, as in PyTorch."""
    global _warned
    found = _overload(name)
    if found._is_registered and found.namespace != "aten":
        return
    composite = _C._has_kernel(found, "CompositeImplicitAutograd")
    factory = _C._has_kernel(found, "CompositeExplicitAutograd")
    if composite or factory:
        _check_as_shown(found, key)
    if key == "Meta" and composite:
        raise RuntimeError(
            f"We should not register a meta kernel directly to the operator '{name}', because it "
            "has a CompositeImplicitAutograd kernel in core. Instead we should let the operator "
            "decompose, and ensure that we have meta kernels for the base ops that it decomposes "
            "into."
        )
    if key.startswith("Composite") and not _C._has_kernel(found, key):
        has = "one that stands for all" if composite or factory else "one for each device"
        warnings.warn(
            f"{name}: a kernel for {key} is never called, the operator has {has}", stacklevel=3
        )
    elif not _warned and _C._has_kernel(found, key):
        _warned = True
        warnings.warn(
            "Warning only once for all operators, other operators may also be overridden. "
            "Overriding a previously registered kernel for the same operator and the same "
            f"dispatch key\n  operator: {found._schema}\n  dispatch key: {key}",
            stacklevel=3,
        )


_KINDS = ("Implicit", "Explicit")


def _shown_by(op: Any) -> list[str]:
    """The operators whose calls a mode is shown as calls of this one."""
    import_module("taeda._library.aten")  # makes the spellings
    shown_by = import_module("taeda._library.spelling").shown_by
    composite = any(_C._has_kernel(op, f"Composite{kind}Autograd") for kind in _KINDS)
    return shown_by(op._schema.name.partition("::")[2], not composite)


_KEYS_AS_SHOWN = ("CPU", "CUDA", "Meta", "Autograd", "AutogradCPU")


def _check_as_shown(op: Any, key: str) -> None:
    """NotImplementedError where no call would come to the kernel."""
    if key in _KEYS_AS_SHOWN or not _shown_by(op):
        return
    raise NotImplementedError(
        f"Library.impl: {op.name()} is computed by other operators, whose calls are only shown as "
        f"its own: kernels for {', '.join(_KEYS_AS_SHOWN)} answer them, one for {key} would not"
    )


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """Stands for no kernel in Library.impl: the call goes on with the next key."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _name_of(op: Any) -> str:
    if isinstance(op, (_ops.OpOverload, CustomOpDef)):
        return op._qualname if isinstance(op, CustomOpDef) else op.name()
    if isinstance(op, _ops.OpOverloadPacket):
        return op._qualified_op_name
    if not isinstance(op, str):
        raise ValueError(f"expected an operator or its name, got {type(op)}")
    return op.removesuffix(".default")


class Library:
    """Registrations of one namespace: 'DEF' makes operators, 'IMPL' gives kernels to existing ones.

    They last as long as the object; `_destroy` (or the end of a `_scoped_library`) takes them back.

    >>> library = torch.library.Library("docs", "DEF")
    >>> library.define("plus_one(Tensor x) -> Tensor")
    'plus_one'
    >>> library.impl("plus_one", lambda x: x + 1, "CPU")
    >>> torch.ops.docs.plus_one(torch.zeros(2))
    tensor([1., 1.])
    """

    ns: str
    kind: str

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in ("prim", "prims"):
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        if kind == "DEF" and any(o.ns == ns and o.kind == "DEF" and o.m for o in _open):
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please "
                "put all of your definitions in a single TORCH_LIBRARY block. If you were trying "
                "to specify implementations, consider using TORCH_LIBRARY_IMPL (which can be "
                "duplicated): here Library(ns, 'FRAGMENT') or Library(ns, 'IMPL')."
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self.m: Any = _C._Library(ns)
        self._defined: set[str] = set()  # names that torch.ops may keep
        self._rules: list[tuple[str, type]] = []  # keys of _C._torch_dispatch_rules
        self._implemented: list[str] = []  # keys of _implemented
        self._watched: list[tuple] = []  # operators, keys, whose calls may be shown as theirs
        self._fallbacks: list[str] = []  # keys of _dispatch_keys.FALLBACKS
        self._tagged: list[str] = []  # keys of _tags.given
        weakref.finalize(self, _forget, *self._registered())
        _open.add(self)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Makes an operator of this namespace; returns its name, without the overload's."""
        if self.kind == "IMPL":
            name = schema.partition("(")[0]
            raise RuntimeError(
                f'def("{name}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block, a '
                "Library(ns, 'IMPL'); define it by Library(ns, 'DEF') or 'FRAGMENT'"
            )
        listed = _tags.checked(tags)
        qualified = self.m.define(schema)
        name = qualified.partition("::")[2].partition(".")[0]
        self._defined.add(name)
        if listed:
            _tags.given[qualified] = listed
            self._tagged.append(qualified)
        for library, function, named in _waiting.pop(qualified, ()):
            if (living := library()) is not None and living.m is not None:
                living.impl(qualified, function, **named)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Gives an operator its kernel for a dispatch key: 'CPU', 'Meta', 'Autograd', ...

        With `with_keyset` the kernel is given the call's DispatchKeySet first, of which it passes
        a part to `OpOverload.redispatch`. The newest kernel of a key answers; with `allow_override`
        false a second one is a RuntimeError. Namespace "aten" is that of the operators of the
        table, which can be given other kernels until the library ends, which warns once. An
        operator that is defined later gets its kernel then, but for 'Meta'.
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        name = self._qualify(_name_of(op_name))
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        implemented = f"{name.removesuffix('.default')}/{key}"
        if not allow_override and _implemented[implemented] > 0:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python "
                f"overriding {name.partition('::')[2]}'s behavior for {key} dispatch key and "
                f"{self.ns} namespace."
            )
        if key in _KEYS_WITHOUT_KERNELS:
            raise NotImplementedError(
                f"Library.impl: {name} cannot be given a kernel for {key}: taeda has no such key "
                "between a call and its kernel. Autograd and the devices' keys can have one"
            )
        if self.ns != "aten" and key != "Meta" and _found(name) is None:
            import_module("taeda._dispatch_keys")._dispatch_key_parse(key)
            given = {"dispatch_key": key, "with_keyset": with_keyset}
            later = _waiting.setdefault(name.removesuffix(".default"), [])
            later.append((weakref.ref(self), fn, given))
            return
        if _never_met(key):
            _overload(name)
        elif fn is fallthrough_kernel:
            self.m.fallthrough(name, key)
        else:
            _check_override(name, key)
            self._watch(name, key)
            self.m.impl(name, key, fn, with_keyset, getattr(fn, "_where_recorded", False))
        _implemented[implemented] += 1
        self._implemented.append(implemented)

    def _watch(self, name: str, key: str) -> None:
        """Calls that are shown as calls of this operator of the table's go to its kernel, too."""
        op = _overload(name)
        if self.ns != "aten" or key not in _KEYS_AS_SHOWN or not (names := _shown_by(op)):
            return
        self._watched.append((op, key, names))
        _C._watch_shown(op, key, names, True)

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """What answers for operators that programs have registered and that have no kernel for the
        key, nor one for all devices: fn(op, *args, **kwargs), with `with_keyset` fn(keys, op, ...).
        `fallthrough_kernel` passes the key by. The library's namespace is "_"."""
        key = dispatch_key or self.dispatch_key
        if not key:
            raise AssertionError("dispatch_key must not be empty for fallback")
        if self.ns != "_":
            raise RuntimeError(
                "Fallback can only be registered using library fragment on the global namespace "
                f'"_" but it is {self.ns}'
            )
        from taeda import _dispatch_keys

        _dispatch_keys._dispatch_key_parse(key)
        if key not in _KEYS_WITHOUT_KERNELS and not _never_met(key):
            _C._set_key_fallback(key, None if fn is fallthrough_kernel else fn, with_keyset)
        _dispatch_keys.FALLBACKS[key] = _dispatch_keys.FALLBACKS.get(key, 0) + 1
        self._fallbacks.append(key)

    def fallthrough(self, op_name: Any, dispatch_key: str = "") -> None:
        """Passes the key by for this operator."""
        self.impl(op_name, fallthrough_kernel, dispatch_key)

    def _qualify(self, name: str) -> str:
        if "::" not in name:
            return f"{self.ns}::{name}"
        if name.partition("::")[0] != self.ns:
            raise ValueError(f"{name} is no operator of the library's namespace, {self.ns}")
        return name

    def _register_fake(self, op_name: str, fn: Callable, _stacklevel: int = 1) -> None:
        self.impl(op_name, fake_context.in_context(self._qualify(op_name), fn), "Meta")

    def _register_torch_dispatch_rule(
        self, op: _ops.OpOverload, torch_dispatch_class: type, function: Callable
    ) -> None:
        key = (op.name(), check_dispatch_class(torch_dispatch_class))
        if key in _C._torch_dispatch_rules:
            raise RuntimeError(
                f"{torch_dispatch_class} already has a `__torch_dispatch__` rule registered for "
                f"{op.name()}"
            )
        _C._torch_dispatch_rules[key] = function
        self._rules.append(key)

    def _destroy(self) -> None:
        if self.m is not None:
            self.m.destroy()
        self.m = None
        for name in self._defined:
            vars(getattr(_ops.ops, self.ns)).pop(name, None)
        self._defined.clear()
        _forget(*self._registered())

    def _registered(self) -> tuple:
        return self._rules, self._implemented, self._watched, self._fallbacks, self._tagged


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


# What functions register without a library of their own lasts as long as the process.
_kept: dict[str, Library] = {}


def _library(name: str, lib: Library | None) -> Library:
    namespace = name.partition("::")[0]
    return lib or _kept.setdefault(namespace, Library(namespace, "FRAGMENT"))


def define(
    qualname: Any, schema: str | None = None, *, lib: Library | None = None, tags: Any = ()
) -> None:
    """Makes an operator: define("mylib::sin", "(Tensor x) -> Tensor")."""
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    name = qualname.partition("::")[2]
    if not name or schema is None:
        raise ValueError(f"define: expected 'namespace::name' and a schema, got {qualname}")
    if not schema.startswith("("):
        raise ValueError(
            f"define(qualname, schema, ...): expected schema to look like e.g. "
            f'"(Tensor x) -> Tensor" but got "{schema}"'
        )
    _library(qualname, lib).define(name + schema, tags=tags)


def _register(op: Any, func: Callable | None, add: Callable[[str, Callable], None]) -> Any:
    def decorate(function: Callable) -> Callable:
        add(_name_of(op), function)
        return function

    return decorate if func is None else decorate(func)


def impl(
    qualname: Any, types: Any, func: Callable | None = None, *, lib: Library | None = None
) -> Any:
    """Gives an operator a kernel for devices ('cpu', 'cuda', 'default') or for a dispatch key."""
    if isinstance(qualname, Library):  # impl(library, name, dispatch_key)
        library, name = qualname, types

        def decorate(function: Callable) -> Callable:
            library.impl(name, function, cast(str, func or ""))
            return function

        return decorate
    listed = [types] if isinstance(types, str) else list(types)

    def add(name: str, function: Callable) -> None:
        for kind in listed:
            key = "CompositeExplicitAutograd" if kind == "default" else kind
            _library(name, lib).impl(name, function, _KEYS_OF_DEVICES.get(key, key))

    return _register(qualname, func, add)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Gives an operator its kernel for some devices; for all with None."""
    definition = _definition(op)
    if definition is not None:
        return definition.register_kernel(device_types, func)
    return impl(op, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Gives the function that works out an operator's shapes and dtypes without data.

    It runs when the arguments are on device meta. Where a shape depends on values, it asks
    get_ctx().
    """

    def add(name: str, function: Callable) -> None:
        _library(name, lib)._register_fake(name, function)

    return _register(op, func, add)


impl_abstract = register_fake


def register_autograd(
    op: Any,
    backward: Callable,
    /,
    *,
    setup_context: Callable | None = None,
    lib: Library | None = None,
) -> None:
    """Gives an operator its gradient.

    `setup_context(ctx, inputs, output)` saves what `backward(ctx, *grads)` reads; the latter
    returns one gradient an argument, None where there is none.
    """
    name = _name_of(op)
    definition = _definition(op)
    if definition is not None:
        definition.register_autograd(backward, setup_context=setup_context)
        return
    found = _overload(name)
    if found._schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {found} with schema "
            f"{found._schema}. Please create a functional operator and register an autograd "
            "formula for that."
        )
    _library(name, lib).impl(name, autograd_kernel(found, backward, setup_context), "Autograd")


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Library | None = None) -> Any:
    """Gives the rule for torch.vmap: func(info, in_dims, *args) -> (result, out_dims)."""

    def add(name: str, function: Callable) -> None:
        definition = _definition(op)
        if definition is not None:
            definition.register_vmap(function)
            return
        from taeda.func._rules import operator_kernel

        kernel = operator_kernel(_overload(name), function)
        _library(name, lib).impl(name, kernel, "FuncTorchBatched")

    return _register(op, func, add)


def register_autocast(
    op: Any, device_type: str, cast_inputs: _C.dtype, /, *, lib: Library | None = None
) -> None:
    """Casts an operator's floating arguments to a dtype in blocks of torch.autocast."""
    definition = _definition(op)
    if definition is None:
        raise NotImplementedError(
            "register_autocast: only for operators made by custom_op; give others a kernel for "
            "'AutocastCPU'"
        )
    definition.register_autocast(device_type, cast_inputs)


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: Any,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Gives what answers for a class's `__torch_dispatch__` when it is asked about one operator.

    Args:
        op: the operator, or its name.
        torch_dispatch_class: a TorchDispatchMode, or a Tensor subclass with `__torch_dispatch__`.
        func: called with (mode, func, types, args, kwargs), or (cls, func, types, args, kwargs).
    """

    definition = _definition(op)
    if definition is not None:
        return definition.register_torch_dispatch(torch_dispatch_class, func)

    def add(name: str, function: Callable) -> None:
        found = _overload(name)
        _library(name, lib)._register_torch_dispatch_rule(found, torch_dispatch_class, function)

    return _register(op, func, add)


def triton_op(*args: Any, **kwargs: Any) -> Any:
    """Not supported: taeda has no Triton kernels."""
    raise NotImplementedError(
        "torch.library.triton_op: taeda runs no Triton kernels; register the function with "
        "torch.library.custom_op"
    )


def wrap_triton(*args: Any, **kwargs: Any) -> Any:
    """Not supported: taeda has no Triton kernels."""
    raise NotImplementedError("torch.library.wrap_triton: taeda runs no Triton kernels")


def get_ctx() -> Any:
    """What the fake implementation that runs may ask for sizes that depend on values; None outside.

    >>> torch.library.define("docs::nonzero_of", "(Tensor x) -> Tensor")
    >>> @torch.library.register_fake("docs::nonzero_of")
    ... def _(x):
    ...     return x.new_empty((torch.library.get_ctx().new_dynamic_size(), x.dim()))
    """
    return fake_context.current()


def _definition(op: Any) -> CustomOpDef | None:
    if isinstance(op, CustomOpDef):
        return op
    return OPDEFS.get(_name_of(op))


def _found(op: str) -> _ops.OpOverload | None:
    name, _, overload = op.partition(".")
    return _C._operator(name, "" if overload == "default" else overload)


def _overload(op: str) -> _ops.OpOverload:
    found = _found(op)
    if found is None:
        raise RuntimeError(f"operator {op} does not exist")
    return found


__getattr__, __dir__ = _missing.attributes(__name__)
