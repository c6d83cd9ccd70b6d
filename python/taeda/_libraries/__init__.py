"""Operators that other packages bring as libraries compiled for PyTorch.

Such a library cannot be loaded: it calls PyTorch's C++ interface. What its package needs is written
here with taeda's operators, and registered where the package asks for the library
(``torch.ops.load_library``).
"""

from __future__ import annotations

import importlib
import os

#: The last folder and the name of a library's file -> the module that registers its operators.
_MODULES = {"torchvision/_C": "taeda._libraries.torchvision"}


def supplies(path: str) -> bool:
    """Whether there is a module in the place of this library; it is loaded then."""
    folder, file = os.path.split(path)
    module = _MODULES.get(f"{os.path.basename(folder)}/{file.partition('.')[0]}")
    if module is not None:
        importlib.import_module(module)
    return module is not None
