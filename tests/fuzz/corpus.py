"""Honest files for the readers: the seeds that ``mutate.py`` damages.

python -m tests.fuzz.corpus FOLDER    # writes them out, for libFuzzer
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections import OrderedDict
from pathlib import Path

import taeda
from taeda import safetensors as files


def saved(obj: object, protocol: int = 2) -> bytes:
    file = io.BytesIO()
    taeda.save(obj, file, pickle_protocol=protocol)
    return file.getvalue()


def archives() -> list[bytes]:
    model = taeda.nn.Sequential(taeda.nn.Linear(2, 3), taeda.nn.BatchNorm1d(3))
    optimizer = taeda.optim.Adam(model.parameters())
    model(taeda.rand(4, 2)).sum().backward()
    optimizer.step()
    shared = taeda.arange(12.0)
    mixed = {
        "numbers": [0, -1, 2**40, 2**70, 1.5, float("nan"), 1j, True, None, "é", b"\0"],
        ("a", 1): taeda.Size([1, 2]),
        "set": {1, 2},
        "dtype": taeda.bfloat16,
        "device": taeda.device("cpu"),
        "ordered": OrderedDict(x=1),
    }
    views = [shared[2:5], shared.reshape(3, 4).t(), taeda.nn.Parameter(shared[:1])]
    dtypes = [taeda.zeros(3).to(d) for d in (taeda.bool, taeda.int8, taeda.half, taeda.cdouble)]
    objects = [taeda.ones(2), model.state_dict(), optimizer.state_dict(), mixed, views, dtypes]
    return [saved(obj, protocol) for obj in objects for protocol in (0, 1, 2, 4)]


def text(content: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(content)) + content


def legacy() -> list[bytes]:
    """The format before zip files: pickles one after another, then the storages' bytes."""
    file = io.BytesIO()
    for part in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True}):
        pickle.dump(part, file, 2)
    parts = [text(b"storage"), b"ctorch\nFloatStorage\n", text(b"0"), text(b"cpu"), b"K\4N"]
    storage = b"(" + b"".join(parts) + b"tQ"
    file.write(
        b"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0K\2K\2\x86K\2K\1\x86\x89"
    )
    file.write(b"ccollections\nOrderedDict\n)RtR.")
    pickle.dump(["0"], file, 2)
    file.write(struct.pack("<q4f", 4, 1, 2, 3, 4))
    return [file.getvalue()]


def safetensors() -> list[bytes]:
    one = {"a": taeda.ones(2, 3), "é\n": taeda.arange(4), "empty": taeda.ones(0, 2)}
    two = {f"layer.{i}.weight": taeda.zeros(i).bfloat16() for i in range(5)}
    return [
        files.save(one, metadata={"format": "pt"}),
        files.save(two),
        files.save({}),
    ]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(safetensors()):
        (folder / f"{i}.safetensors").write_bytes(data)


if __name__ == "__main__":
    main()
