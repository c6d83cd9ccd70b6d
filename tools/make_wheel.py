"""Builds dist/taeda-*.whl and tries it in an empty virtual environment: `make wheel`.

The wheel's platform tag names the oldest C library that has every symbol its libraries ask for
(manylinux, PEP 600). The trial environment has nothing but the wheel: no NumPy, no compilers on its
PATH, and the build folder out of reach. A wheel above a size limit, packed or on disk, is an error.
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
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_MB = 25.0
DISK_LIMIT_MB = 80.0
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
print("trained in the empty environment: loss", round(losses[0], 3), "->", round(losses[-1], 3))
"""

# Arguments of Python: under the name torch the package is found by pip and by isolated processes.
SHIM_TRIAL = [
    ["-m", "taeda", "install-shim"],
    ["-m", "pip", "check"],
    ["-I", "-c", "import torch; assert torch.ones(2).sum() == 2 and torch.__name__ == 'torch'"],
    ["-m", "taeda", "uninstall-shim"],
]


def build(build_dir: str) -> Path:
    dist = ROOT / "dist"
    for old in dist.glob("taeda-*.whl"):
        old.unlink()
    env = dict(os.environ, CMAKE_GENERATOR="Ninja")
    command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "-q", "-w", "dist"]
    command += ["--config-settings", f"build-dir={build_dir}"]  # -C is newer than Debian 12's pip
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    (wheel,) = dist.glob("taeda-*.whl")
    retag = [sys.executable, "-m", "wheel", "tags", "--remove"]
    retag += ["--platform-tag", platform_tag(wheel), str(wheel)]
    subprocess.run(retag, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = dist.glob("taeda-*.whl")
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


def try_it(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin_dir = Path(folder) / "bin"
        # Neither compilers nor this project's environment may be what makes it work.
        env = {"PATH": str(bin_dir), "HOME": folder}
        python = str(bin_dir / "python")
        install = [python, "-m", "pip", "install", "-q", "--no-index", str(wheel)]
        subprocess.run(install, env=env, cwd=folder, check=True)
        subprocess.run([python, "-c", TRIAL], env=env, cwd=folder, check=True)
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", default="build-wheel")
    parser.add_argument("--no-trial", action="store_true", help="only build")
    args = parser.parse_args()
    wheel = build(args.build_dir)
    total_packed = total_plain = 0
    for name, (packed, plain) in sorted(contents(wheel).items(), key=lambda item: -item[1][0]):
        print(f"{packed / 1e6:8.2f} MB packed {plain / 1e6:8.2f} MB on disk  {name}")
        total_packed, total_plain = total_packed + packed, total_plain + plain
    size = wheel.stat().st_size / 1e6
    print(f"{size:8.2f} MB packed {total_plain / 1e6:8.2f} MB on disk  {wheel.relative_to(ROOT)}")
    check_names(wheel)
    if not args.no_trial:
        try_it(wheel)
    return 0 if within_limits(size, total_plain / 1e6) else 1


if __name__ == "__main__":
    sys.exit(main())
