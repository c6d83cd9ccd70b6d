"""Options of ``torch.load`` and ``torch.save``, to be set here; their own arguments come first."""

from __future__ import annotations

import mmap as _mmap
from typing import Any

__all__ = ["load", "save"]


class load:
    mmap: bool = False  # where ``mmap`` is not given
    endianness: Any = None  # the byte order of files that do not tell theirs; None: little
    mmap_flags: int | None = _mmap.MAP_PRIVATE
    calculate_storage_offsets: bool = False  # not needed: offsets are in the zip directory


class save:
    compute_crc32: bool = True  # checksums are always written, as `load` verifies them
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64  # no other is written
