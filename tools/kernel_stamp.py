"""Writes a hash of the kernels' text into a C++ file: `python tools/kernel_stamp.py UNITS OUT`.

libtaeda_sim and the emulator's libraries each have it (src/device/sim/emulator.cc), so that kernels
which were built from other text than launchers are refused. OUT.d names what was read, for ninja.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import nvrtc


def main() -> None:
    units, out = (Path(argument) for argument in sys.argv[1:])
    files = sorted(units.glob("*.cu"))
    texts = {file.name: file.read_text() for file in files} | nvrtc.all_headers()
    stamp = hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(
        "// Made by tools/kernel_stamp.py.\n"
        f'extern "C" const char* taeda_kernel_stamp() {{ return "{stamp}"; }}\n'
    )
    read = [*files, *(nvrtc.SRC / n for n in nvrtc.all_headers() if (nvrtc.SRC / n).exists())]
    Path(f"{out}.d").write_text(f"{out}: {' '.join(map(str, read))}\n")


if __name__ == "__main__":
    main()
