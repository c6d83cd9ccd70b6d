"""``python -m taeda install-shim``: a distribution named torch, by which ``import torch`` is taeda.

It is a package of one file that runs, with functorch and the metadata that pip and
``importlib.metadata`` read 4 kB: installers find torch's version there and fetch no PyTorch for
what requires it. Beside them lies a stub of one line for each module, by which editors and type
checkers find taeda's names under torch's: some 270 files of 50 bytes. Every Python process of the
environment imports it, whoever starts it. ``pip uninstall torch`` removes it as ``uninstall-shim``
does.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sysconfig
from importlib import metadata
from pathlib import Path

_CODE = '''"""``import torch`` gives taeda: from ``python -m taeda install-shim``."""

import sys

from taeda import _hook

del sys.modules["torch"]  # the import system gives what install() puts here
_hook.install()
'''

_ROOT = """from taeda import *
from taeda import _C as _C, __version__ as __version__
"""

_WHEEL = b"Wheel-Version: 1.0\nGenerator: taeda\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _metadata() -> Path:
    """The folder with the metadata that programs under ``python -m taeda`` find: an egg-info, since
    builders of wheels leave another distribution's dist-info out."""
    return next((Path(__file__).parent / "_as_torch").glob("torch-*.egg-info"))


def _info() -> str:
    """The folder of the metadata in the environment."""
    return f"{_metadata().stem}.dist-info"


def _site() -> Path:
    """Where this Python's packages are."""
    return Path(sysconfig.get_paths()["purelib"])


def _installed() -> metadata.Distribution | None:
    """The distribution named torch in this Python's packages."""
    return next(iter(metadata.distributions(name="torch", path=[str(_site())])), None)


def is_installed() -> bool:
    """Whether ``import torch`` is taeda in every process of this Python."""
    found = _installed()
    return found is not None and found.version == metadata.PathDistribution(_metadata()).version


def _description() -> bytes:
    """What METADATA says; that it requires taeda where that is a distribution, and not a folder on
    the search path, which installers would not find and replace what requires it."""
    text = (_metadata() / "PKG-INFO").read_text(encoding="utf-8")
    if next(iter(metadata.distributions(name="taeda")), None) is None:
        text = text.replace("Requires-Dist: taeda\n", "")
    return text.encode()


def _row(name: str, content: bytes) -> str:
    """A file's line of RECORD; those of stubs, one line each, have no hash."""
    if name.startswith("torch/") and name != "torch/__init__.py":
        return f"{name},,"
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def _stubs() -> dict[str, bytes]:
    """For each module of taeda, one of torch's name that has what it has: for type checkers, as
    the finder that _CODE installs gives taeda's own modules."""
    package = Path(__file__).parent
    found = {}
    for file in sorted({*package.rglob("*.py"), *package.rglob("*.pyi")}):
        path = file.relative_to(package).with_suffix("")
        if any(part.startswith("_") and part != "__init__" for part in path.parts):
            continue
        module = ".".join(["taeda", *path.parts]).removesuffix(".__init__")
        found[f"torch/{path}.py"] = f"from {module} import *  # noqa: F403\n".encode()
    found["torch/__init__.pyi"] = _ROOT.encode()
    return found


def _functorch() -> dict[str, bytes]:
    """The package functorch, which PyTorch's distribution has too, where there is none."""
    if (_site() / "functorch").exists():
        return {}
    folder = _metadata().parent
    files = sorted((folder / "functorch").rglob("*.py"))
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def _files() -> dict[str, bytes]:
    """name -> content, RECORD with the hashes of the others among them."""
    source, info = _metadata(), _info()
    files = {
        **_stubs(),
        **_functorch(),
        "torch/__init__.py": _CODE.encode(),
        f"{info}/METADATA": _description(),
        "torch/py.typed": b"",
        f"{info}/top_level.txt": (source / "top_level.txt").read_bytes(),
        f"{info}/WHEEL": _WHEEL,
        f"{info}/INSTALLER": b"taeda\n",
    }
    record = f"{info}/RECORD"
    rows = [_row(*item) for item in files.items()]
    return files | {record: "".join(f"{row}\n" for row in [*rows, f"{record},,"]).encode()}


def install() -> str:
    """Writes the distribution; SystemExit where another torch is. Returns what to say."""
    found, site = _installed(), _site()
    if is_installed():
        return f"taeda is torch in {site} already"
    if found is not None or (site / "torch").exists():
        version = f" {found.version}" if found is not None else ""
        raise SystemExit(
            f"python -m taeda install-shim: there is a torch{version} in {site}; "
            "'pip uninstall torch' removes it"
        )
    try:
        for name, content in _files().items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_bytes(content)
    except OSError as error:
        raise SystemExit(f"python -m taeda install-shim: {error}") from None
    return f"import torch gives taeda in every process of {os.path.abspath(site)}"


def uninstall() -> str:
    """Removes the distribution; SystemExit where there is none, or another torch."""
    site = _site()
    if not is_installed():
        raise SystemExit(f"python -m taeda uninstall-shim: taeda's torch is not in {site}")
    if "functorch/__init__.py," in (site / _info() / "RECORD").read_text(encoding="utf-8"):
        shutil.rmtree(site / "functorch", ignore_errors=True)
    shutil.rmtree(site / "torch")
    shutil.rmtree(site / _info())
    return f"removed taeda's torch from {site}"
