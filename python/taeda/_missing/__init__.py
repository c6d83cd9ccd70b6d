"""Names that PyTorch has and taeda lacks: importing and reading them works, calling them raises.

Programs import more than they call, ask ``isinstance(x, DTensor)`` and inherit from classes of
which they make no object. So a missing function, class or decorator is there as an object that
raises NotImplementedError, with what is missing and what to use instead, once it is called,
instantiated, or what it decorated is called. ``_only_raises`` marks it; docs/coverage.md counts it
as missing.

A single one stands where its module is written:

>>> from taeda import _missing
>>> script = _missing.function("torch.jit.script", "there is no script compiler; call the function")
>>> script(len)
Traceback (most recent call last):
    ...
NotImplementedError: torch.jit.script: there is no script compiler; call the function

Whole modules are entries of the tables beside this file: ``MODULES`` gives for a module's name why
its names raise and what they are, and so on in pairs. The names are words of the forms

    name             a function; a class where the first letter is a capital, an exception that
                     nothing raises where it ends in Error or Exception
    class:name       a class all the same; def:Name a function
    no:name          a function that answers False, for questions about what is missing
    @name            a decorator: what it decorates raises when called
    Name.attribute   a function that is an attribute of the class Name
    Name{A,B}        an enumeration, which is as good as PyTorch's; an attribute of it beside its
                     members is the enumeration itself
    name=torch.m.x   what torch.m has under the name x; without the second name, the module torch.m
    NAME=3           a number or a string without spaces
    *torch.m         all that the entry of torch.m has
    dtype:name       a dtype

A finder behind all others, which ``import taeda`` installs, serves modules that have an entry and
no file.
A module that has both writes ``__getattr__, __dir__ = _missing.attributes(__name__)``, or calls
`attribute` at the end of its own ``__getattr__``.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any

_TABLES = (
    "aliases", "backends", "compilers", "constants", "distributed", "lowering", "members", "parts",
    "private", "quantizing",
)  # fmt: skip


def mark(found: Any, name: str, why: str) -> Any:
    """`found`, named and marked as what only raises."""
    module, _, own_name = name.rpartition(".")
    found.__module__, found.__name__, found.__qualname__ = module, own_name, own_name
    found.__doc__ = f"NotImplementedError when called: {why}."
    found._only_raises = True
    return found


def function(name: str, why: str) -> Callable[..., Any]:
    """A function that raises; `why` says what is missing and what to use instead."""

    def raises(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}: {why}")

    return mark(raises, name, why)


def no(name: str) -> Callable[..., bool]:
    """A function that answers False."""

    def answer(*args: Any, **kwargs: Any) -> bool:
        return False

    answer.__module__, _, answer.__name__ = name.rpartition(".")
    answer.__qualname__, answer.__doc__ = answer.__name__, "False: there is no such thing."
    return answer


class _Raises:
    """What missing classes inherit from: subclasses and ``Name[int]`` work, objects do not."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(cls._message)

    def __init_subclass__(cls, **kwargs: Any) -> None: ...

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    _message: str


def class_(name: str, why: str) -> type:
    """A class of which, or of whose subclasses, no object can be made."""
    return mark(
        type(name.rpartition(".")[2], (_Raises,), {"_message": f"{name}: {why}"}), name, why
    )


def exception(name: str, why: str) -> type:
    """An exception, which programs name in ``except`` and nothing raises."""
    return mark(type(name.rpartition(".")[2], (RuntimeError,), {}), name, why)


