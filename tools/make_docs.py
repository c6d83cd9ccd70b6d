"""The API reference in docs/api, made from the docstrings of the built package: `make docs`.

One page a module, with a list that filters as one types; plain HTML and no other tools. Docstrings
of operators come from the operator table, so the pages cannot disagree with it. Also refreshes
docs/coverage.md and the tables of the README.
"""

from __future__ import annotations

import html
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "api"
sys.path.insert(0, str(ROOT / "bench"))
import table  # noqa: E402

# Page -> what it documents; a page whose module does not exist is left out.
MODULES = {
    "taeda": "Functions, dtypes and settings",
    "taeda.Tensor": "Methods and attributes of a tensor",
    "taeda.nn": "Layers and the Module they derive from",
    "taeda.nn.functional": "Layers as functions",
    "taeda.nn.init": "Initial values of weights",
    "taeda.nn.utils": "Helpers for parameters and gradients",
    "taeda.optim": "Optimizers",
    "taeda.optim.lr_scheduler": "Schedules of the learning rate",
    "taeda.utils.data": "Data sets, samplers and loaders",
    "taeda.utils.checkpoint": "Trading computation for memory",
    "taeda.autograd": "Gradients",
    "taeda.autograd.forward_ad": "Forward-mode derivatives",
    "taeda.linalg": "Linear algebra",
    "taeda.fft": "Fourier transforms",
    "taeda.special": "Special functions",
    "taeda.random": "Random numbers",
    "taeda.testing": "Comparing tensors in tests",
}
SIGNATURE = re.compile(r"\w+\(.*\) -> .*")
STYLE = """
:root { color-scheme: light dark; --page: #fdfdfb; --ink: #23262b; --soft: #6b7078;
  --line: #e2e0d9; --code: #f3f2ee; --accent: #2f6f4f; }
@media (prefers-color-scheme: dark) { :root { --page: #15181b; --ink: #e8e6e1; --soft: #9aa0a8;
  --line: #31363c; --code: #1f2428; --accent: #6fc096; } }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.55 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.frame { display: grid; grid-template-columns: 270px minmax(0, 1fr); max-width: 1180px;
  margin: auto; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 24px 16px 24px 24px;
  border-right: 1px solid var(--line); box-sizing: border-box; font-size: 13.5px; }
nav a { display: block; color: inherit; text-decoration: none; padding: 1px 0; }
nav a:hover, main a { color: var(--accent); }
nav .here { font-weight: 650; }
nav input { width: 100%; margin: 14px 0 8px; padding: 6px 9px; box-sizing: border-box;
  font: inherit;
  color: inherit; background: var(--code); border: 1px solid var(--line); border-radius: 6px; }
main { padding: 24px 40px 80px; }
h1 { font-size: 28px; letter-spacing: -.02em; margin: 4px 0 2px; }
h1 + p { color: var(--soft); margin-top: 0; }
section { border-top: 1px solid var(--line); padding: 14px 0 4px; }
h2 { font: 600 14.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; margin: 0 0 4px; }
h2 span { font-weight: 400; color: var(--soft); overflow-wrap: anywhere; }
h3 { font: 600 13.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; margin: 12px 0 2px; }
h3 span { font-weight: 400; color: var(--soft); }
pre { background: var(--code); border-radius: 8px; padding: 10px 14px; overflow-x: auto;
  font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.members { margin-left: 18px; }
.none { color: var(--soft); }
@media (max-width: 760px) { .frame { display: block; } nav { position: static; height: auto; } }
"""
SCRIPT = """
const box = document.querySelector('nav input'), links = document.querySelectorAll('nav .item');
box.addEventListener('input', () => links.forEach(a =>
  a.style.display = a.textContent.toLowerCase().includes(box.value.toLowerCase()) ? '' : 'none'));
"""


def resolve(path: str) -> Any:
    found: Any = importlib.import_module("taeda")
    for part in path.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(f"{found.__name__}.{part}")
    return found


