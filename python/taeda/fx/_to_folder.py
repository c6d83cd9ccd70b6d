"""GraphModule.to_folder: a graph module as a package of Python that can be read and changed."""

from __future__ import annotations

import os
import textwrap
import warnings
from pathlib import Path
from typing import Any

import taeda
from taeda import nn
from taeda.nn import Module

# What their repr makes anew.
_BY_REPR = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d,
)  # fmt: skip


def _imports() -> str:
    from taeda.fx.graph import _custom_builtins

    return "\n".join(builtin.import_str for builtin in _custom_builtins.values())


def _children(module: Any, folder: Path) -> tuple[list[str], list[str]]:
    """(a line for each child, the names of those that are files of their own)."""
    lines, files = [], []
    for name, child in module.named_children():
        made = repr(child)
        if type(child) not in _BY_REPR:
            taeda.save(child, folder / f"{name}.pt")
            files.append(name)
            made = f"torch.load(_folder / {name + '.pt'!r}, weights_only=False)"
        lines.append(f"setattr(self, {name!r}, {made})")
    return lines, files


def _tensors(module: Module) -> list[str]:
    """A line for each parameter and buffer that is no child's."""
    own = [(name, x, "Parameter") for name, x in module._parameters.items()]
    own += [(name, x, "Buffer") for name, x in module._buffers.items()]
    lines = []
    for name, x, kind in own:
        if x is None:
            continue
        empty = f"torch.empty({list(x.shape)}, dtype={x.dtype})"
        if kind == "Parameter":
            made = f"torch.nn.Parameter({empty}, requires_grad={x.requires_grad})"
            lines.append(f"setattr(self, {name!r}, {made})")
        else:
            lines.append(f"self.register_buffer({name!r}, {empty})")
    return lines


def to_folder(module: Any, folder: str | os.PathLike[str], module_name: str) -> None:
    """Writes a package: ``from FOLDER import MODULE_NAME``."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    taeda.save(module.state_dict(), folder / "state_dict.pt")
    children, files = _children(module, folder)
    lines = [
        "super().__init__()",
        *children,
        *_tensors(module),
        "self.load_state_dict(torch.load(_folder / 'state_dict.pt'))",
    ]
    body = textwrap.indent("\n".join(lines), " " * 8)
    code = textwrap.indent(module.code.strip("\n"), " " * 4)
    (folder / "module.py").write_text(
        f"from pathlib import Path\n\nimport torch\n{_imports()}\nfrom torch.nn import *\n\n"
        "_folder = Path(__file__).parent\n\n\n"
        f"class {module_name}(torch.nn.Module):\n    def __init__(self):\n{body}\n\n{code}\n",
        encoding="utf-8",
    )
    (folder / "__init__.py").write_text("from .module import *\n", encoding="utf-8")
    if files:
        warnings.warn(
            "Was not able to save the following children modules as reprs -"
            f"saved as pickled files instead: {files}",
            stacklevel=3,
        )
