"""Makes ``import torch`` mean taeda: what ``python -m taeda`` installs before it runs a program.

The finder serves this process and its forks; other Python processes that the program starts inherit
a search path on which the first ``torch`` is ``_as_torch/torch``, which installs the finder there.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# What `python -m taeda` puts on the search path that children inherit.
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_as_torch")


def _as_torch(name: str) -> str:
    """torch.nn for taeda.nn."""
    return "torch" + name.removeprefix("taeda")


class _NamedLoader(importlib.machinery.SourceFileLoader):
    """Runs a module of taeda under torch's name, which its classes and functions take over."""

    def exec_module(self, module: types.ModuleType) -> None:
        code = self.get_code(self.name)
        assert code is not None
        name = module.__name__ = _as_torch(self.name)
        sys.modules[name] = module  # where dataclasses and pickle look for a class's module
        try:
            exec(code, module.__dict__)
        except BaseException:
            sys.modules.pop(name, None)
            raise


class _AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Resolves ``torch`` and ``torch.X`` to the module objects of ``taeda`` and ``taeda.X``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith("taeda."):
            found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
            if found is not None and type(found.loader) is importlib.machinery.SourceFileLoader:
                found.loader = _NamedLoader(fullname, found.loader.path)
            return found
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        name = "taeda" + fullname.removeprefix("torch")
        loaded = sys.modules.get(name)
        found = importlib.util.find_spec(name) if loaded is None else loaded.__spec__
        if loaded is None and found is None:
            return None
        is_package = found is not None and found.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, self, origin=name, is_package=is_package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        assert spec.origin is not None
        module = importlib.import_module(spec.origin)
        self._own_spec = (module, module.__spec__)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """It has run already; only its own spec is put back, which the import system replaced."""
        found, spec = self._own_spec
        found.__spec__ = spec

    @staticmethod
    def find_distributions(context: Any = None) -> list[Any]:  # type: ignore[override]
        """None: what is on the search path is found by the next finder, each torch but the first
        left out from here on, where a PyTorch is installed too."""
        _find_one_torch()
        return []

    def get_code(self, fullname: str) -> types.CodeType | None:
        """What `runpy` runs for ``-m torch.X``: the code of taeda.X."""
        found = importlib.util.find_spec("taeda" + fullname.removeprefix("torch"))
        if found is None:
            return None
        loader: Any = found.loader
        return loader.get_code(found.name) if hasattr(loader, "get_code") else None


def _find_one_torch() -> None:
    """Lets importlib.metadata find the first distribution named torch alone: that of taeda."""
    finder: Any = sys.modules["importlib.metadata"].MetadataPathFinder
    found_all = finder.find_distributions
    if getattr(found_all, "_finds_one_torch", False):
        return

    def find_distributions(*args: Any, **kwargs: Any) -> Iterator[Any]:
        count = 0
        for found in found_all(*args, **kwargs):
            count += found.name == "torch"
            if found.name != "torch" or count == 1:
                yield found

    find_distributions._finds_one_torch = True  # type: ignore[attr-defined]
    finder.find_distributions = staticmethod(find_distributions)


def _rename(namespace: dict[str, Any]) -> None:
    """Gives torch's name to the classes and functions of a namespace that have taeda's."""
    for value in list(namespace.values()):
        owner = getattr(value, "__module__", None)
        if isinstance(value, types.ModuleType | types.MethodType) or value is None:
            continue
        if isinstance(value, type) and not isinstance(owner, str):  # a property of its objects
            owner = "taeda"
        if isinstance(owner, str) and owner.partition(".")[0] == "taeda" and callable(value):
            value.__module__ = _as_torch(owner)


def _name_as_torch() -> None:
    """Modules, classes and functions say torch instead of taeda from here on: what is loaded is
    renamed, what is loaded later gets the name from `_NamedLoader`."""
    from taeda import _C

    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "taeda" and isinstance(module, types.ModuleType):
            module.__name__ = _as_torch(name)
            sys.modules[module.__name__] = module
            _rename(vars(module))
    for functions in _C._by_owner.values():
        _rename(functions)


def install() -> None:
    """From here on, ``import torch`` and ``import torch.nn`` give taeda and taeda.nn, whose modules
    and classes have torch's names."""
    import taeda

    if sys.modules.get("torch", taeda) is not taeda:
        raise RuntimeError("torch is already imported; run the program with 'python -m taeda'")
    sys.modules["torch"] = taeda
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())
        _name_as_torch()


def check_python() -> None:
    """ImportError where the core in this package is built for another Python than runs here."""
    package = os.path.dirname(os.path.abspath(__file__))
    cores = [name for name in os.listdir(package) if name.startswith("_C.") and ".so" in name]
    if not cores or any("_C" + end in cores for end in importlib.machinery.EXTENSION_SUFFIXES):
        return
    raise ImportError(
        f"taeda in {package} is built for another Python ({', '.join(cores)}) than the one that "
        f"runs here, {sys.executable} ({sys.version.split()[0]}). Processes that a program under "
        "`python -m taeda` starts need its Python, sys.executable.",
        name="taeda._C",
    )


