"""The optional wheel of compiled kernels: taeda loads what it holds for the card, else PTX."""

import lzma
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import make_cuda_wheel  # noqa: E402
import nvrtc  # noqa: E402
import pack_cubins  # noqa: E402
import ptxas  # noqa: E402
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


def loaded(folder: Path, card: int = 90) -> list[str]:
    """How many images the driver got, and whether there are cubins for the card."""
    done = run(folder, TAEDA_SIM_CARD=str(card))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_module_is_loaded_once_and_kernels_without_one_come_from_ptx(tmp_path):
    assert loaded(write(tmp_path / "cubins", "sm_90", elf(90))) == ["1", "True"]
    assert loaded(write(tmp_path / "newer", "sm_90", elf(90, version=8))) == ["1", "True"]


def test_a_card_takes_the_newest_file_of_its_major_number(tmp_path):
    folder = write(tmp_path / "cubins", "sm_80", elf(80))
    write(folder, "sm_120", elf(120, version=8))
    for card, any_for_it in ((80, True), (89, True), (75, False), (90, False), (100, False),
                             (120, True), (121, True)):  # fmt: skip
        assert loaded(folder, card) == [str(int(any_for_it)), str(any_for_it)]


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


def test_without_liblzma_kernels_come_from_ptx(tmp_path):
    folder = write(tmp_path / "cubins", "sm_90", elf(90))
    (tmp_path / "liblzma.so.5").touch()
    done = run(folder, LD_LIBRARY_PATH=str(tmp_path))
    assert "sm_90.bin is not used, because there is no liblzma.so.5" in done.stderr


def test_a_file_has_the_modules_and_says_where_they_are():
    modules = [Module(["add_f32", "add_f16"], b"\0one" * 99), Module(["f_i64"], bytes(5000))]
    data = pack_cubins.packed(modules, 77)
    stamp, size = struct.unpack_from("<2I", data, 8)
    assert (data[:8], stamp) == (b"TDCUBIN2", 77)
    rows = data[16 : 16 + size].decode().splitlines()
    assert len(rows) == 2
    for row, module in zip(rows, modules, strict=True):
        at, packed, raw, *kernels = row.split()
        assert kernels == module.kernels and int(raw) == len(module.image)
        assert lzma.decompress(data[int(at) :][: int(packed)]) == module.image


def test_architectures_that_nothing_compiles_for_are_left_out_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr(ptxas.Ptxas, "architectures", {"sm_90"})
    compiler = ptxas.Compiler(nvrtc.Nvrtc(tmp_path), ptxas.Ptxas(tmp_path))
    lines = [*pack_cubins.write(compiler, tmp_path / "cubins", ["sm_90", "sm_100"], {}, 5)]
    assert lines[0].startswith("sm_90: ") and lines[0].endswith(" MB")
    assert lines[1] == "sm_100: this ptxas does not know it: such cards compile PTX"
    assert [path.name for path in (tmp_path / "cubins").iterdir()] == ["sm_90.bin"]


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


def test_compiled_kernels_are_for_their_card(tmp_path):
    compiler = ptxas.Compiler.find(nvrtc.Cache(None))
    if compiler is None:
        pytest.skip(ptxas.MISSING)
    text = '#include "kernels/cuda/text/kernel.cuh"\nstruct A { float* x; };\n'
    body = "TD_FN void one(const A& a) { a.x[threadIdx.x] = 1; }\n"
    kernels = "".join(f"TD_GLOBAL({name}, A, one)\n" for name in ("add_f32", "mul_f32"))
    units, folder = {"some.cu": text + body + kernels}, tmp_path / "cubins"
    assert len([*pack_cubins.write(compiler, folder, ["sm_80", "sm_90"], units, 0)]) == 2
    assert loaded(folder) == ["1", "True"]
    (folder / "sm_90.bin").unlink()
    assert loaded(folder) == ["0", "False"]
