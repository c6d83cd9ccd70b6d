"""Builds dist/taeda-*.whl, tries it in an empty environment: `make wheel`, `make wheels`.

The wheel's platform tag names the oldest C library that has every symbol its libraries ask for
(manylinux, PEP 600). What the trial does stands in try_wheel.py. A wheel above a size limit, packed
or on disk, is an error, and so is metadata that `twine check` refuses, where twine is installed.

`--all` makes one for each CPython from 3.11 to 3.14 that is found on the PATH or under pyenv and
has its headers. They share a build folder, and this interpreter runs the build's steps for all of
them, so that libtaeda is compiled once and for each version only the bindings are.
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
import time
import zipfile
from pathlib import Path

from try_wheel import try_it

ROOT = Path(__file__).resolve().parent.parent
LIMIT_MB = 25.0
DISK_LIMIT_MB = 80.0
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TWINE = "twine==7.0.0"


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


def install_backend() -> Path:
    """The folder that has scikit-build-core and wheel, which are Python alone.

    All interpreters use the same one: scikit-build-core empties a build folder that a copy of it
    elsewhere has configured.
    """
    folder = ROOT / ".cache" / "wheels" / "backend"
    lines = (ROOT / "tools" / "requirements.txt").read_text().split("\n")
    wanted = [line for line in lines if line.startswith(("scikit-build-core=", "wheel="))]
    installed = folder / "requirements.txt"
    if not installed.exists() or installed.read_text().split("\n") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        subprocess.run([*pip, "--target", str(folder), *wanted], check=True)
        installed.write_text("\n".join(wanted))
    return folder


def with_pip(version: str, python: str) -> str:
    """The interpreter of an environment of that Python, which has pip and nothing else."""
    folder = ROOT / ".cache" / "wheels" / version
    inside = folder / "bin" / "python"
    if not inside.exists():
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
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
    # Programs of this interpreter's environment (ninja) come first. `make` calls the compiler c++:
    # under the same name, what it has compiled is found in the compiler cache.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = dict(os.environ, CMAKE_GENERATOR="Ninja", PATH=path, PYTHONPATH=str(install_backend()))
    env.setdefault("CXX", "c++")
    command = [python, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "-q", "-w", "dist"]
    defined = {"TAEDA_BUILD_PYTHON": sys.executable, "CMAKE_PREFIX_PATH": sys.prefix}  # as `make`
    settings = [f"build-dir={build_dir}", *(f"cmake.define.{n}={v}" for n, v in defined.items())]
    for setting in settings:
        command += ["--config-settings", setting]  # -C is newer than Debian 12's pip
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    (wheel,) = dist.glob(f"taeda-*-{tag}-*.whl")
    retag = [python, "-m", "wheel", "tags", "--remove"]
    retag += ["--platform-tag", platform_tag(wheel), str(wheel)]
    subprocess.run(retag, env=env, check=True, stdout=subprocess.DEVNULL)
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


def within_limits(packed: float, on_disk: float) -> bool:
    """Whether the wheel is as small as promised, in MB; says so if not."""
    too_large = [
        f"the wheel has {size:.2f} MB {what}, more than {limit} MB"
        for size, what, limit in ((packed, "packed", LIMIT_MB), (on_disk, "on disk", DISK_LIMIT_MB))
        if size > limit
    ]
    for line in too_large:
        print(line)
    return not too_large


def make(build_dir: str, python: str, trial: bool) -> bool:
    """Builds a wheel and tries it; whether it is as small as promised."""
    begin = time.monotonic()
    wheel = build(build_dir, python)
    print(f"built in {time.monotonic() - begin:.0f} s")
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
        inside = with_pip(version, python)
        small = make(args.build_dir, inside, not args.no_trial) and small
    return 0 if small and found else 1


if __name__ == "__main__":
    sys.exit(main())