def _end_of_flags(command: Sequence[str]) -> tuple[str, int]:
    """The letters of a Python command's flags, and where they end: at a script, -c or -m."""
    flags, index = "", 1
    while index < len(command):
        argument = command[index]
        if not argument.startswith("-") or argument in ("-", "-c", "-m"):
            break
        letters = "" if argument.startswith("--") else argument[1:]
        valued = next((letter for letter in letters if letter in "WX"), "")
        letters, _, value = letters.partition(valued) if valued else (letters, "", "")
        flags += letters
        is_next = (valued and not value) or argument == "--check-hash-based-pycs"
        index += 2 if is_next else 1
    return flags, index


def _mentions_torch(program: list[str], folder: str) -> bool:
    """Whether the text that a Python command would run imports torch, as far as one can see."""
    if program[:1] == ["-c"]:
        text = " ".join(program[1:2])
    elif program and not program[0].startswith("-"):
        try:
            with open(os.path.join(folder, program[0]), encoding="utf-8", errors="replace") as file:
                text = file.read(1 << 20)
        except OSError:
            return False
    else:
        return False
    import re

    torch = r"(?:^|[;:\n])\s*(?:from\s+torch\b|import\s[^;\n#]*\btorch\b)"
    return re.search(torch, text) is not None


def _is_this_python(name: str) -> bool:
    """Whether a command's first word leads to the Python that runs here."""
    import shutil

    found = shutil.which(name)
    return found is not None and os.path.realpath(found) == os.path.realpath(sys.executable)


def _reaching(words: list[str], name: str, folder: str, hidden: bool) -> list[str] | None:
    """A Python command that ignores PYTHONPATH (-I, -E), or finds nothing of ours there (`hidden`),
    with `python -m taeda`'s main before its program, where that is of this Python or imports torch;
    None for other commands."""
    if not os.path.basename(name).startswith("python"):
        return None
    flags, end = _end_of_flags(words)
    program = words[end:]
    if program in ([], ["-"], ["-c"], ["-m"]):  # standard input, or an error that Python reports
        return None
    if program[0] == "-c" and "from taeda.__main__ import main" in program[1]:
        return None  # done already
    if not (hidden or set(flags) & set("IE")) or set(flags) & set("cm"):
        return None
    if not _is_this_python(name) and not _mentions_torch(program, folder):
        return None
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    main = f"import sys; sys.path.append({package!r}); from taeda.__main__ import main; main()"
    start = 2 if program[:2] == ["-m", "taeda"] else 0
    return [*words[:end], "-c", main, *program[start:]]


def _shell_words(command: str) -> list[str] | None:
    """The words of a shell's command, None where a shell would do more than split them."""
    import re
    import shlex

    unquoted = "".join(re.split(r"'[^']*'|\"[^\"]*\"", command))
    if set(command) & set("$`\\\n!") or set(unquoted) & set("*?[]{}~#=();<>|&"):
        return None
    try:
        return shlex.split(command)
    except ValueError:
        return None


def _reach_isolated(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: children that ignore PYTHONPATH, or are given an environment without it, find
    taeda. An odd command is left as it is: `subprocess` says what is wrong with it."""
    if event == "subprocess.Popen":
        import contextlib

        with contextlib.suppress(Exception):
            _change_command(*arguments)


def _hides_us(environment: Mapping[Any, Any] | None) -> bool:
    """Whether a child's environment, None where it inherits this one, does not lead to taeda."""
    if environment is None:
        return False
    path = environment.get("PYTHONPATH", environment.get(b"PYTHONPATH", ""))
    return _FOLDER not in os.fsdecode(path).split(os.pathsep)


def _change_command(executable: Any, command: Any, folder: Any, environment: Any) -> None:
    """Changes the list that `subprocess` starts, plain commands in a shell among them."""
    if not isinstance(command, list):
        return
    words = [os.fsdecode(word) for word in command]
    name = os.fsdecode(executable) if executable else words[0]
    folder, hidden = os.fsdecode(folder or ""), _hides_us(environment)
    if os.path.basename(name) == "sh" and words[1:2] == ["-c"] and len(words) == 3:
        plain = _shell_words(words[2])
        changed = _reaching(plain, plain[0], folder, hidden) if plain else None
        if changed is not None:
            import shlex

            command[2] = shlex.join(changed)
        return
    changed = _reaching(words, name, folder, hidden)
    if changed is not None:
        command[:] = changed


def install_in_children() -> None:
    """The same for Python processes that this one starts, those with -I and -E and those with an
    environment of their own among them."""
    sys.addaudithook(_reach_isolated)
    inherited = os.environ.get("PYTHONPATH", "")
    if _FOLDER not in inherited.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_FOLDER, inherited]))
    if _FOLDER not in sys.path:  # what multiprocessing hands to the processes it spawns
        sys.path.insert(1, _FOLDER)
