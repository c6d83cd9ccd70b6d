"""The documentation as a site in build/site: `make docs`.

Stages pages in build/site-pages (the texts of docs, the reference from the built package's
docstrings, the public C++ headers), writes the navigation, and runs mkdocs on them. Docstrings of
operators come from the operator table, so the pages cannot disagree with it. `--stage` leaves
mkdocs out. With `--refresh` it writes docs/coverage.md and what the README says of both first, as
`make docs-coverage` does; otherwise nothing outside of build is written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import coverage
from site_pages import api, cxx, names, texts

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "site-pages"
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
sys.path.insert(0, str(ROOT / "bench"))
import table  # noqa: E402

GUIDE = ["install.md", "quickstart.md", "coming-from-pytorch.md", "errors.md", "environment.md"]
TUTORIALS = ["training", "data", "autograd", "custom-operator", "cpp"]
RESULTS = ["benchmarks.md", "coverage.md", "programs.md", "suites.md", "reliability.md"]


def navigation(pages: dict[str, str], reference: api.Reference) -> list[Any]:
    def listed(paths: list[str]) -> list[Any]:
        return [{texts.title(pages[path]): path} for path in paths if path in pages]

    modules: list[Any] = ["api/index.md"]
    for path, files in reference.modules.items():
        name = path.replace("taeda", "torch", 1)
        if len(files) == 1:
            modules.append({name: files[0]})
        else:
            shown = [{reference.titles[f].partition(": ")[2]: f} for f in files]
            modules.append({name: shown})
    headers = [path for path in pages if path.startswith("cpp/") and path != "cpp/index.md"]
    notes = sorted(path for path in pages if path.startswith("notes/"))
    cards = sorted((path for path in pages if path.startswith("gpu/")), reverse=True)
    project = sorted(path for path in pages if path.startswith("project/"))
    return [
        {"taeda": ["index.md", *listed(GUIDE)]},
        {"Tutorials": listed([f"tutorials/{name}.md" for name in TUTORIALS])},
        {"Reference": modules},
        {"C++": ["cpp/index.md", *listed(headers)]},
        {"Results": listed([*RESULTS, *cards])},
        {"Inside": listed(["project/architecture.md", "adding-an-operator.md", *notes])},
        {"Project": listed([p for p in project if p != "project/architecture.md"])},
    ]


# How far up the search lists a page, beside 1: what programs use before how it is made.
RANKS = {
    "api/torch": 8.0, "api/nn": 6.0, "api/optim": 6.0, "api/utils.data": 6.0, "api/Tensor": 4.0,
    "api/": 1.5, "tutorials/": 1.5, "cpp/": 0.3, "notes/": 0.3, "project/": 0.2,
}  # fmt: skip
NOT_SEARCHED = ("project/changelog.md", "coverage.md", "programs.md", "suites.md")


def search_settings(path: str) -> str:
    """The head of a page that tells the search of it."""
    if path in NOT_SEARCHED:
        return "---\nsearch:\n  exclude: true\n---\n"
    rank = next((rank for start, rank in RANKS.items() if path.startswith(start)), None)
    return f"---\nsearch:\n  boost: {rank}\n---\n" if rank else ""


def stage(folder: Path) -> tuple[int, list[str]]:
    """Writes all pages and mkdocs.yml; the number of pages and the names without a description."""
    reference = api.Reference()
    pages = texts.pages() | reference.pages() | cxx.pages()
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in pages.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(search_settings(path) + text)
    shutil.copytree(ROOT / "docs" / "images", folder / "images")
    (folder / "assets").mkdir()
    for name in ("extra.css", "iframe-worker.js", "exact-names.js"):
        shutil.copy(ROOT / "docs" / "site" / name, folder / "assets" / name)
    import yaml

    settings = (ROOT / "docs" / "site" / "mkdocs.yml").read_text()
    settings = settings.replace("../../build/site-pages", str(folder))
    settings = settings.replace("../../build/site", str(folder.parent / "site"))
    nav = yaml.safe_dump({"nav": navigation(pages, reference)}, sort_keys=False, allow_unicode=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (folder.parent / "mkdocs.yml").write_text(settings + addresses(project["urls"]) + nav)
    undocumented = [
        f"{path}.{name}"
        for entries in reference.entries.values()
        for path, name, value in entries
        if not names.described(value)
    ]
    return len(pages), undocumented


def addresses(urls: dict[str, str]) -> str:
    """What mkdocs is told of `project.urls`: where the site will be, and where its sources are."""
    known = {"site_url": "Documentation", "repo_url": "Source"}
    return "".join(f"{key}: {urls[name]}\n" for key, name in known.items() if name in urls)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stage", action="store_true", help="only write the pages, in Markdown")
    parser.add_argument("--refresh", action="store_true", help="docs/coverage.md and README first")
    args = parser.parse_args()
    if args.refresh:
        coverage.write(names.resolve("taeda"))
        table.update_readme(ROOT / "README.md", (ROOT / "docs" / "benchmarks.md").read_text())
    count, undocumented = stage(PAGES)
    print(f"{count} pages in build/site-pages")
    for name in undocumented:
        print(f"no description: {name}")
    if undocumented or args.stage:
        return 1 if undocumented else 0
    command = [str(MKDOCS), "build", "--strict", "--quiet", "-f", str(PAGES.parent / "mkdocs.yml")]
    status = subprocess.run(command, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}).returncode
    print(f"open {ROOT / 'build' / 'site' / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
