"""The Python reference: a page for each module, or several for large ones."""

from __future__ import annotations

import enum
import inspect
import re
from collections import defaultdict
from typing import Any

from . import names
from .markdown import body, relative

Entry = tuple[str, str, Any]  # module, name, value


def page_name(path: str, group: str) -> str:
    stem = path.removeprefix("taeda").lstrip(".") or "torch"
    return f"api/{stem}{f'-{group}' if group else ''}.md"


def title(path: str, group: str) -> str:
    name = path.replace("taeda", "torch", 1)
    if not group:
        return name
    titles = names.LAYER_TITLES if path == "taeda.nn" else names.TITLES
    return f"{name}: {titles[group]}"


def introduction(path: str, group: str) -> str:
    """The first sentence of a page: what it holds of its module."""
    if not group:
        return f"{names.MODULES[path]}."
    text = title(path, group).partition(": ")[2]
    return f"{text[0].upper()}{text[1:]}: what `{path.replace('taeda', 'torch', 1)}` has of them."


def anchor(path: str, name: str) -> str:
    return f"{path}.{name}"


def pytorch_anchor(path: str, name: str) -> str:
    """A target that links to PyTorch's own reference have, #torch.nn.Linear, beside `anchor`'s."""
    return f'<a id="{anchor(path, name).replace("taeda", "torch", 1)}"></a>'


def signature(value: Any) -> str:
    """The argument list; docstrings of operators open with theirs."""
    if isinstance(value, type) and issubclass(value, enum.Enum):  # its members are all there is
        return ""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<(class|function|object) ?'?([\w.]+)?.*?>", r"\2", text)
    # Annotations are strings; a constructor's result needs no mention.
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text).removesuffix(" -> None")


def as_method(text: str) -> str:
    """'add(other: T) -> Tensor' for 'add(input: Tensor, other: T, *, out: T = None) -> Tensor'.

    A method's tensor is in front of the dot, and its result is what it returns.
    """
    head, _, rest = text.partition("(")
    inside, arrow, result = rest.rpartition(") -> ")
    parts = re.split(r", (?![^\[(]*[\])])", inside) if inside else []
    kept = [p for p in parts if not p.startswith(("input: ", "out: "))]
    if kept and kept[-1] == "*":
        kept.pop()
    return f"{head}({', '.join(kept)}{arrow}{result}"


def signatures(name: str, value: Any, method: bool = False) -> tuple[list[str], str]:
    """Its signatures, and the docstring without them."""
    lines = (inspect.getdoc(value) or "").split("\n")
    stated = []
    while lines and names.SIGNATURE.fullmatch(lines[0]):
        stated.append(as_method(lines[0]) if method else lines[0])
        del lines[0]
    if isinstance(value, type) and issubclass(value, enum.Enum):
        stated = [f"class {name}(Enum): {', '.join(value.__members__)}"]
    elif not stated and callable(value) and (text := signature(value)):
        stated = [f"{'class ' if isinstance(value, type) else ''}{name}{text}"]
    return stated, "\n".join(lines).strip("\n")


class Reference:
    """Pages by name, and where each documented name is."""

    def __init__(self) -> None:
        self.entries: dict[str, list[Entry]] = defaultdict(list)  # page -> entries
        self.titles: dict[str, str] = {}
        self.groups: dict[str, tuple[str, str]] = {}  # page -> module, group
        self.modules: dict[str, list[str]] = {}  # module -> its pages
        self.where: dict[str, str] = {}  # "nn.Linear" -> page#anchor
        for path in names.MODULES:
            self._add(path)

    def _add(self, path: str) -> None:
        try:
            owner = names.resolve(path)
        except (ImportError, AttributeError):
            return
        groups: dict[str, list[Entry]] = defaultdict(list)
        for name, value in names.members(owner):
            groups[names.group(path, name, value)].append((path, name, value))
        order = list(names.LAYER_TITLES if path == "taeda.nn" else names.TITLES)
        for group in sorted(groups, key=lambda g: order.index(g) if g else 0):
            page = page_name(path, group)
            self.titles[page] = title(path, group)
            self.groups[page] = path, group
            self.modules.setdefault(path, []).append(page)
            for entry in groups[group]:
                self.entries[page].append(entry)
                full = f"{path}.{entry[1]}".removeprefix("taeda.")
                self.where[full] = f"{page}#{anchor(path, entry[1])}"

    def link(self, name: str, path: str, page: str) -> str | None:
        """The link from a page to what a docstring of module `path` calls `name`."""
        name = re.sub(r"^(torch|taeda)\.", "", name).replace("F.", "nn.functional.", 1)
        if not re.fullmatch(r"[A-Za-z]\w{2,}(\.\w+)*|\w+\.\w+(\.\w+)*", name):
            return None
        inside = path.removeprefix("taeda").lstrip(".")
        first = [f"{inside}.{name}" if inside else name]
        if name[0].isupper() or "." in name or path == "taeda.nn.functional":
            first += [
                f"{module}.{name}"
                for module in ("nn", "optim", "utils.data", "optim.lr_scheduler", "nn.functional")
            ]
        for full in [*first, name]:
            if full in self.where:
                return relative(self.where[full], page)
        return None

    def section(self, entry: Entry, page: str) -> str:
        path, name, value = entry

        def links(text: str) -> str | None:
            found = self.link(text, path, page)
            return None if found == f"#{anchor(path, name)}" else found

        stated, doc = signatures(name, value, method=path == "taeda.Tensor")
        out = [pytorch_anchor(path, name), ""]
        out += [f"### `{name}` {{ #{anchor(path, name)} }}", ""]
        if stated:
            out += [
                '<div class="signature" markdown>',
                "",
                "```python",
                *stated,
                "```",
                "",
                "</div>",
            ]
            out.append("")
        doc = names.described_instance(name, value) or doc
        out.append(body(doc, links) if names.described(value) else "No description.")
        pages = self.modules.get(f"{path}.{name}", ())  # a class whose methods have pages: Tensor
        out += ["", *(f"- [{self.titles[other]}]({relative(other, page)})" for other in pages)]
        if isinstance(value, type) and str(value.__module__).startswith("taeda") and not pages:
            for method, function in vars(value).items():
                written = isinstance(function.__doc__, str) and callable(function)
                if method.startswith("_") or method == "extra_repr" or not written:
                    continue
                text = re.sub(r"\(self(, /)?(, |(?=\)))", "(", signature(function))
                target = f"torch{path.removeprefix('taeda')}.{name}.{method}"
                out += [
                    f"#### `{method}{text}` {{ #{target} }}",
                    "",
                    body(signatures(method, function)[1], links),
                ]
        return "\n".join(out)

    def pages(self) -> dict[str, str]:
        found = {"api/index.md": self.index()}
        for page, entries in self.entries.items():
            head = f"# {self.titles[page]}\n\n{introduction(*self.groups[page])}\n"
            sections = [self.section(entry, page) for entry in entries]
            found[page] = "\n\n".join([head, *sections]) + "\n"
        return found

    def index(self) -> str:
        out = [
            "# Reference",
            "",
            "`torch` stands for `taeda`: `import taeda as torch`. The search",
            "field above finds every name.",
            "",
        ]
        for path, pages in self.modules.items():
            out += [f"## {path.replace('taeda', 'torch', 1)}", "", f"{names.MODULES[path]}.", ""]
            for page in pages:
                count = len(self.entries[page])
                text = self.titles[page].partition(": ")[2] or self.titles[page]
                out.append(f"- [{text}]({relative(page, 'api/index.md')}), {count} names")
            out.append("")
        return "\n".join(out)
