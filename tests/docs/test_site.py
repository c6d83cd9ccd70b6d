"""The pages of the site: all names, links that lead somewhere, nothing from elsewhere."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]

import make_docs  # noqa: E402
from site_pages import api, cxx, markdown  # noqa: E402

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "pages"
    make_docs.stage(folder)
    return folder


def anchors(page):
    text = page.read_text()
    slugs = re.findall(r"^#+ (.+)$", text, re.M)
    plain = {re.sub(r"[^\w\s-]", "", s).strip().lower().replace(" ", "-") for s in slugs}
    named = re.findall(r"\{ #(\S+) \}", text) + re.findall(r'<a id="(\S+)">', text)
    return set(named) | plain


def test_links_lead_to_pages_and_names_of_the_site(site):
    broken = []
    known = {}
    for page in site.rglob("*.md"):
        for target in LINK.findall(FENCED.sub("", page.read_text())):
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            other = (page.parent / path).resolve() if path else page
            if anchor and other not in known and other.exists():
                known[other] = anchors(other)
            if not other.exists() or (anchor and anchor not in known[other]):
                broken.append(f"{page.relative_to(site)}: {target}")
    assert broken == []


def test_every_page_is_in_the_navigation(site):
    shown = (site.parent / "mkdocs.yml").read_text()
    missing = [p for p in site.rglob("*.md") if str(p.relative_to(site)) not in shown]
    assert missing == []


def test_the_reference_has_signatures_and_links_names(site):
    page = (site / "api" / "nn-linear.md").read_text()
    assert "class Linear(in_features: int, out_features: int, bias: bool = True" in page
    functions = (site / "api" / "torch-elementwise.md").read_text()
    assert "{ #taeda.add }" in functions and "add(input: Tensor | Number" in functions


def test_methods_stand_on_one_page_and_without_self(site):
    of_torch = (site / "api" / "torch-others.md").read_text()
    assert "#### `dot(" not in of_torch and "(Tensor-elementwise.md)" in of_torch
    text = (site / "api" / "optim.md").read_text()
    assert "#### `step(closure: Callable" in text
    assert not re.search(r"^#### `\w+\(self", text, re.M)


def test_the_search_puts_what_programs_use_first_and_leaves_lists_out(site):
    def head(path):
        text = (site / path).read_text()
        return text.split("---")[1] if text.startswith("---\n") else ""

    assert "exclude: true" in head("project/changelog.md") and "exclude" in head("coverage.md")
    boost = {p: float(head(p).split("boost:")[1]) for p in ("api/nn-linear.md", "cpp/nn.md")}
    assert boost["api/nn-linear.md"] > 1 > boost["cpp/nn.md"] > 0


def test_methods_are_shown_without_their_tensor_and_without_out(site):
    text = (site / "api" / "Tensor-reductions.md").read_text()
    shown = re.findall(r"```python\n(.*?)```", text, re.S)
    assert "amax(dim: int | Sequence[int] = [], keepdim: bool = False) -> Tensor\n" in shown
    assert not re.search(r"\b(input|out): ", "".join(shown))
    text = (site / "api" / "Tensor-elementwise.md").read_text()
    assert "add(other: Tensor | Number, *, alpha: Number = 1) -> Tensor\n" in text
    assert api.as_method("item() -> number") == "item() -> number"
    assert api.as_method("f(input: Tensor, size: Sequence[int], *, out: T | None = None) -> T") == (
        "f(size: Sequence[int]) -> T"
    )


def test_building_the_site_writes_nothing_outside_of_build(monkeypatch, tmp_path):
    pages = {p: p.stat().st_mtime_ns for p in [ROOT / "README.md", ROOT / "docs" / "coverage.md"]}
    monkeypatch.setattr(sys, "argv", ["make_docs.py", "--stage"])
    monkeypatch.setattr(make_docs, "PAGES", tmp_path / "pages")
    assert make_docs.main() == 0
    assert {p: p.stat().st_mtime_ns for p in pages} == pages


def test_the_site_has_the_addresses_that_the_project_names():
    assert make_docs.addresses({"Paper": "https://arxiv.org/abs/1912.01703"}) == ""
    found = make_docs.addresses(
        {"Source": "https://a.example/s", "Documentation": "https://b.example"}
    )
    assert found == "site_url: https://b.example\nrepo_url: https://a.example/s\n"


def test_docstrings_become_markdown():
    text = "A * b_c `Linear`.\n\nArgs:\n    x, y: two *s\n        more\n\n>>> 1 < 2\nTrue"
    found = markdown.body(text, {"Linear": "nn.md#Linear"}.get)
    assert "A \\* b\\_c [`Linear`](nn.md#Linear)." in found
    assert "- `x, y`: two \\*s more" in found
    assert "```pycon\n>>> 1 < 2\nTrue\n```" in found


def test_headers_become_prose_and_declarations():
    head = "// A box.\n//\n//   Box b;\n//\n// Cheap.\n#pragma once\n"
    text = head + "class Box {\n public:\n  // Opens.\n  void open();\n};"
    kinds = [kind for kind, _ in cxx.blocks(text)]
    assert kinds == ["comment", "code", "comment", "code"]
    prose = cxx.prose(cxx.blocks(text)[0][1])
    assert prose.split("\n") == ["A box.", "", "```cpp", "Box b;", "```", "", "Cheap."]
    for header in cxx.headers():
        assert len(cxx.page(header)) > 300, header


def test_template_arguments_in_headers_comments_are_text():
    lines = ["Box<T, N>: a\\b[i] of `Span<T>", "and_more*`, x_y.", "  Box<int> b;", "", "  b[0];"]
    text = cxx.prose(lines)
    assert text.startswith("Box&lt;T, N>: a\\\\b\\[i\\] of `` Span<T>\nand_more* ``, x\\_y.\n")
    assert text.endswith("```cpp\nBox<int> b;\n\nb[0];\n```")
    for header in cxx.headers():
        outside = re.sub(r"(`+).+?\1", "", FENCED.sub("", cxx.page(header)), flags=re.S)
        assert not re.search(r"<\w|\\[^*_\[\]#|\\\d+.>-]", outside), header
    assert "<" not in re.sub(r"(`+).+?\1", "", cxx.pages()["cpp/index.md"])


def test_pytorchs_anchors_lead_to_names_and_methods(site):
    assert "torch.nn.CrossEntropyLoss" in anchors(site / "api" / "nn-losses.md")
    assert "torch.stack" in anchors(site / "api" / "torch-shapes.md")
    assert "torch.Tensor.add" in anchors(site / "api" / "Tensor-elementwise.md")
    assert "torch.nn.Module.train" in anchors(site / "api" / "nn-containers.md")


def test_a_page_says_first_what_it_holds(site):
    opening = (site / "api" / "nn-losses.md").read_text().partition("# ")[2].split("\n")[2]
    assert opening == "Losses and distances: what `torch.nn` has of them."
    assert "\nLearning rate schedules.\n" in (site / "api" / "optim.lr_scheduler.md").read_text()


def test_an_enumeration_shows_its_members(site):
    text = (site / "api" / "utils.benchmark.md").read_text()
    assert "class Colorize(Enum): NONE, COLUMNWISE, ROWWISE\n" in text


ORDER = """
const { namesFirst } = require(process.argv[1]);
const [query, groups] = JSON.parse(process.argv[2]);
console.log(namesFirst(query, groups).map(group => group[0].location).join(" "));
"""


@pytest.mark.parametrize(
    "query, expected",
    [
        ("torch.stack*", "api/t.html#taeda.stack"),
        ("Stack", "api/t.html#taeda.stack"),
        ("StackDataset", "api/d.html#taeda.d.StackDataset"),
        ("learning rate schedule", "api/lr.html"),
        ("F.pad", "api/f.html#taeda.nn.functional.pad"),
        ("nothing", "cpp/t.html#stack"),
    ],
)
def test_the_search_finds_exact_names_first(query, expected):
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    titles = {
        "cpp/t.html#stack": "stack",
        "api/d.html#taeda.d.StackDataset": "<code>Stack<mark>Dataset</mark></code>",
        "api/t.html#taeda.pad": "<code>pad</code>",
        "api/f.html#taeda.nn.functional.pad": "<code>pad</code>",
        "api/t.html#taeda.stack": "<code>stack</code>",
        "api/p.html#taeda.p.schedule": "<code>schedule</code>",
        "api/lr.html": "torch.optim.lr_scheduler",
    }
    groups = [
        [
            {
                "location": at,
                "title": title,
                "text": "<p>Learning rate schedules.</p>" * (at[4] == "l"),
            }
        ]
        for at, title in titles.items()
    ]
    script = str(ROOT / "docs" / "site" / "exact-names.js")
    command = [node, "-e", ORDER, script, json.dumps([query, groups])]
    assert subprocess.check_output(command, text=True).split()[0] == expected


def test_the_built_site_asks_nothing_of_the_network(site):
    mkdocs = make_docs.MKDOCS
    if not mkdocs.exists():
        pytest.skip("make docs installs mkdocs")
    config = str(site.parent / "mkdocs.yml")
    built = site.parent / "site"
    subprocess.run([mkdocs, "build", "-q", "--strict", "-f", config, "-d", str(built)], check=True,
                   env={"NO_MKDOCS_2_WARNING": "1"})  # fmt: skip
    loaded = set()
    for page in built.rglob("*.html"):
        tags = re.findall(
            r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?([^\" >]+)", page.read_text()
        )
        loaded |= {tag for tag in tags if re.match(r"(https?:)?//", tag)}
    assert loaded == set()
    assert "taeda.nn.Linear" in (built / "search" / "search_index.js").read_text()