def decorator(name: str, why: str) -> Callable[..., Any]:
    """A decorator, with or without arguments of its own; what it gives raises when called."""

    def decorate(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or not callable(args[0]):
            return decorate
        raises = functools.wraps(args[0])(lambda *_, **__: function(name, why)())
        raises._only_raises = True  # type: ignore[attr-defined]
        return raises

    return mark(decorate, name, why)


class _Dtype:
    """Stands for a dtype that no tensor can have; functions refuse it with a TypeError."""

    _only_raises = True
    is_complex = False

    def __init__(self, name: str) -> None:
        self._name = name
        self.__module__ = __name__.partition(".")[0]

    def __reduce__(self) -> str:
        return self._name.removeprefix("torch.")

    @property
    def itemsize(self) -> int:
        """Bytes of an element: what is smaller than a byte lies in one."""
        bits = re.match(r"torch\.(?:qint|bits)(16|32)$", self._name)
        return int(bits[1]) // 8 if bits else 1

    @property
    def is_floating_point(self) -> bool:
        """Whether its values have an exponent."""
        return self._name.startswith("torch.float")

    @property
    def is_signed(self) -> bool:
        """Whether it has negative values; RuntimeError where its values are no numbers."""
        if self._name.startswith(("torch.bits", "torch.q")):
            raise RuntimeError("isSignedType not supported for quantized types")
        return not self._name.startswith("torch.uint")

    def __repr__(self) -> str:
        return self._name


@functools.cache
def _modules() -> dict[str, tuple[str, ...]]:
    """The tables in one."""
    found: dict[str, tuple[str, ...]] = {}
    for table in _TABLES:
        for module, entry in importlib.import_module(f"taeda._missing.{table}").MODULES.items():
            found[module] = found.get(module, ()) + entry
    return found


def _torch(module: str) -> str:
    """torch.nn of taeda.nn."""
    return "torch" + module.removeprefix("taeda") if module.startswith("taeda") else module


def _taeda(module: str) -> str:
    return "taeda" + module.removeprefix("torch") if module.startswith("torch") else module


def _name_of(word: str) -> str:
    """The name that a word of the table defines."""
    name = word.removeprefix("@").rpartition(":")[2] if "=" not in word else word
    for end in "{=.":
        name = name.partition(end)[0]
    return name


@functools.cache
def _words(module: str) -> dict[str, tuple[str, list[str]]]:
    """name -> why it raises and its words, of those that the table has for torch.`module`."""
    found: dict[str, tuple[str, list[str]]] = {}
    entry = iter(_modules().get(module, ()))
    for why, words in zip(entry, entry, strict=True):
        for word in words.split():
            if word.startswith("*"):
                found |= {n: (why, [f"{n}={word[1:]}.{n}"]) for n in _words(word[1:])}
            else:
                found.setdefault(_name_of(word), (why, []))[1].append(word)
    return found


@functools.cache
def _submodules(module: str) -> frozenset[str]:
    """The modules in a package that the tables have, with or without an entry of their own."""
    start = module + "."
    inside = (name.removeprefix(start) for name in _modules() if name.startswith(start))
    return frozenset(name.partition(".")[0] for name in inside)


def numbered(name: str, members: str) -> type:
    """An enumeration from 0, whose members int() takes."""
    from enum import Enum

    class Numbered(Enum):
        def __int__(self) -> int:
            return int(self.value)

    module, _, own_name = name.rpartition(".")
    return Numbered(own_name, members, module=module, start=0)  # type: ignore


def _enumeration(name: str, members: str) -> type:
    found = numbered(name, members.replace(",", " "))
    found._only_raises = True  # type: ignore[attr-defined]
    return found


def _value(text: str) -> Any:
    """What stands behind = in the table."""
    if not text.startswith("torch"):
        from ast import literal_eval

        return literal_eval(text)
    module, _, name = text.rpartition(".")
    try:
        found = importlib.import_module(_taeda(text))
    except ModuleNotFoundError:
        owner, _, class_name = module.rpartition(".")
        if class_name[:1].isupper():  # a member of a class: Aggregation.MEAN
            return getattr(getattr(importlib.import_module(_taeda(owner)), class_name), name)
        return getattr(importlib.import_module(_taeda(module)), name)
    if not module or f"{name}={text}" in _words(module).get(name, ("", []))[1]:
        return found
    if name in _words(module):  # a package may have a function of the name that a module in it has
        return getattr(_loaded(module), name)
    return vars(_loaded(module)).get(name, found)


def _make(module: str, why: str, words: list[str]) -> Any:
    """The object for a name's words."""
    first, name = words[0], f"{module}.{_name_of(words[0])}"
    if "=" in first:
        return _value(first.partition("=")[2])
    if "{" in first:
        enumeration = _enumeration(name, first.partition("{")[2].rstrip("}"))
        for word in words[1:]:
            setattr(enumeration, word.partition(".")[2], enumeration)
        return enumeration
    if first.startswith("dtype:"):
        return _Dtype(name)
    if first.startswith("no:"):
        return no(name)
    if first.startswith("@"):
        return decorator(name, why)
    own_name = _name_of(first).lstrip("_")
    is_class = own_name[:1].isupper() or first.startswith("class:")
    if not is_class or first.startswith("def:"):
        return function(name, why)
    if own_name.endswith(("Error", "Exception")):
        return exception(name, why)
    found = class_(name, why)
    for word in words:
        _, dot, attribute = word.partition(".")
        if dot:
            setattr(found, attribute, staticmethod(function(f"{name}.{attribute}", why)))
    return found


@functools.cache
def _names_of_root() -> list[str]:
    return dir(sys.modules["taeda"])


def attribute(module: str, name: str) -> Any:
    """What the tables have as `name` in a module; AttributeError, as a module's, without."""
    torch_module = _torch(module)
    if name in _words(torch_module):
        found = _make(torch_module, *_words(torch_module)[name])
    elif name in _submodules(torch_module):
        # Under the launcher "torch.x" is ours, or what a program has put there: a mock.
        as_torch = sys.modules["taeda"].__name__ == "torch"
        put_there = sys.modules.get(f"{torch_module}.{name}") if as_torch else None
        return put_there or importlib.import_module(f"{_taeda(module)}.{name}")
    else:
        shown = getattr(_loaded(module), "__name__", module)
        from taeda._near_names import no_attribute

        def known() -> list[str] | set[str]:
            return _names_of_root() if _torch(module) == "torch" else dir(_loaded(module))

        raise no_attribute(f"module '{shown}'", name, known)
    setattr(_loaded(module), name, found)
    return found


def _loaded(module: str) -> Any:
    """The module by either name: under the launcher some are loaded as torch's alone."""
    return sys.modules.get(_taeda(module)) or sys.modules.get(_torch(module))


def names(module: str) -> set[str]:
    """What the tables have in a module."""
    return {*_words(_torch(module)), *_submodules(_torch(module))}


def attributes(
    module: str, submodules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a module that lacks what the tables have of it, and loads
    its submodules when they are touched."""

    def __getattr__(name: str) -> Any:
        if name in submodules:
            return importlib.import_module(f"{module}.{name}")
        return attribute(module, name)

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[_taeda(module)]), *submodules, *names(module)})

    return __getattr__, __dir__


def find_spec(name: str) -> Any:
    """Of a module that has an entry, or that is an attribute of its package; None for others."""
    from importlib.machinery import ModuleSpec

    module = _torch(name)
    if module in _modules() or _submodules(module):
        loader: Any = _Loader()
        return ModuleSpec(name, loader, is_package=bool(_submodules(module)))
    found = _made_by_package(name)
    loader = _Made(found)
    return (
        None if found is None else ModuleSpec(name, loader, is_package=hasattr(found, "__path__"))
    )


_asked: set[str] = set()


def _made_by_package(name: str) -> ModuleType | None:
    """The module without a file that a package has as an attribute: torch.ops, torch._C._nn."""
    package, _, own_name = name.rpartition(".")
    if name in _asked or package not in sys.modules:  # reading the attribute imports the module
        return None
    _asked.add(name)
    try:
        found = getattr(sys.modules[package], own_name, None)
    finally:
        _asked.discard(name)
    return found if isinstance(found, ModuleType) else None


class _Made:
    """Gives a module that is there already."""

    def __init__(self, module: ModuleType | None) -> None:
        self._module = module

    def create_module(self, spec: Any) -> ModuleType | None:
        assert self._module is not None
        self._spec = getattr(self._module, "__spec__", None)
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """It has run; its own spec is put back, which the import system has replaced."""
        if self._spec is not None:
            module.__spec__ = self._spec


def add_namesakes(package: str) -> None:
    """Loads the modules of a package whose names are those of functions in it, which importing them
    later would replace: torch.export.unflatten is both.

    A package with an entry and a file calls it at its end."""
    name = _torch(package)
    for own_name in _submodules(name) & {*_words(name), *vars(_loaded(name))}:
        full = f"{name}.{own_name}"
        if f"{own_name}={full}" in _words(name).get(own_name, ("", []))[1]:
            continue
        module = ModuleType(_taeda(full))
        sys.modules[module.__name__] = module
        _Loader().exec_module(module)


class _Loader:
    """Makes the module of an entry. Not importlib.abc.Loader: that loads 20 modules in 3.11."""

    def create_module(self, spec: Any) -> None:
        """None: a module as usual."""

    def get_code(self, name: str) -> Any:
        """What ``python -m`` runs: NotImplementedError, with what is missing."""
        name = _torch(name)
        why = _modules()[name][0] if name in _modules() else "taeda has no such program"
        return compile(f"raise NotImplementedError({f'{name}: {why}'!r})", name, "exec")

    def exec_module(self, module: ModuleType) -> None:
        name = _torch(module.__name__)
        if sys.modules["taeda"].__name__ == "torch":  # as taeda._hook names the others
            module.__name__ = name
            sys.modules[name] = module
        why = _modules()[name][0] if name in _modules() else "what its modules hold raises"
        members = module.__dict__
        members["__doc__"] = f"Not part of taeda: {why}."
        members["__getattr__"], members["__dir__"] = attributes(module.__name__)
        members["__all__"] = sorted(n for n in _words(name) if not n.startswith("_"))
        add_namesakes(module.__name__)
        if any("=torch" not in word for _, words in _words(name).values() for word in words):
            members["_only_raises"] = True
            return
        members["__doc__"] = "What others of PyTorch's modules hold, by another name."
