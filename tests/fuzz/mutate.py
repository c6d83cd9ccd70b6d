"""Damage with knowledge of the format: a mutant whose checksums and lengths are right again reaches
the code behind the first check."""

from __future__ import annotations

import io
import json
import pickletools
import random
import struct
import zipfile
from typing import Any

NUMBERS = [0, 1, 2, 3, 7, 8, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64]
GLOBALS = (
    *[b"os\nsystem\n", b"builtins\neval\n", b"builtins\ngetattr\n", b"posix\nsystem\n"],
    *[b"torch\nFloatStorage\n", b"torch._utils\n_rebuild_tensor_v2\n", b"torch\ndevice\n"],
    *[b"collections\nOrderedDict\n", b"torch\nSize\n", b"torch._utils\n_rebuild_parameter\n"],
    *[b"torch.nn.modules.linear\nLinear\n", b"subprocess\nPopen\n", b"builtins\nset\n"],
    *[b"torch\nload\n", b"torch.utils.data\nDataLoader\n", b"_codecs\nencode\n", b"taeda\nload\n"],
)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed, cut out, doubled or moved."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at, n = rng.randrange(len(out) + 1), rng.choice([1, 1, 2, 4, 8, 40])
        kind = rng.randrange(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at : at + n] = rng.randbytes(n)
        elif kind == 2:
            del out[at : at + n]
        elif kind == 3:
            out[at:at] = out[at : at + n]
        elif kind == 4:
            start = rng.randrange(len(out) + 1)
            out[at : at + n] = out[start : start + n]
        elif kind == 5:
            width, code = rng.choice([(2, "<H"), (4, "<I"), (8, "<Q")])
            out[at : at + width] = struct.pack(code, rng.choice(NUMBERS) % (1 << 8 * width))
        elif rng.random() < 0.3:
            del out[at:]
    return bytes(out)


# --- pickles ---


def opcodes(data: bytes) -> list[bytes]:
    """The pickle cut into its opcodes with their arguments."""
    try:
        starts = [place or 0 for _, _, place in pickletools.genops(data)]
    except Exception:  # whatever is left of a damaged one
        return [data]
    return [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]


def integer(rng: random.Random) -> bytes:
    value = rng.choice(NUMBERS) * rng.choice([1, 1, -1])
    if -(2**31) <= value < 2**31 and rng.random() < 0.5:
        return b"J" + struct.pack("<i", value)
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def line(rng: random.Random) -> bytes:
    """An opcode of protocol 0."""
    number = str(rng.choice(NUMBERS) * rng.choice([1, 1, -1])).encode()
    code = rng.choice([b"I", b"L", b"F", b"V", b"S", b"P", b"p", b"g", b"c", b"i"])
    values = [number, number + b"L", b"00", b"01", b"nan", b"-1e999", b"", b"9" * 5000]
    values += [b"\\ud800\\U0010ffff\\u12", b"'a\\x41'", b'"', b"('storage', 1)", b"0\x00"]
    return code + rng.choice(values) + rng.choice([b"\n", b"\n", b"\n", b""])


def opcode(rng: random.Random) -> bytes:
    kind = rng.randrange(7)
    if kind == 6:
        return line(rng)
    if kind == 0:
        return integer(rng)
    if kind == 1:
        return b"c" + rng.choice(GLOBALS)
    if kind == 2:
        text = rng.choice([b"", b"cpu", b"0", b"\xff", b"x" * 300])
        return b"X" + struct.pack("<I", rng.choice([len(text), len(text), 2**32 - 1])) + text
    if kind == 3:
        return rng.choice([b"h", b"q", b"j", b"r"]) + rng.randbytes(4)
    return rng.choice(pickletools.opcodes).code.encode("latin1") + rng.randbytes(rng.choice([0, 1]))


