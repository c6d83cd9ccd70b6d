"""What the fuzz program with an interpreter in it (``embedded_target.cc``) calls.

``READERS`` is what can be read there, ``mutant`` damages with knowledge of the format.
"""

from __future__ import annotations

import io
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz import child, corpus, mutate

import taeda
from taeda import safetensors
from taeda.serialization import _safe_pickle, _zip_reader
from taeda.serialization._names import check_storage_id, named_storage

STORAGE_BYTES = 64


class Allowed:
    """A class that the user lets files name: what makes and fills objects runs too."""

    def __init__(self, *args: Any) -> None:
        self.args = args


class AllowedTensor(taeda.Tensor):
    pass


_USER_GLOBALS = {"tests.Allowed": Allowed, "tests.AllowedTensor": AllowedTensor}


def _storage(pid: Any) -> Any:
    kind, _, _, _ = check_storage_id(pid, (5,))
    return named_storage(taeda.UntypedStorage(STORAGE_BYTES), kind)


def read_pickle(data: bytes) -> None:
    _safe_pickle.load_safely(data, 0, _storage, _USER_GLOBALS, len(data))


def read_archive(data: bytes) -> None:
    taeda.load(io.BytesIO(data))


def read_safetensors(data: bytes) -> None:
    safetensors.load(data)


READERS = {"pickle": read_pickle, "archive": read_archive, "safetensors": read_safetensors}


def _pickles() -> list[bytes]:
    """The pickles inside the archives, and one with objects of classes that are allowed."""
    found = []
    for data in corpus.archives():
        archive = _zip_reader.ZipReader(io.BytesIO(data), 3 * len(data), background=False)
        name = next(n for n in archive.entries if n.endswith("data.pkl"))
        found.append(archive.read(name))
    named = b"\x80\2]q\0(ctests\nAllowed\nq\1)\x81q\2}q\3X\1\0\0\0aK\1sbh\1K\1K\2\x86R"
    counted = b"ccollections\nCounter\n}q\4K\1K\2s\x85Rcbuiltins\nset\n]q\5K\7a\x85R"
    return [*found, named + counted + b"e."]


CORPUS: dict[str, Callable[[], list[bytes]]] = {
    "pickle": _pickles,
    "archive": lambda: corpus.archives() + corpus.legacy(),
    "safetensors": corpus.safetensors,
}


def write_corpus(reader: str, folder: str) -> None:
    for i, data in enumerate(CORPUS[reader]()):
        Path(folder, f"{i}.bin").write_bytes(data)


def prepare(reader: str) -> Callable[[bytes], str]:
    """The reader as a function that says what is wrong with how it ended, "" if nothing is.

    All of its honest files are read first: what is imported or made once is no work of a file's.
    """
    warnings.simplefilter("ignore")
    taeda.set_num_threads(1)
    for data in CORPUS[reader]():
        READERS[reader](data)

    def judge(data: bytes) -> str:
        try:
            READERS[reader](data)
        except BaseException as error:
            if child.wrong(error) or not isinstance(error, Exception):
                return f"{type(error).__name__}: {error}"[:400]
        return ""

    return judge


def mutant(reader: str, data: bytes, seed: int) -> bytes:
    rng = random.Random(seed)
    if reader == "pickle" and data:
        return mutate.pickled(rng, data)
    return mutate.mutant(rng, data)
