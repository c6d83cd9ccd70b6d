"""The classes of compiled programs: base classes that run eagerly, and names for isinstance."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NoReturn

from taeda.nn import Module

Attribute = namedtuple("Attribute", ["value", "type"])
_NO_COMPILER = "there is no script compiler; the module runs eagerly"


class _NotCompiled(AttributeError, NotImplementedError):
    """For what only compiled programs have: hasattr() is False, and reading it says why."""


class ScriptModule(Module):
    """A module that PyTorch compiles; subclasses run eagerly here."""

    def _refuse(self) -> NoReturn:
        raise _NotCompiled(f"{type(self).__name__}: {_NO_COMPILER}")

    graph = property(_refuse)
    code = property(_refuse)
    inlined_graph = property(_refuse)
    code_with_constants = property(_refuse)

    def __getattr__(self, name: str) -> Any:
        # Python asks here after the property has raised an AttributeError.
        if name in ("graph", "code", "inlined_graph", "code_with_constants"):
            self._refuse()
        return super().__getattr__(name)

    def save(self, f: Any, **kwargs: Any) -> None:
        """Raises: archives of scripts cannot be written."""
        raise NotImplementedError("ScriptModule.save: use torch.save(module.state_dict(), f)")


class RecursiveScriptModule(ScriptModule):
    """What script makes of a module: a copy that shares parameters, buffers and submodules."""


class TracedModule(ScriptModule):
    """What PyTorch's trace makes of submodules."""


class TopLevelTracedModule(TracedModule):
    """What trace makes of a module: a copy of it, as for script."""


@functools.cache
def _class_of(kind: type, module: type) -> type:
    """The class of `module`, that is a `kind` too."""
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (module, kind), names)


def as_script(module: Module, kind: type) -> Module:
    """`module` as a `kind`, which runs the module's methods on its parameters."""
    if isinstance(module, ScriptModule):
        return module
    found: Any = object.__new__(_class_of(kind, type(module)))  # type: ignore[arg-type]
    found.__dict__.update(module.__dict__)
    found.__dict__["original_name"] = type(module).__name__
    return found


class ScriptFunction:
    """What script makes of a function: it runs the function.

    >>> double = torch.jit.script(lambda x: 2 * x)
    >>> isinstance(double, torch.jit.ScriptFunction), double(torch.tensor(2))
    (True, tensor(4))
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)  # type: ignore[attr-defined]

    @property
    def name(self) -> str:
        """The function's."""
        return self.__name__  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict) -> ScriptFunction:
        return self

    def _refuse(self) -> NoReturn:
        raise _NotCompiled(f"{self.name}: there is no script compiler; it runs eagerly")

    graph = property(_refuse)
    code = property(_refuse)
    inlined_graph = property(_refuse)

    def save(self, f: Any, **kwargs: Any) -> None:
        """Raises: archives of scripts cannot be written."""
        raise NotImplementedError("ScriptFunction.save: script archives cannot be written")
