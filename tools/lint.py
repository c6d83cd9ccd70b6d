"""All static checks: `make lint`. With --fix, applies the formatters instead.

C++: clang-format; other faults are left to compiler warnings and the sanitizers. Python: ruff's
rules and formatting, mypy with and without the type stubs of the build. The project's own rules:
includes, symbols and what the compiler read point one way (check_layers.py, check_links.py,
check_dependencies.py), only generated code calls the table's kernels (check_kernels.py), no list of
operators outside the table (check_operator_lists.py), and the table itself, which the generator
reads in full (unknown keys are errors).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
PYTHON_FOLDERS = ["gen", "tools", "bench", "examples", "tests", "python"]


def tracked(*patterns: str) -> list[str]:
    output = subprocess.check_output(["git", "ls-files", *patterns], cwd=ROOT, text=True)
    return [name for name in output.split("\n") if name and (ROOT / name).exists()]


def run(title: str, command: list[str], **env: str) -> bool:
    result = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    good = result.returncode == 0
    print(f"{'ok    ' if good else 'FAILED'} {title}", flush=True)
    if not good:
        print(result.stdout.decode(errors="replace").rstrip())
    return good


def with_stubs(mypy: list[str], staged: str) -> list[bool]:
    """The package as users' type checkers see it, with the stubs that the build has made."""
    if not (ROOT / staged / "taeda" / "_C.pyi").exists():
        return []
    command = [*mypy, "--cache-dir", ".mypy_cache/stubs", f"{staged}/taeda"]
    return [run("mypy with the stubs", command, MYPYPATH=staged)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--fix", action="store_true", help="apply the formatters")
    args = parser.parse_args()
    python = [sys.executable]
    # Without the build that the environment leads to, which may be another one.
    mypy = [*python, "-m", "mypy", "--no-error-summary", "--no-site-packages"]
    cxx = tracked("*.cc", "*.h", "*.cuh")
    folders = [folder for folder in PYTHON_FOLDERS if (ROOT / folder).exists()]
    if args.fix:
        done = [
            run("clang-format", [str(BIN / "clang-format"), "-i", *cxx]),
            run("ruff fixes", [*python, "-m", "ruff", "check", "--fix", "-q", *folders]),
            run("ruff format", [*python, "-m", "ruff", "format", "-q", *folders]),
        ]
        return 0 if all(done) else 1

    results = [
        run("clang-format", [str(BIN / "clang-format"), "--dry-run", "-Werror", *cxx]),
        run("ruff check", [*python, "-m", "ruff", "check", "-q", *folders]),
        run("ruff format", [*python, "-m", "ruff", "format", "--check", "-q", *folders]),
        run("mypy", mypy),
        *with_stubs(mypy, f"{args.build}/python"),
        run("layers", [*python, "tools/check_layers.py"]),
        run("links", [*python, "tools/check_links.py", "--build", args.build]),
        run("dependencies", [*python, "tools/check_dependencies.py", "--build", args.build]),
        run("kernel calls", [*python, "tools/check_kernels.py"]),
        run("operator lists", [*python, "tools/check_operator_lists.py"]),
        run("operator table", [*python, "-m", "gen", "--out", f"{args.build}/lint-generated"]),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
