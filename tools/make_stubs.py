"""The package's type stubs, from the operator table and the Python sources: a step of the build.

    make_stubs.py --out DIR [--depfile FILE]

Writes the files of tools/stubs below DIR. What was read to make them stands in FILE in Make's
format, so that the build makes them anew when one of these files changes, and then only.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gen import table  # noqa: E402
from gen.schema import SchemaError  # noqa: E402

from stubs import package, sources  # noqa: E402


def dependencies() -> list[Path]:
    """The table, the sources that were read, and the modules of the project that ran."""
    modules = [m for name, m in sys.modules.items() if name.split(".")[0] in ("gen", "stubs")]
    ours = {Path(module.__file__) for module in modules if module.__file__} | {Path(__file__)}
    return sorted({*(ROOT / "ops").glob("**/*.yaml"), *sources.read, *ours})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the stubs")
    parser.add_argument("--depfile", type=Path, help="file for the dependencies")
    args = parser.parse_args()
    try:
        files = package.generate(table.load(ROOT / "ops"))
    except SchemaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, text in files.items():
        path = args.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if args.depfile:
        needed = " ".join(str(path).replace(" ", "\\ ") for path in dependencies())
        args.depfile.write_text(f"{args.out / next(iter(files))}: {needed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
