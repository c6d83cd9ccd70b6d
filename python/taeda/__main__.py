"""``python -m taeda script.py args``: runs a PyTorch program on taeda.

python -m taeda script.py ARGS...     the script, as __main__
python -m taeda -m MODULE ARGS...     a module, as `python -m` does
python -m taeda -c CODE ARGS...       a string
python -m taeda --cmake-dir           where taedaConfig.cmake lies
python -m taeda --version
"""

from __future__ import annotations

import os
import runpy
import sys


def cmake_dir() -> str:
    """The folder for taeda_DIR: of the installed package, or the build folder it is used from."""
    package = os.path.dirname(os.path.abspath(__file__))
    build = os.path.dirname(os.path.dirname(package))
    if os.path.exists(os.path.join(build, "taedaConfig.cmake")):
        return build
    return os.path.join(package, "lib", "cmake", "taeda")


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        raise SystemExit(0 if arguments else 2)
    first = arguments[0]
    if first == "--cmake-dir":
        print(cmake_dir())
        return
    if first == "--version":
        from taeda import version

        print(f"taeda {version.taeda} (torch {version.__version__})")
        return
    from taeda import _hook

    _hook.install()
    if first in ("-m", "-c"):
        if len(arguments) < 2:
            raise SystemExit(f"python -m taeda {first}: argument expected")
        # As Python itself does, the current folder is searched first.
        if sys.path[0] != "":
            sys.path.insert(0, "")
        sys.argv = [first, *arguments[2:]]
        if first == "-m":
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            import types

            module = types.ModuleType("__main__")
            sys.modules["__main__"] = module
            exec(compile(arguments[1], "<string>", "exec"), module.__dict__)
        return
    if first.startswith("-"):
        raise SystemExit(f"python -m taeda: unknown option {first}")
    if not os.path.exists(first):
        raise SystemExit(f"python -m taeda: no such file: {first}")
    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(first)))
    runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
