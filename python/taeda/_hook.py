"""Makes ``import torch`` mean taeda: what ``python -m taeda`` installs before it runs a program.

The finder serves this process and its forks; other Python processes that the program starts inherit
a search path on which the first ``torch`` is ``_as_torch/torch``, which installs the finder there.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from typing import Any


class _AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Resolves ``torch`` and ``torch.X`` to the module objects of ``taeda`` and ``taeda.X``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        name = "taeda" + fullname.removeprefix("torch")
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        assert spec.origin is not None
        module = importlib.import_module(spec.origin)
        self._own_spec = (module, module.__spec__)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """It has run already; only its own spec is put back, which the import system replaced."""
        found, spec = self._own_spec
        found.__spec__ = spec


def install() -> None:
    """From here on, ``import torch`` and ``import torch.nn`` give taeda and taeda.nn."""
    loaded = sys.modules.get("torch")
    if loaded is not None and loaded.__name__ != "taeda":
        raise RuntimeError("torch is already imported; run the program with 'python -m taeda'")
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())
    import taeda

    sys.modules["torch"] = taeda


def install_in_children() -> None:
    """The same for Python processes that this one starts (not those started with -E or -I)."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_as_torch")
    inherited = os.environ.get("PYTHONPATH", "")
    if folder not in inherited.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, inherited]))
    if folder not in sys.path:  # what multiprocessing hands to the processes it spawns
        sys.path.insert(1, folder)
