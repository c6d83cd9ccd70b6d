"""Models from the hubconf.py of a repository or folder, and weights from an address.

>>> import tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "hubconf.py").write_text("def double(x):\\n    return 2 * x\\n")
>>> torch.hub.load(folder, "double", 21, source="local")
42
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import uuid
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import taeda
from taeda.serialization import MAP_LOCATION

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
VAR_DEPENDENCY = "dependencies"
MODULE_HUBCONF = "hubconf.py"
READ_DATA_CHUNK = 128 * 1024
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # resnet18-5c106cde.pth
_TRUSTED_REPO_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_hub_dir: str | None = None


class _Faketqdm:
    """Progress on stderr where tqdm is not installed."""

    def __init__(self, total: Any = None, disable: bool = False, *_: Any, **__: Any) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        if self.disable:
            return
        self.n += n
        so_far = f"{100 * self.n / self.total:.1f}%" if self.total else f"{self.n:.1f} bytes"
        sys.stderr.write(f"\r{so_far}")
        sys.stderr.flush()

    def set_description(self, *_: Any, **__: Any) -> None: ...

    def write(self, s: str) -> None:
        sys.stderr.write(f"{s}\n")

    def close(self) -> None:
        self.disable = True

    def __enter__(self) -> _Faketqdm:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if not self.disable:
            sys.stderr.write("\n")


try:
    from tqdm import tqdm
except ImportError:
    tqdm = _Faketqdm


# --- where things are kept ---


def _get_torch_home() -> str:
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """Where downloads are kept: what ``set_dir`` was given, else ``$TORCH_HOME/hub``, with
    ``TORCH_HOME`` ``$XDG_CACHE_HOME/torch``, which is ``~/.cache/torch``, by default."""
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Keeps downloads in this folder from here on."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def _remove_if_exists(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


# --- repositories ---


def _git_archive_link(repo_owner: str, repo_name: str, ref: str) -> str:
    return f"https://github.com/{repo_owner}/{repo_name}/zipball/{ref}"


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """(owner, name, branch or tag) of "owner/name[:ref]"."""
    repo, _, ref = github.partition(":")
    owner, name = repo.split("/")
    return owner, name, ref or _default_branch(owner, name)


def _default_branch(owner: str, name: str) -> str:
    try:
        with urlopen(f"https://github.com/{owner}/{name}/tree/main/"):
            return "main"
    except HTTPError as error:
        if error.code == 404:
            return "master"
        raise
    except URLError as error:
        for branch in ("main", "master"):
            if os.path.exists(f"{get_dir()}/{owner}_{name}_{branch}"):
                return branch
        raise RuntimeError(
            "It looks like there is no internet connection and the repo could not be found in the "
            f"cache ({get_dir()})"
        ) from error


def _read_url(url: Any) -> str:
    with urlopen(url) as response:
        return response.read().decode(response.headers.get_content_charset("utf-8"))


def _validate_not_a_forked_repo(repo_owner: str, repo_name: str, ref: str) -> None:
    """ValueError unless the repository itself has the branch, tag or commit: one address leads to
    the commits of all its forks."""
    for kind in ("branches", "tags"):
        for page in range(1, sys.maxsize):
            address = f"https://api.github.com/repos/{repo_owner}/{repo_name}/{kind}"
            found = _ask_github(f"{address}?per_page=100&page={page}")
            if any(x["name"] == ref or x["commit"]["sha"].startswith(ref) for x in found):
                return
            if not found:
                break
    raise ValueError(
        f"Cannot find {ref} in https://github.com/{repo_owner}/{repo_name}. If it's a commit from "
        "a forked repo, please call hub.load() with forked repo directly."
    )


def _ask_github(url: str) -> Any:
    headers = {"Accept": "application/vnd.github.v3+json"}
    token = os.environ.get(ENV_GITHUB_TOKEN)
    if token is not None:
        with contextlib.suppress(HTTPError):  # the token may not do for this repository
            authorized = {**headers, "Authorization": f"token {token}"}
            return json.loads(_read_url(Request(url, headers=authorized)))
    return json.loads(_read_url(Request(url, headers=headers)))


def _check_repo_is_trusted(
    repo_owner: str, repo_name: str, owner_name_branch: str, trust_repo: Any
) -> None:
    """Asks the user about a repository that is neither listed nor there nor of a known owner."""
    path, name = os.path.join(get_dir(), "trusted_list"), f"{repo_owner}_{repo_name}"
    with open(path, "a+", encoding="utf-8") as file:
        file.seek(0)
        listed = {line.strip() for line in file}
    there = {entry.name for entry in os.scandir(get_dir()) if entry.is_dir()}
    trusted = name in listed or owner_name_branch in there or repo_owner in _TRUSTED_REPO_OWNERS
    if trust_repo is False or (trust_repo == "check" and not trusted):
        _ask_user(name)
        if trusted:
            print("The repository is already trusted.")
    if not trusted:
        with open(path, "a", encoding="utf-8") as file:
            file.write(name + "\n")


def _ask_user(name: str) -> None:
    response = input(
        f"The repository {name} does not belong to the list of trusted repositories and as such "
        "cannot be downloaded. Do you trust this repository and wish to add it to the trusted list "
        "of repositories (y/N)?"
    )
    if response.lower() in ("n", "no", ""):
        raise Exception("Untrusted repository.")
    if response.lower() not in ("y", "yes"):
        raise ValueError(f"Unrecognized response {response}.")


def _get_cache_or_reload(
    github: str,
    force_reload: bool,
    trust_repo: Any,
    verbose: bool = True,
    skip_validation: bool = False,
) -> str:
    """The folder with a repository's files, downloaded where they are not there."""
    os.makedirs(get_dir(), exist_ok=True)
    owner, name, ref = _parse_repo_info(github)
    folder = "_".join([owner, name, ref.replace("/", "_")])
    path = os.path.join(get_dir(), folder)
    _check_repo_is_trusted(owner, name, folder, trust_repo)
    if not force_reload and os.path.exists(path):
        if verbose:
            sys.stderr.write(f"Using cache found in {path}\n")
        return path
    if not skip_validation:
        _validate_not_a_forked_repo(owner, name, ref)
    archive = os.path.join(get_dir(), ref.replace("/", "_") + ".zip")
    _remove_if_exists(archive)
    _download_repo(owner, name, ref, archive)
    with zipfile.ZipFile(archive) as zipped:
        unpacked = os.path.join(get_dir(), zipped.infolist()[0].filename)
        _remove_if_exists(unpacked)
        _safe_extract_zip(zipped, get_dir())
    _remove_if_exists(archive)
    _remove_if_exists(path)
    shutil.move(unpacked, path)
    return path


