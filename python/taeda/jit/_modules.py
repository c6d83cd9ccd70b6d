"""The classes of compiled programs: base classes that run eagerly, and names for isinstance."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NoReturn

from taeda import _missing
from taeda.nn import Module

Attribute = namedtuple("Attribute", ["value", "type"])
_NO_COMPILER = "there is no script compiler; the module runs eagerly"


class ScriptModule(Module):
    """A module that PyTorch compiles; subclasses run eagerly here."""

    def _refuse(self) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__}: {_NO_COMPILER}")

    graph = property(_refuse)
    code = property(_refuse)
    inlined_graph = property(_refuse)
    code_with_constants = property(_refuse)

    def save(self, f: Any, **kwargs: Any) -> None:
        """Raises: archives of scripts cannot be written."""
        raise NotImplementedError("ScriptModule.save: use torch.save(module.state_dict(), f)")


class RecursiveScriptModule(ScriptModule):
    """What PyTorch's script makes of modules; script gives modules themselves here."""


class TracedModule(ScriptModule):
    """What PyTorch's trace makes of submodules."""


class TopLevelTracedModule(TracedModule):
    """What PyTorch's trace makes of modules; trace gives modules themselves here."""


ScriptFunction = _missing.class_(
    "torch.jit.ScriptFunction", "there is no script compiler; call the function"
)
ScriptFunction._only_raises = True  # type: ignore[attr-defined]
