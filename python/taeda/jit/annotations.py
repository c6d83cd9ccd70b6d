"""Names for annotations of scripts."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

from taeda import _missing
from taeda._jit_internal import (  # noqa: F401
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    Final,
    is_dict,
    is_list,
    is_optional,
    is_tuple,
    is_union,
)
from taeda.futures import Future  # noqa: F401


class Module:
    """Names that a script may use."""

    def __init__(self, name: str, members: dict[str, Any]):
        self.name, self.members = name, members

    def __getattr__(self, name: str) -> Any:
        try:
            return self.members[name]
        except KeyError:
            raise RuntimeError(f"Module {self.name} has no member called {name}") from None


__getattr__, __dir__ = _missing.attributes(__name__)