def _download_repo(owner: str, name: str, ref: str, path: str) -> None:
    url = _git_archive_link(owner, name, ref)
    sys.stdout.write(f'Downloading: "{url}" to {path}\n')
    try:
        download_url_to_file(url, path, progress=False)
    except HTTPError as error:
        if error.code != 300:
            raise
        warnings.warn(
            f"The ref {ref} is ambiguous. Perhaps it is both a tag and a branch in the repo? "
            "Torchhub will now assume that it's a branch. You can disambiguate tags and branches "
            "by explicitly passing refs/heads/branch_name or refs/tags/tag_name as the ref. That "
            "might require using skip_validation=True.",
            stacklevel=2,
        )
        url = _git_archive_link(owner, name, f"refs/heads/{ref}")
        download_url_to_file(url, path, progress=False)


def _safe_extract_zip(zip_file: zipfile.ZipFile, extract_to: str) -> None:
    """Unpacks; ValueError where an entry would land outside."""
    for member in zip_file.infolist():
        name = os.path.normpath(member.filename)
        if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
            raise ValueError(f"Archive entry has absolute path: {member.filename}")
        if ".." in re.split(r"[/\\]", name):
            raise ValueError(f"Archive entry contains directory traversal: {member.filename}")
        target, root = (os.path.realpath(os.path.join(extract_to, n)) for n in (name, ""))
        if os.path.commonpath([target, root]) != root:
            raise ValueError(f"Archive entry escapes target directory: {member.filename}")
        zip_file.extract(member, extract_to)


# --- hubconf.py ---


@contextlib.contextmanager
def _add_to_sys_path(path: str) -> Iterator[None]:
    path = os.fspath(path)
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


def _import_module(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_attr_from_module(module: Any, func_name: str) -> Any:
    return getattr(module, func_name) if func_name in dir(module) else None


def _check_module_exists(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _check_dependencies(m: Any) -> None:
    needed = _load_attr_from_module(m, VAR_DEPENDENCY) or []
    missing = [name for name in needed if not _check_module_exists(name)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")


def _load_entry_from_hubconf(m: Any, model: str) -> Callable:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    _check_dependencies(m)
    found = _load_attr_from_module(m, model)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
    verbose: bool = True,
) -> builtins.list[str]:
    """The names of what a repository's ``hubconf.py`` offers. For the arguments see ``load``."""
    folder = _get_cache_or_reload(github, force_reload, trust_repo, verbose, skip_validation)
    with _add_to_sys_path(folder):
        module = _import_module(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))
    public = (name for name in dir(module) if not name.startswith("_"))
    return [name for name in public if callable(getattr(module, name))]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
) -> str | None:
    """The docstring of an entry of ``hubconf.py``. For the arguments see ``load``."""
    folder = _get_cache_or_reload(github, force_reload, trust_repo, True, skip_validation)
    with _add_to_sys_path(folder):
        module = _import_module(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))
    return _load_entry_from_hubconf(module, model).__doc__


