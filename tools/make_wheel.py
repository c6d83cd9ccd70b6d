"""Builds dist/taeda-*.whl, tries it in an empty environment: `make wheel`, `make wheels`.

The wheel's platform tag names the oldest C library that has every symbol its libraries ask for
(manylinux, PEP 600). The trial environment has nothing but the wheel: no NumPy, no compilers on its
PATH, and the build folder out of reach. Where QEMU's user mode is installed, the wheel also trains
on an emulated processor of 2006, which has no AVX. A wheel above a size limit, packed or on disk,
is an error, and so is metadata that `twine check` refuses, where twine is installed.

`--all` makes one for each CPython from 3.11 to 3.14 that is found on the PATH or under pyenv and
has its headers; each builds in an environment of its own in .cache/wheels.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_MB = 25.0
DISK_LIMIT_MB = 80.0
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
OLD_CPU = "core2duo"
TWINE = "twine==7.0.0"
# Runs in the trial environment: an import, a training step, the folders for C++.
TRIAL = """
import sys
import taeda as torch
assert "site-packages" in torch.__file__, torch.__file__
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                            torch.nn.Linear(4 * 6 * 6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 3, (16,))
losses = []
for _ in range(20):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.5 * losses[0], losses
a = torch.randn(5, 5, dtype=torch.float64)
assert (a @ a.T).shape == (5, 5)
assert "numpy" not in sys.modules
import pydoc  # what help() prints
for shown, word in ((torch.nn.Linear, "bias"), (torch.add, "alpha"), (torch.optim.SGD, "lr")):
    assert word in pydoc.render_doc(shown), shown
try:
    torch.nn.Linear(2, 2, biass=True)
except TypeError as error:
    assert str(error).endswith("Did you mean 'bias'?"), error
print("trained in the empty environment: loss", round(losses[0], 3), "->", round(losses[-1], 3))
"""

# Arguments of Python: under the name torch the package is found by pip and by isolated processes.
SHIM_TRIAL = [
    ["-m", "taeda", "install-shim"],
    ["-m", "pip", "check"],
    ["-I", "-c", "import torch; assert torch.ones(2).sum() == 2 and torch.__name__ == 'torch'"],
    ["-m", "taeda", "uninstall-shim"],
]


HEADERS = """
import os, sys, sysconfig
header = os.path.join(sysconfig.get_path("include"), "Python.h")
right = sys.implementation.name == "cpython" and os.path.exists(header)
print("%d.%d" % sys.version_info[:2] if right else "", sys.executable)
"""


def interpreters() -> dict[str, str]:
    """Version -> a CPython of it that has its headers, for the versions that wheels are for."""
    found: dict[str, str] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        candidates = [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python3"))]
        if on_path := shutil.which(f"python{version}"):
            candidates.append(on_path)
        for python in candidates:
            result = subprocess.run([python, "-c", HEADERS], capture_output=True, text=True)
            named, _, path = result.stdout.strip().partition(" ")
            if named == version:  # what was found may be a launcher; this is the interpreter
                found[version] = path
    return found


def build_environment(version: str, python: str) -> str:
    """The interpreter of an environment with what building needs (tools/requirements.txt)."""
    folder = ROOT / ".cache" / "wheels" / version
    inside = folder / "bin" / "python"
    wanted = (ROOT / "tools" / "requirements.txt").read_text().partition("# test")[0]
    if not inside.exists() or (folder / "requirements.txt").read_text() != wanted:
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
        (folder / "requirements.txt").write_text(wanted)
        pip = [str(inside), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        subprocess.run([*pip, "-r", str(folder / "requirements.txt")], check=True)
    return str(inside)


def install_twine() -> None:
    folder = ROOT / ".cache" / "wheels" / "twine"
    if not (folder / "bin" / "twine").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "pip"), "--disable-pip-version-check", "-q", "install"]
        subprocess.run([*pip, TWINE], check=True)


def build(build_dir: str, python: str = sys.executable) -> Path:
    dist = ROOT / "dist"
    tag = subprocess.check_output(
        [python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"], text=True
    ).strip()
    for old in dist.glob(f"taeda-*-{tag}-*.whl"):
        old.unlink()
    # Programs of the environment (ninja) come first.
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    env = dict(os.environ, CMAKE_GENERATOR="Ninja", PATH=path)
    command = [python, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "-q", "-w", "dist"]
    command += ["--config-settings", f"build-dir={build_dir}"]  # -C is newer than Debian 12's pip
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    (wheel,) = dist.glob(f"taeda-*-{tag}-*.whl")
    retag = [python, "-m", "wheel", "tags", "--remove"]
    retag += ["--platform-tag", platform_tag(wheel), str(wheel)]
    subprocess.run(retag, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = dist.glob(f"taeda-*-{tag}-*.whl")
    return wheel


def platform_tag(wheel: Path) -> str:
    """manylinux_X_Y_ARCH with the newest glibc version that a library in the wheel requires."""
    newest = (2, 17)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".so" not in Path(name).name:
                continue
            symbols = subprocess.check_output(
                ["objdump", "-T", archive.extract(name, folder)], text=True
            )
            for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols):
                newest = max(newest, (int(major), int(minor)))
    return f"manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"


def contents(wheel: Path) -> dict[str, tuple[int, int]]:
    """Top-level part -> (bytes in the wheel, bytes on disk)."""
    parts: dict[str, tuple[int, int]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for item in archive.infolist():
            path = item.filename.split("/")
            name = "/".join(path[:3]) if path[:2] == ["taeda", "lib"] else "/".join(path[:2])
            packed, plain = parts.get(name, (0, 0))
            parts[name] = (packed + item.compress_size, plain + item.file_size)
    return parts


def check_names(wheel: Path) -> None:
    """The simulated driver is for tests of the library, not for its users."""
    with zipfile.ZipFile(wheel) as archive:
        simulated = [name for name in archive.namelist() if "taeda_sim" in name]
    if simulated:
        sys.exit(f"the wheel holds the simulated driver: {', '.join(simulated)}")


def check_metadata(wheel: Path) -> None:
    """What an index would refuse: `twine check`, where twine is installed."""
    program = ROOT / ".cache" / "wheels" / "twine" / "bin" / "twine"
    if not program.exists():
        print("its metadata is not checked: `make wheels` installs twine")
        return
    subprocess.run([str(program), "check", "--strict", str(wheel)], check=True)


def try_old_cpu(python: str, env: dict[str, str], folder: str) -> None:
    """The trial on an emulated processor without AVX."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or platform.machine() != "x86_64":
        return
    # Under the emulator the launcher of an environment is the interpreter that it links to.
    real = os.path.realpath(python)
    site = next(Path(folder).glob("lib/python*/site-packages"))
    command = [emulator, "-cpu", OLD_CPU, "-E", f"PYTHONPATH={site}", real, "-c", TRIAL]
    subprocess.run(command, env=env, cwd=folder, check=True)
    print(f"the same on an emulated {OLD_CPU}")