def members(owner: Any) -> Iterator[tuple[str, Any]]:
    """Public names and values: what `__all__` or `dir` tells, less modules."""
    names = getattr(owner, "__all__", None) or dir(owner)
    for name in sorted(set(names), key=lambda name: (name.lower(), name)):
        if name.startswith("_"):
            continue
        try:
            value = inspect.getattr_static(owner, name, None)
            value = getattr(owner, name) if value is None or not isinstance(owner, type) else value
        except Exception:
            continue
        if inspect.ismodule(value) or value is owner:
            continue
        if not isinstance(owner, type) and not (callable(value) or value.__doc__):
            continue
        home = str(getattr(value, "__module__", None) or "")
        if not isinstance(owner, type) and home and not home.startswith(("taeda", "builtins")):
            continue
        yield name, value


def signature(value: Any) -> str:
    """The argument list; docstrings of operators open with theirs, which `document` shows."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<(class|function|object) ?'?([\w.]+)?.*?>", r"\2", text)
    # Annotations are strings; a constructor's result needs no mention.
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text).removesuffix(" -> None")


def described(value: Any) -> bool:
    """Whether there is a docstring that is the value's own and says more than signatures."""
    doc = inspect.getdoc(value) or ""
    if isinstance(value, type) and doc == inspect.getdoc(object):
        return False
    return any(line and not SIGNATURE.fullmatch(line) for line in doc.split("\n"))


def document(value: Any) -> str:
    """A docstring as HTML: paragraphs, and everything indented or after >>> as code."""
    doc = inspect.getdoc(value) or ""
    if not described(value):
        return '<p class="none">No description.</p>'
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", doc):
        lines = block.split("\n")
        text: list[str] = []
        code: list[str] = []
        for line in lines:
            if code or line.startswith((">>>", "    ")):
                code.append(line)
            else:
                text.append(line)
        if text:
            joined = re.sub(r"`+([^`]+)`+", r"<code>\1</code>", html.escape("\n".join(text)))
            parts.append(f"<p>{joined}</p>")
        if code:
            parts.append(f"<pre>{html.escape(chr(10).join(code))}</pre>")
    return "\n".join(parts)


def section(name: str, value: Any) -> str:
    inner = ""
    if isinstance(value, type) and str(value.__module__).startswith("taeda"):
        for method, function in vars(value).items():
            if method.startswith("_") or not inspect.getdoc(function):
                continue
            arguments = html.escape(signature(function)) if callable(function) else ""
            inner += f"<h3>{method}<span>{arguments}</span></h3>{document(function)}"
    arguments = html.escape(signature(value)) if callable(value) else ""
    return (
        f'<section id="{html.escape(name)}"><h2>{html.escape(name)}<span>{arguments}</span></h2>'
        f"{document(value)}{f'<div class=members>{inner}</div>' if inner else ''}</section>"
    )


def page(path: str, title: str, pages: list[str], body: str, names: list[str]) -> str:
    modules = "".join(
        f'<a{" class=here" if name == path else ""} href="{name}.html">{name}</a>' for name in pages
    )
    items = "".join(f'<a class="item" href="#{name}">{name}</a>' for name in names)
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{path}</title>
<style>{STYLE}</style></head><body><div class="frame"><nav>{modules}
<input placeholder="filter" aria-label="filter the names">{items}</nav>
<main><h1>{path}</h1><p>{title}</p>{body}</main></div><script>{SCRIPT}</script></body></html>
"""


def main() -> int:
    found: dict[str, Any] = {}
    for path in MODULES:
        try:
            found[path] = resolve(path)
        except (ImportError, AttributeError):
            print(f"no page for {path}: it does not exist")
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.html"):
        old.unlink()
    total = 0
    undocumented: list[str] = []
    for path, owner in found.items():
        listed = list(members(owner))
        total += len(listed)
        undocumented += [f"{path}.{name}" for name, value in listed if not described(value)]
        body = "".join(section(name, value) for name, value in listed)
        names = [html.escape(name) for name, _ in listed]
        text = page(path, MODULES[path], list(found), body, names)
        (OUT / f"{path}.html").write_text(text)
    (OUT / "index.html").write_text((OUT / "taeda.html").read_text())
    print(f"{total} entries on {len(found)} pages in docs/api")
    coverage.write(found["taeda"])
    results = ROOT / "docs" / "benchmarks.json"
    if results.exists():
        numbers = json.loads(results.read_text())
        (ROOT / "docs" / "benchmarks.md").write_text(table.page(numbers))
        table.update_readme(ROOT / "README.md", numbers)
    for name in undocumented:
        print(f"no description: {name}")
    return 1 if undocumented else 0


if __name__ == "__main__":
    sys.exit(main())
