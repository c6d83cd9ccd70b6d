"""Builds dist/taeda_cuda-*.whl: `make cuda-wheel`.

An optional wheel beside taeda's: kernels that are compiled already, a file for each architecture
(tools/pack_cubins.py), so that a kernel's first call waits for no compiler. It is data alone, of
the same version as taeda and for its kernels; without it, and on other cards, PTX is compiled.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import ptxas
from cuda_check import units
from pack_cubins import ARCHITECTURES, KERNELS, stamp_of, write

ROOT = Path(__file__).resolve().parent.parent

MODULE = '"""Compiled kernels for CUDA devices, which taeda finds beside itself."""\n'
METADATA = """Metadata-Version: 2.1
Name: taeda-cuda
Version: {version}
Summary: Compiled kernels of taeda for CUDA devices ({architectures})
License-Expression: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: taeda (=={version})
Description-Content-Type: text/plain

taeda has its kernels for CUDA devices as PTX, which the driver compiles for the card when one is
first used. With this package it loads them compiled, on cards of {architectures}.
"""
WHEEL = """Wheel-Version: 1.0
Generator: taeda tools/make_cuda_wheel.py
Root-Is-Purelib: true
Tag: py3-none-any
"""
DATE = (2026, 1, 1, 0, 0, 0)  # the same files make the same wheel


def version() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def record(files: dict[str, bytes], name: str) -> bytes:
    rows = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},"
        f"{len(data)}"
        for path, data in files.items()
    ]
    return "\n".join([*rows, f"{name},,", ""]).encode()


def build(folder: Path, dist: Path) -> Path:
    """A wheel of the files of cubins in a folder."""
    cubins = sorted(folder.glob("sm_*.bin"))
    known = ", ".join(path.stem for path in cubins)
    info = f"taeda_cuda-{version()}.dist-info"
    files = {"taeda_cuda/__init__.py": MODULE.encode()}
    files |= {f"taeda_cuda/{path.name}": path.read_bytes() for path in cubins}
    metadata = METADATA.format(version=version(), architectures=known)
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = WHEEL.encode()
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD")
    dist.mkdir(parents=True, exist_ok=True)
    wheel = dist / f"taeda_cuda-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path, DATE), data, zipfile.ZIP_DEFLATED)
    return wheel


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architectures", nargs="*", default=ARCHITECTURES)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    compiler = ptxas.Compiler.find()
    if compiler is None:
        print(ptxas.MISSING)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder, stamp = Path(name), stamp_of(KERNELS)
        for line in write(compiler, folder, args.architectures, units(), stamp, args.jobs):
            print(line, flush=True)
        wheel = build(folder, ROOT / "dist")
    print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
