"""What a file is that `load` cannot read, by how it begins: a text, a web page, another format."""

from __future__ import annotations

NOT_A_CHECKPOINT = "Fix: give the file that torch.save has written; was the download complete?"

# How a file begins, and what it then is; the first that fits counts.
_KINDS: dict[bytes, str] = {
    b"version https://git-lfs": "a pointer of Git LFS (`git lfs pull` fetches what it stands for)",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"\x1f\x8b": "packed by gzip (gzip.open(path) as a file object unpacks it)",
    b"BZh": "packed by bzip2",
    b"\xfd7zXZ": "packed by xz",
    b"(\xb5/\xfd": "packed by zstd",
    b"\x89HDF": "HDF5, which Keras and others write",
    b"\x93NUMPY": "an array of NumPy (numpy.load, then torch.from_numpy)",
    b"GGUF": "GGUF, which llama.cpp writes",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
}


def other_kind(content: bytes) -> str:
    """ "a text", "a web page", ...; "" for what may be a pickle.

    >>> from taeda.serialization._kinds import other_kind
    >>> other_kind(b"import torch")
    'a text'
    """
    head = content[:4096]
    for start, kind in _KINDS.items():
        if head[: len(start)].lower() == start.lower():
            return kind
    if head[8:10] == b'{"':  # the length of a header in JSON, and the header
        return "in the safetensors format (torch.safetensors.load_file, or the package safetensors)"
    return "a text" if _is_text(head) else ""


def _is_text(head: bytes) -> bool:
    """Whether all is UTF-8 without control characters; the end may cut a character."""
    try:
        text = head.decode() if len(head) < 4096 else head[:-4].decode(errors="ignore")
    except UnicodeDecodeError:
        return False
    return "\ufffd" not in text and all(c.isprintable() or c in "\n\r\t\f" for c in text)
