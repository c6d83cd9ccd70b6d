"""Damaged files made with knowledge of their structure, for the readers' tests.

Each mutant keeps what surrounds the damage valid: a changed pickle has the right checksum, a
changed header the right length, so that the damage reaches the code behind the outer checks.
"""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile

OPCODES = b"(.0N12qhjr}])tuaesRbcQJKMXGBCTUILFVSPpgld"
OPCODES += b"\x80\x81\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8f\x90\x93\x94\x95"
NUMBERS = (0, 1, 2, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)
LONG_NUMBERS = (*NUMBERS, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
NAMES = (
    b"ctorch\nSize\n",
    b"ctorch\ndevice\n",
    b"ctorch\nFloatStorage\n",
    b"ctorch\nBoolStorage\n",
    b"ctorch\nComplexDoubleStorage\n",
    b"ctorch.storage\nUntypedStorage\n",
    b"ctorch\nfloat64\n",
    b"ctorch._utils\n_rebuild_tensor\n",
    b"ctorch._utils\n_rebuild_tensor_v2\n",
    b"ctorch._utils\n_rebuild_tensor_v3\n",
    b"ctorch._utils\n_rebuild_parameter\n",
    b"ctorch._utils\n_rebuild_parameter_with_state\n",
    b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n",
    b"ctorch._tensor\n_rebuild_from_type_v2\n",
    b"ctorch.nn.parameter\nParameter\n",
    b"ccollections\nOrderedDict\n",
    b"ccollections\nCounter\n",
    b"cbuiltins\nset\n",
    b"cbuiltins\nfrozenset\n",
    b"cbuiltins\ncomplex\n",
    b"cbuiltins\nbytearray\n",
    b"c_codecs\nencode\n",
    b"ccopy_reg\n_reconstructor\n",
    b"c__builtin__\nobject\n",
)
LINES = (
    b"I7\n",
    b"I01\n",
    b"L99999999999L\n",
    b"F1e5\n",
    b"Va\\u00e9\n",
    b"S'a'\n",
    b"p0\n",
    b"g0\n",
)


def changed_bytes(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed, cut out, inserted, swapped or repeated."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(out)) if out else 0
        kind = rng.randrange(6)
        if kind == 0 and out:
            out[at] = rng.randrange(256)
        elif kind == 1 and out:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del out[at : at + rng.choice((1, 1, 2, 8, 50))]
        elif kind == 3:
            out[at:at] = bytes(rng.choices(range(256), k=rng.choice((1, 2, 8))))
        elif kind == 4:
            part = out[at : at + rng.randrange(1, 60)]
            to = rng.randrange(len(out) + 1)
            out[to:to] = part
        else:
            width = rng.choice((1, 2, 4, 8))
            value = rng.choice(LONG_NUMBERS) % 2 ** (8 * width)
            out[at : at + width] = value.to_bytes(width, "little")
    return bytes(out)


def changed_pickle(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        at = rng.randrange(2, len(out))
        kind = rng.randrange(7)
        if kind == 0:
            out[at] = rng.choice(OPCODES)
        elif kind == 1:
            out.insert(at, rng.choice(OPCODES))
        elif kind == 2:
            out[at:at] = rng.choice(NAMES)
        elif kind == 3:
            out[at:at] = b"\x8a\x09" + struct.pack("<Q", rng.choice(LONG_NUMBERS)) + b"\0"
        elif kind == 4:
            starts = [i for i in range(len(out)) if out[i] == ord("c")] or [at]
            begin = rng.choice(starts)
            end = out.find(b"\n", out.find(b"\n", begin) + 1) + 1
            out[begin:end] = rng.choice(NAMES)
        elif kind == 5:
            out[at:at] = rng.choice(LINES)
        else:
            out[:] = changed_bytes(rng, bytes(out)) or b"."
    return bytes(out)


def zip_of(entries: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def changed_checkpoint(rng: random.Random, data: bytes) -> bytes:
    """A mutant of a checkpoint that is a zip file."""
    kind = rng.randrange(10)
    if kind == 0:
        return changed_bytes(rng, data)
    if kind == 1:  # the directory and what follows it
        at = data.index(b"PK\x01\x02")
        return data[:at] + changed_bytes(rng, data[at:])
    if kind == 2:  # a field of a directory entry
        starts = [i for i in range(len(data) - 46) if data[i : i + 4] == b"PK\x01\x02"]
        at = rng.choice(starts) + rng.choice((8, 10, 16, 20, 24, 28, 30, 32, 42))
        value = rng.choice((*NUMBERS, rng.randrange(len(data)))) % 2**32
        return data[:at] + struct.pack("<I", value) + data[at + 4 :]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    names = list(entries)
    pickled = next(name for name in names if name.endswith("data.pkl"))
    if kind == 3:
        name = rng.choice(names)
        entries[name] = changed_bytes(rng, entries[name])
    elif kind == 4:
        del entries[rng.choice(names)]
    else:
        entries[pickled] = changed_pickle(rng, entries[pickled])
    return zip_of(entries, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def changed_safetensors(rng: random.Random, data: bytes) -> bytes:
    """A mutant of a safetensors file."""
    (size,) = struct.unpack_from("<Q", data)
    text, content = data[8 : 8 + size], data[8 + size :]
    kind = rng.randrange(5)
    if kind == 0:
        return changed_bytes(rng, data)
    if kind == 1:
        return struct.pack("<Q", rng.choice(LONG_NUMBERS)) + text + content
    if kind == 2:
        text = changed_bytes(rng, text)
    else:
        fields = json.loads(text)
        for _ in range(rng.choice((1, 1, 2))):
            _change_field(rng, fields)
        text = json.dumps(fields).encode()
    return struct.pack("<Q", len(text)) + text + content


def _change_field(rng: random.Random, fields: dict) -> None:
    names = [name for name in fields if isinstance(fields[name], dict) and fields[name]]
    if not names:
        return
    entry = fields[rng.choice(names)]
    key = rng.choice(list(entry))
    wild = rng.choice((*LONG_NUMBERS, -1, 1.5, None, "F32", "U8", [], {}, True, "é\n\\"))
    if isinstance(entry[key], list) and entry[key] and rng.random() < 0.7:
        entry[key][rng.randrange(len(entry[key]))] = wild
    elif rng.random() < 0.5:
        entry[key] = wild
    else:
        entry[rng.choice(("dtype", "shape", "data_offsets", "more"))] = entry.pop(key)
