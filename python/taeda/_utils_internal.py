"""Where files lie, under the names that programs import from PyTorch."""

from __future__ import annotations

import os
from pathlib import Path


def get_file_path(*path_components: str) -> str:
    """A path relative to the folder that has the package."""
    return os.path.join(Path(__file__).resolve().parent.parent, *path_components)


def get_file_path_2(*path_components: str) -> str:
    """The components as one path."""
    return os.path.join(*path_components)
