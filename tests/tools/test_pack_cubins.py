"""The optional wheel of compiled kernels: taeda loads what it holds for the card, else PTX."""

import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import make_cuda_wheel  # noqa: E402
import nvrtc  # noqa: E402
import pack_cubins  # noqa: E402
from pack_cubins import Module  # noqa: E402

LIBRARIES = Path(taeda._C.__file__).parents[2] / "lib"
# Loads add_f32 and mul_f32, of one module where there are cubins, and exp_f32; twice.
PROGRAM = """
import warnings
warnings.simplefilter("error")
import taeda
from tests.simulator import loaded
x = taeda.ones(3, device="cuda")
for _ in range(2):
    assert (x + x).tolist() == [2.0] * 3 and (x * x).tolist() == [1.0] * 3
    x.exp()
taeda.cuda.synchronize()
print(loaded().count("images"), taeda._C._cuda_has_cubins(0))
"""


def elf(architecture: int, version: int = 7) -> bytes:
    """As much of a cubin as the simulated driver looks at."""
    flags = architecture << 8 if version >= 8 else architecture | architecture << 16
    head = b"\x7fELF\2\1\1\x33" + bytes([version]) + bytes(39)
    return head + struct.pack("<I", flags) + bytes(200)


def write(folder: Path, name: str, image: bytes, stamp: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    modules = [Module(["add_f32", "mul_f32"], image), Module(["sub_f32"], image)]
    (folder / f"{name}.bin").write_bytes(pack_cubins.packed(modules, stamp))
    return folder


def run(folder: Path, **more: str) -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if not k.startswith("TAEDA_")}
    env |= {"TAEDA_CUDA": "sim", "TAEDA_CUBINS": str(folder), **more}
    env["PYTHONPATH"] = f"{ROOT}{os.pathsep}{env.get('PYTHONPATH', '')}"
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)


def loaded(folder: Path) -> list[str]:
    """How many images the driver got, and whether there are cubins for the card, of sm_90."""
    done = run(folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_module_is_loaded_once_and_kernels_without_one_come_from_ptx(tmp_path):
    assert loaded(write(tmp_path / "cubins", "sm_90", elf(90))) == ["1", "True"]
    assert loaded(write(tmp_path / "newer", "sm_90", elf(90, version=8))) == ["1", "True"]


def test_without_a_file_for_the_card_kernels_come_from_ptx(tmp_path):
    assert loaded(write(tmp_path / "cubins", "sm_80", elf(80))) == ["0", "False"]
    assert loaded(tmp_path / "none") == ["0", "False"]


def test_what_the_driver_refuses_comes_from_ptx(tmp_path):
    assert loaded(write(tmp_path / "wrong", "sm_90", elf(100))) == ["1", "True"]
    assert loaded(write(tmp_path / "broken", "sm_90", b"no image at all")) == ["1", "True"]


def test_kernels_of_another_version_are_not_used(tmp_path):
    """A folder that stands in for an installed one, with a file of kernels."""
    libraries = tmp_path / "lib"
    libraries.mkdir()
    for library in LIBRARIES.iterdir():
        if library.name != "taeda_kernels.bin":
            (libraries / library.name).symlink_to(library)
    kernels = libraries / "taeda_kernels.bin"
    kernels.write_bytes(b"TDKERN2\n" + bytes(4))
    folder = write(tmp_path / "cubins", "sm_90", elf(90), pack_cubins.stamp_of(kernels))
    installed = {"LD_LIBRARY_PATH": str(libraries)}
    done = run(folder, **installed)
    assert done.stdout.split() == ["1", "True"], done.stderr
    write(folder, "sm_90", elf(90), stamp=7)
    done = run(folder, **installed)
    assert "sm_90.bin has the kernels of another version of taeda" in done.stderr


def test_a_file_has_the_modules_and_says_where_they_are():
    modules = [Module(["add_f32", "add_f16"], b"\0one" * 99), Module(["f_i64"], bytes(5000))]
    data = pack_cubins.packed(modules, 77)
    stamp, size = struct.unpack_from("<2I", data, 8)
    assert (data[:8], stamp) == (b"TDCUBIN1", 77)
    rows = data[16 : 16 + size].decode().splitlines()
    assert len(rows) == 2
    for row, module in zip(rows, modules, strict=True):
        at, packed, raw, *kernels = row.split()
        assert kernels == module.kernels and int(raw) == len(module.image)
        assert zlib.decompress(data[int(at) :][: int(packed)]) == module.image


class StandIn:
    """A compiler that knows sm_90, and by another program sm_100."""

    def who(self, architecture):
        return {"sm_90": "NVRTC", "sm_100": "ptxas"}.get(architecture, "")

    def module(self, name, text, architecture):
        return Module([name.removesuffix(".cu")], text.encode() + architecture.encode())


def test_architectures_that_nothing_compiles_for_are_left_out_and_named(tmp_path):
    units = {"add_f32.cu": "a", "sub_f32.cu": "b"}
    lines = [*pack_cubins.write(StandIn(), tmp_path, ["sm_90", "sm_100", "sm_120"], units, 5)]
    assert lines[0].endswith("MB, by NVRTC") and lines[1].endswith("MB, by ptxas")
    assert lines[2] == "sm_120: neither NVRTC nor a ptxas knows it: such cards compile PTX"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sm_100.bin", "sm_90.bin"]


def test_the_wheel_installs_beside_taeda(tmp_path):
    write(tmp_path / "cubins", "sm_90", elf(90))
    wheel = make_cuda_wheel.build(tmp_path / "cubins", tmp_path / "dist")
    again = make_cuda_wheel.build(tmp_path / "cubins", tmp_path / "again")
    assert wheel.read_bytes() == again.read_bytes()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
    target = tmp_path / "site-packages"
    done = subprocess.run(
        [*pip, "--no-index", "-q", "--target", target, wheel], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert loaded(target / "taeda_cuda") == ["1", "True"]
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"taeda_cuda-{make_cuda_wheel.version()}.dist-info/METADATA")
    assert f"Requires-Dist: taeda (=={make_cuda_wheel.version()})" in metadata.decode()


def test_kernels_that_nvrtc_compiles_are_for_their_card(tmp_path):
    path = nvrtc.find_library()
    if path is None:
        pytest.skip("no NVRTC: pip install -r tools/requirements-cuda.txt")
    compiler = pack_cubins.Compiler(path, cache=None)
    text = '#include "kernels/cuda/text/kernel.cuh"\nstruct A { float* x; };\n'
    body = "inline void one(const A& a) { a.x[threadIdx.x] = 1; }\n"
    kernels = "".join(f"TD_GLOBAL({name}, A, one)\n" for name in ("add_f32", "mul_f32"))
    units = {"some.cu": text + "TD_FN " + body.removeprefix("inline ") + kernels}
    for architecture in ("sm_80", "sm_90", "sm_100"):
        assert compiler.who(architecture) or architecture == "sm_100"
        lines = [*pack_cubins.write(compiler, tmp_path / "cubins", [architecture], units, 0)]
        assert len(lines) == 1
    assert loaded(tmp_path / "cubins") == ["1", "True"]
    (tmp_path / "cubins" / "sm_90.bin").unlink()
    assert loaded(tmp_path / "cubins") == ["0", "False"]
