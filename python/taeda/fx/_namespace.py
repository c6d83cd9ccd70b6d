"""Names for nodes and globals: valid, and each used once."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any, NamedTuple

import taeda
from taeda.fx import _pytree as fx_pytree
from taeda.utils import _pytree as pytree


class _CustomBuiltin(NamedTuple):
    """A global of all generated code, and the statement that makes it."""

    import_str: str
    obj: object


_custom_builtins: dict[str, _CustomBuiltin] = {}
_illegal_names: dict[str, object] = {name: object() for name in keyword.kwlist}
_illegal_names.update(vars(builtins))


def _register_custom_builtin(name: str, import_str: str, obj: object) -> None:
    """Makes `name` a global of all generated code."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _illegal_names[name] = obj


for _row in (
    ("inf", "from math import inf", math.inf),
    ("nan", "from math import nan", math.nan),
    ("NoneType", "NoneType = type(None)", type(None)),
    ("torch", "import torch", taeda),
    ("device", "from torch import device", taeda.device),
    ("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree),
    ("pytree", "import torch.utils._pytree as pytree", pytree),
):
    _register_custom_builtin(*_row)


class _Namespace:
    """The names in use."""

    def __init__(self) -> None:
        self._obj_to_name: dict[object, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: object | None) -> str:
        """A name like `candidate` that is not in use; `obj`'s own if it has one."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"^(.*?)(?:_(\d+))?$", candidate)
        assert match is not None
        base, suffix = match[1], match[2]
        if not base:
            base, suffix = candidate, None
        if suffix is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if _illegal_names.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        else:
            number = int(suffix)
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: object) -> None:
        """Notes that `obj` has the name."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[obj] = name
        self._used_names.add(name)
