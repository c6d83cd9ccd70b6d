"""``python -m taeda script.py args``: runs a PyTorch program on taeda.

python -m taeda script.py ARGS...     the script, as __main__
python -m taeda -m MODULE ARGS...     a module, as `python -m` does
python -m taeda -c CODE ARGS...       a string
python -m taeda - ARGS...             what comes on standard input
python -m taeda --check PROGRAM [FOLDER...]   the names of torch in it that taeda lacks
python -m taeda install-shim          from now on, ``import torch`` is taeda in this environment
python -m taeda uninstall-shim        no longer
python -m taeda --cmake-dir           where taedaConfig.cmake lies
python -m taeda --version

In Python processes that the program starts, ``import torch`` means taeda too.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from types import CodeType, ModuleType, TracebackType


def cmake_dir() -> str:
    """The folder for taeda_DIR: of the installed package, or the build folder it is used from."""
    package = os.path.dirname(os.path.abspath(__file__))
    build = os.path.dirname(os.path.dirname(package))
    if os.path.exists(os.path.join(build, "taedaConfig.cmake")):
        return build
    return os.path.join(package, "lib", "cmake", "taeda")


def _of_the_program(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames that only lead to the program: as `python` shows it."""
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while traceback is not None and traceback.tb_frame.f_code.co_filename in ours:
        traceback = traceback.tb_next
    return traceback


def _run(program: Callable[[], object]) -> None:
    """Calls `program`; an exception is shown without our frames and ends the process as always."""
    try:
        program()
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = _of_the_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        sys.excepthook = lambda *shown: None
        raise


def _run_code(read: Callable[[], str | bytes], name: str, file: str | None = None) -> None:
    """Runs the text that `read` gives as the module __main__."""
    module = ModuleType("__main__")
    if file is not None:
        from importlib.machinery import SourceFileLoader

        module.__file__ = file
        module.__loader__ = SourceFileLoader("__main__", file)
        module.__dict__["__cached__"] = None
    module.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = module
    code: CodeType = compile(read(), name, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def _read(file: str) -> bytes:
    with open(file, "rb") as stream:
        return stream.read()


def _search_first(folder: str) -> None:
    """Puts the program's folder where `python -m` has put the current one."""
    if getattr(sys.flags, "safe_path", False):
        return
    sys.path[0] = folder


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
    if first == "--check":
        from taeda import _reading

        raise SystemExit(_reading.main(arguments[1:]))
    if first in ("install-shim", "uninstall-shim"):
        from taeda import _shim

        print(_shim.install() if first == "install-shim" else _shim.uninstall())
        return
    from taeda import _hook

    _hook.install()
    _hook.install_in_children()
    if first in ("-m", "-c"):
        if len(arguments) < 2:
            raise SystemExit(f"python -m taeda {first}: argument expected")
        _search_first("")
        sys.argv = [first, *arguments[2:]]
        name = arguments[1]
        if first == "-m":
            _run(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))
        else:
            _run(lambda: _run_code(lambda: name, "<string>"))
        return
    if first == "-":
        _search_first("")
        sys.argv = arguments
        _run(lambda: _run_code(sys.stdin.read, "<stdin>"))
        return
    if first.startswith("-"):
        raise SystemExit(f"python -m taeda: unknown option {first}")
    if not os.path.exists(first):
        raise SystemExit(f"python -m taeda: no such file: {first}")
    sys.argv = arguments
    if os.path.isdir(first) or first.endswith((".zip", ".pyz", ".pyc")):
        _run(lambda: runpy.run_path(first, run_name="__main__"))
        return
    _search_first(os.path.dirname(os.path.realpath(first)))
    file = os.path.abspath(first)
    _run(lambda: _run_code(lambda: _read(file), file, file))


if __name__ == "__main__":
    main()