def try_it(wheel: Path, interpreter: str = sys.executable) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        bin_dir = Path(folder) / "bin"
        # Neither compilers nor this project's environment may be what makes it work.
        env = {"PATH": str(bin_dir), "HOME": folder}
        python = str(bin_dir / "python")
        install = [python, "-m", "pip", "install", "-q", "--no-index", str(wheel)]
        subprocess.run(install, env=env, cwd=folder, check=True)
        subprocess.run([python, "-c", TRIAL], env=env, cwd=folder, check=True)
        try_old_cpu(python, env, folder)
        for step in SHIM_TRIAL:
            subprocess.run([python, *step], env=env, cwd=folder, check=True)
        cmake_dir = subprocess.check_output(
            [python, "-m", "taeda", "--cmake-dir"], env=env, cwd=folder, text=True
        ).strip()
        if shutil.which("cmake") and shutil.which("g++"):
            try_cpp(Path(folder), cmake_dir)


def try_cpp(folder: Path, cmake_dir: str) -> None:
    """A C++ program against the installed package, through find_package(taeda)."""
    (folder / "hello.cc").write_text((ROOT / "examples" / "cpp" / "hello.cc").read_text())
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(hello CXX)\nfind_package(taeda REQUIRED)\n"
        "add_executable(hello hello.cc)\ntarget_link_libraries(hello taeda::taeda)\n"
    )
    command = ["cmake", "-G", "Ninja", "-S", str(folder), "-B", str(folder / "out")]
    command += [f"-Dtaeda_DIR={cmake_dir}"]
    for step in (command, ["ninja", "-C", str(folder / "out")], [str(folder / "out" / "hello")]):
        result = subprocess.run(step, capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{' '.join(step)}\n{result.stdout}{result.stderr}")
    print("C++ program built against the installed package:", result.stdout.strip().split("\n")[-1])


def within_limits(packed: float, on_disk: float) -> bool:
    """Whether the wheel is as small as promised, in MB; says so if not."""
    too_large = [
        f"the wheel has {size:.2f} MB {what}, more than {limit:.0f} MB"
        for size, what, limit in ((packed, "packed", LIMIT_MB), (on_disk, "on disk", DISK_LIMIT_MB))
        if size > limit
    ]
    for line in too_large:
        print(line)
    return not too_large


def make(build_dir: str, python: str, trial: bool) -> bool:
    """Builds a wheel and tries it; whether it is as small as promised."""
    wheel = build(build_dir, python)
    total = 0
    for name, (packed, plain) in sorted(contents(wheel).items(), key=lambda item: -item[1][0]):
        print(f"{packed / 1e6:8.2f} MB packed {plain / 1e6:8.2f} MB on disk  {name}")
        total += plain
    size = wheel.stat().st_size / 1e6
    print(f"{size:8.2f} MB packed {total / 1e6:8.2f} MB on disk  {wheel.relative_to(ROOT)}")
    check_names(wheel)
    check_metadata(wheel)
    if trial:
        try_it(wheel, python)
    return within_limits(size, total / 1e6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", default="build-wheel")
    parser.add_argument("--no-trial", action="store_true", help="only build")
    parser.add_argument("--all", action="store_true", help="for every CPython that is found")
    args = parser.parse_args()
    if not args.all:
        return 0 if make(args.build_dir, sys.executable, not args.no_trial) else 1
    found = interpreters()
    missing = [version for version in VERSIONS if version not in found]
    if missing:
        print(f"no CPython {', '.join(missing)} with headers here: no wheel for it")
    install_twine()
    small = True
    for version, python in found.items():
        print(f"CPython {version}: {python}", flush=True)
        inside = build_environment(version, python)
        small = make(f"{args.build_dir}-{version}", inside, not args.no_trial) and small
    return 0 if small and found else 1


if __name__ == "__main__":
    sys.exit(main())