def pickled(rng: random.Random, data: bytes) -> bytes:
    ops = opcodes(data)
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        at, kind = rng.randrange(len(ops)), rng.randrange(6)
        if kind == 0:
            del ops[at]
        elif kind == 1:
            ops.insert(at, opcode(rng))
        elif kind == 2:
            ops[at] = opcode(rng)
        elif kind == 3:
            ops.insert(rng.randrange(len(ops)), ops[at])
        elif kind == 4 and ops[at][:1] in (b"K", b"M", b"J", b"I", b"\x8a"):
            ops[at] = integer(rng)
        else:
            ops[at] = damaged(rng, ops[at])
        ops = ops or [b"."]
    return b"".join(ops)


# --- archives ---


def archive(rng: random.Random, data: bytes) -> bytes:
    """An archive whose pickle, entries or directory lie."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old:
            entries = [(info.filename, old.read(info)) for info in old.infolist()]
    except Exception:
        return damaged(rng, data)
    kind = rng.random()
    if kind < 0.6:
        entries = [(n, pickled(rng, d) if n.endswith("data.pkl") else d) for n, d in entries]
    elif kind < 0.9 and entries:
        at = rng.randrange(len(entries))
        name, content = entries[at]
        entries[at] = rng.choice(
            [
                (name, damaged(rng, content)),
                (name, content[: rng.randrange(len(content) + 1)]),
                (name + rng.choice(["/", "0", "/../x", "\0"]), content),
                (rng.choice(entries)[0], content),
                (name, content * rng.choice([2, 1000])),
            ]
        )
    out = io.BytesIO()
    method = rng.choice([zipfile.ZIP_STORED] * 3 + [zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(out, "w", method) as new:
        for name, content in entries:
            entry = zipfile.ZipInfo(name)  # of 1980: the time of day would make mutants differ
            entry.compress_type = method
            new.writestr(entry, content)
    return lying_directory(rng, out.getvalue()) if kind >= 0.8 else out.getvalue()


def lying_directory(rng: random.Random, data: bytes) -> bytes:
    """Numbers of headers and of the central directory replaced."""
    out = bytearray(data)
    places = []
    for signature, size in ((b"PK\x01\x02", 46), (b"PK\x03\x04", 30), (b"PK\x05\x06", 22)):
        at = data.find(signature)
        while at >= 0:
            places.append((at, size))
            at = data.find(signature, at + 1)
    for _ in range(rng.choice([1, 1, 2])):
        at, size = rng.choice(places) if places else (0, len(out))
        width, code = rng.choice([(2, "<H"), (4, "<I")])
        field = at + 4 + 2 * rng.randrange((size - 4) // 2)
        out[field : field + width] = struct.pack(code, rng.choice(NUMBERS) % (1 << 8 * width))
    return bytes(out)


# --- safetensors ---


def spoiled(rng: random.Random, value: Any) -> Any:
    """The JSON value with one part replaced."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        new = dict(value)
        if rng.random() < 0.2:
            new[rng.choice(["", "a", "__metadata__", key + "x"])] = new.pop(key)
        else:
            new[key] = spoiled(rng, value[key])
        return new
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        kept = [*value[:at], spoiled(rng, value[at]), *value[at + 1 :]]
        return kept if rng.random() < 0.8 else value + kept
    number = rng.choice(NUMBERS) * rng.choice([1, 1, -1])
    return rng.choice([number, number, 1.5, "F32", "BOOL", "C64", None, True, [], {}, [0, 8], "é"])


def safetensors(rng: random.Random, data: bytes) -> bytes:
    """A header that says something else, with the right length before it."""
    try:
        length = struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8 : 8 + length])
    except (ValueError, struct.error, UnicodeDecodeError, RecursionError):
        return damaged(rng, data)
    kind = rng.random()
    text = json.dumps(spoiled(rng, header) if kind < 0.7 else header).encode()
    if kind > 0.85:
        text = damaged(rng, text)
    elif kind > 0.8:
        text = text.replace(b"{", b"{" * rng.choice([2, 2000]), 1)
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def mutant(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.3 or not data:
        return damaged(rng, data)
    if data[:4] == b"PK\x03\x04":
        return archive(rng, data)
    if data[8:9] == b"{":
        return safetensors(rng, data)
    return pickled(rng, data)