def load(
    repo_or_dir: Any,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What the entry ``model`` of a ``hubconf.py`` gives for the other arguments.

    Args:
        repo_or_dir: "owner/name[:branch or tag]", or a folder where ``source`` is "local".
        trust_repo: "check" asks before code of an unknown owner is downloaded, True does not and
            remembers the repository, False always asks.
        force_reload: download again what is there.
        skip_validation: do not ask whether the branch, tag or commit belongs to the repository.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        repo_or_dir = _get_cache_or_reload(
            repo_or_dir, force_reload, trust_repo, verbose, skip_validation
        )
    return _load_local(repo_or_dir, model, *args, **kwargs)


def _load_local(hubconf_dir: Any, model: str, *args: Any, **kwargs: Any) -> Any:
    with _add_to_sys_path(hubconf_dir):
        module = _import_module(MODULE_HUBCONF, os.path.join(hubconf_dir, MODULE_HUBCONF))
        return _load_entry_from_hubconf(module, model)(*args, **kwargs)


# --- files ---


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Downloads to a path, where the file appears when it is whole.

    Args:
        url: an address of http, https, ftp or file.
        hash_prefix: what the SHA256 of the content must begin with; RuntimeError otherwise.
        progress: show it on stderr.
    """
    dst = os.path.expanduser(dst)
    partial = f"{dst}.{uuid.uuid4().hex}.partial"
    request = Request(url, headers={"User-Agent": "torch.hub"})
    try:
        with open(partial, "xb") as file, urlopen(request) as response:
            digest = _copy(response, file, progress)
        if hash_prefix is not None and not digest.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
        shutil.move(partial, dst)
    finally:
        _remove_if_exists(partial)


def _copy(response: Any, file: Any, progress: bool) -> str:
    """The SHA256 of what was copied."""
    length = response.headers.get("Content-Length")
    sha256 = hashlib.sha256()
    options: dict[str, Any] = {"unit": "B", "unit_scale": True, "unit_divisor": 1024}
    total = int(length) if length else None
    with tqdm(total=total, disable=not progress, **options) as bar:
        while chunk := response.read(READ_DATA_CHUNK):
            file.write(chunk)
            sha256.update(chunk)
            bar.update(len(chunk))
    return sha256.hexdigest()


def _is_legacy_zip_format(filename: str) -> bool:
    """Whether it is a zip file of a single file, as one that was packed by hand."""
    if not zipfile.is_zipfile(filename):
        return False
    with zipfile.ZipFile(filename) as zipped:
        members = zipped.infolist()
    return len(members) == 1 and not members[0].is_dir()


def _legacy_zip_load(
    filename: str, model_dir: str, map_location: MAP_LOCATION, weights_only: bool
) -> Any:
    warnings.warn(
        "Falling back to the old format < 1.6. This support will be deprecated in favor of default "
        "zipfile format introduced in 1.6. Please redo torch.save() to save it in the new zipfile "
        "format.",
        FutureWarning,
        stacklevel=3,
    )
    with zipfile.ZipFile(filename) as zipped:
        _safe_extract_zip(zipped, model_dir)
        unpacked = os.path.join(model_dir, zipped.infolist()[0].filename)
    return taeda.load(unpacked, map_location=map_location, weights_only=weights_only)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: MAP_LOCATION = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """What ``torch.save`` wrote to the file at an address, which is downloaded once.

    Args:
        model_dir: where it is kept; ``get_dir()/checkpoints`` by default.
        check_hash: the file's name must end in ``-<sha256>.ext``, with eight digits or more.
        file_name: the name to keep it under; that of the address by default.
        weights_only: see ``torch.load``; set it for sources that you do not trust.
    """
    if os.getenv("TORCH_MODEL_ZOO"):
        warnings.warn(
            "TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME instead", stacklevel=2
        )
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    if _is_legacy_zip_format(path):
        return _legacy_zip_load(path, folder, map_location, weights_only)
    return taeda.load(path, map_location=map_location, weights_only=weights_only)
