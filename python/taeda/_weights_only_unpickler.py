"""The pickles of ``torch.load(weights_only=True)``, read without running anything from them."""

from __future__ import annotations

from typing import Any

from taeda import serialization
from taeda.serialization._safe_pickle import load_safely

__all__ = ["Unpickler", "load"]


class Unpickler:
    """Reads one pickle of tensors and plain containers from a file that is open for reading.

    `persistent_load` is called for what stands outside of the pickle, such as storages. Functions
    and classes are those that ``torch.load`` knows and those added by
    ``torch.serialization.add_safe_globals``; UnpicklingError for others.

    >>> import io, pickle
    >>> from torch import _weights_only_unpickler
    >>> _weights_only_unpickler.load(io.BytesIO(pickle.dumps({"lr": 0.1}, 2)))
    {'lr': 0.1}
    """

    def __init__(self, file: Any, *, encoding: str = "bytes") -> None:
        self.file, self.encoding = file, encoding

    def persistent_load(self, pid: Any) -> Any:
        """What a persistent id stands for; subclasses and instances override it."""
        from pickle import UnpicklingError

        raise UnpicklingError("unsupported persistent id encountered")

    def load(self) -> Any:
        """The object; the file stands behind its pickle then."""
        start = self.file.tell()
        data = self.file.read()
        encoding = "utf-8" if self.encoding == "bytes" else self.encoding
        found, end = load_safely(
            data, 0, self.persistent_load, serialization._safe_globals, len(data), encoding
        )
        self.file.seek(start + end)
        return found


def load(file: Any, *, encoding: str = "ASCII") -> Any:
    """The object that a file's pickle holds."""
    return Unpickler(file, encoding=encoding).load()
