"""Tries a wheel in an empty environment: `tools/try_wheel.py dist/taeda-*.whl [INTERPRETER]`.

The environment has nothing but the wheel: no NumPy, no compilers on its PATH, and neither the build
folder nor this checkout, which the last steps look for among what the processes have mapped. Tried
are training, help and reports on the command line, `pip check`, the name torch, the lowest set of
instructions (where QEMU's user mode is installed, on an emulated processor of 2006, which has no
AVX), and a C++ program that finds the package by `find_package(taeda)`.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLD_CPU = "core2duo"  # SSSE3 at most
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

TRAIN = """
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
assert torch.allclose(torch.linalg.inv(a) @ a, torch.eye(5, dtype=torch.float64))
assert "numpy" not in sys.modules
print("trained: loss", round(losses[0], 3), "->", round(losses[-1], 3))
"""

ALONE = f"""
with open("/proc/self/maps") as maps:
    foreign = [line for line in maps if {str(ROOT)!r} in line]
assert not foreign, foreign
"""

HELP = """
import pydoc  # what help() prints
import taeda as torch
for shown, word in ((torch.nn.Linear, "bias"), (torch.add, "alpha"), (torch.optim.SGD, "lr")):
    assert word in pydoc.render_doc(shown), shown
try:
    torch.nn.Linear(2, 2, biass=True)
except TypeError as error:
    assert str(error).endswith("Did you mean 'bias'?"), error
"""

TORCH = "import torch; assert torch.ones(2).sum() == 2 and torch.__name__ == 'torch'"

# Arguments of Python and a word of what they print. Under the name torch the package is found by
# pip and by isolated processes.
STEPS = [
    (["-c", TRAIN + ALONE], "trained"),
    (["-c", HELP], ""),
    (["-m", "taeda", "--help"], "install-shim"),
    (["-m", "taeda", "--version"], "taeda"),
    (["-m", "taeda.env"], "CPU"),
    (["-m", "pip", "check"], "No broken requirements"),
    (["-m", "taeda", "install-shim"], ""),
    (["-m", "pip", "check"], "No broken requirements"),
    (["-I", "-c", TORCH], ""),
    (["-m", "taeda", "uninstall-shim"], ""),
]

TUTORIAL = ROOT / "docs" / "tutorials" / "cpp.md"  # whose first blocks are the C++ trial


def run(command: list[str], env: dict[str, str], folder: Path, word: str = "") -> str:
    """What it prints; ends this program if it fails, or if `word` is not in it."""
    result = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True)
    if result.returncode or word not in result.stdout:
        sys.exit(f"FAILED {' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout.strip()


def try_python(python: str, env: dict[str, str], folder: Path) -> None:
    for arguments, word in STEPS:
        printed = run([python, *arguments], env, folder, word)
        if word == "trained":
            print(printed)
    lowest = run([python, "-c", TRAIN], env | {"TAEDA_CPU": "baseline"}, folder, "trained")
    print(f"with TAEDA_CPU=baseline {lowest}")


def try_old_cpu(python: str, env: dict[str, str], folder: Path) -> None:
    """Training on an emulated processor without AVX."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or platform.machine() != "x86_64":
        print("not tried on an old processor: there is no qemu-x86_64 here")
        return
    # Under the emulator the launcher of an environment is the interpreter that it links to.
    real = os.path.realpath(python)
    site = next(folder.glob("lib/python*/site-packages"))
    command = [emulator, "-cpu", OLD_CPU, "-E", f"PYTHONPATH={site}", real, "-c", TRAIN]
    print(f"on an emulated {OLD_CPU} {run(command, env, folder, 'trained')}")


def block(page: str, language: str) -> str:
    """The first code of that language on a page."""
    return page.partition(f"\n```{language}\n")[2].partition("\n```\n")[0] + "\n"


def try_cpp(folder: Path) -> None:
    """A C++ program against the installed package, with the system's compiler and CMake alone."""
    if not all(shutil.which(name, path=SYSTEM_PATH) for name in ("cmake", "c++", "make")):
        print("no C++ program tried: there are no cmake, c++ and make here")
        return
    text = TUTORIAL.read_text()
    program, cmake, shell = (block(text, language) for language in ("cpp", "cmake", "sh"))
    (folder / "fit.cc").write_text(program)
    (folder / "CMakeLists.txt").write_text(cmake)
    run(["sh", "-e", "-c", shell], {"PATH": f"{folder / 'bin'}:{SYSTEM_PATH}"}, folder)
    plain = {"PATH": SYSTEM_PATH}
    libraries = run(["ldd", "build/fit"], plain, folder, "libtaeda")
    if str(ROOT) in libraries or "not found" in libraries:
        sys.exit(f"FAILED: the C++ program wants other libraries than the wheel's\n{libraries}")
    printed = run([str(folder / "build" / "fit")], plain, folder, "tensor")
    print("the C++ tutorial, built against the installed package:", printed.split("\n")[-1])


def try_it(wheel: Path, interpreter: str = sys.executable) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        subprocess.run([interpreter, "-m", "venv", name], check=True)
        bin_dir = folder / "bin"
        # Neither compilers nor this project's environment may be what makes it work.
        env = {"PATH": str(bin_dir), "HOME": name}
        python = str(bin_dir / "python")
        run([python, "-m", "pip", "install", "-q", "--no-index", str(wheel)], env, folder)
        try_python(python, env, folder)
        try_old_cpu(python, env, folder)
        try_cpp(folder)


if __name__ == "__main__":
    try_it(Path(sys.argv[1]).resolve(), *sys.argv[2:3])
