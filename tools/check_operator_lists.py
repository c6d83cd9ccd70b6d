"""Checks that no file lists operators by hand: what is known of operators stands in ops/**/*.yaml.

A passage that names eight operators one after the other is a second table that someone would have
to keep in step: as string literals, as arguments of macros (`X(add)`, `REGISTER(mul)`), or as words
of one string ("add sub mul"), as functions or attributes that are named but not called (`torch.add,
F.relu`, `aten.add.Tensor: rule`, `&op::add`), keys (`dict(add=...)`), plain names and enumerators
that are items of a list (`[add, mul]`, `{kAdd, kMul}`, `Rule<add>`), or as what one import takes.
A name counts in whatever spelling: "aten::add.Tensor", "torch.add", "add_"; comments between names
do not part them. What one file compares a string with (`if name == "add"`, `case "add":`) is one
passage however much code stands between, and so are the methods of one class (`def add(self, x)`)
and the cells of a data file (`add,1`); the fields of a struct (`Fn add; Fn mul;`) are names like
others. An import of names that the file imported from defines itself is no list, nor is `__all__`:
both name functions that are there, and no operator has to be added to them. Lists that have
to be stand in ALLOWED with the reason. Prints each offence and exits 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cxx_text import without_comments

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["src", "include", "gen", "python", "tools", "bench", "cmake", "examples"]
CXX = {".cc", ".h", ".hpp", ".inc", ".cuh", ".cu"}
PYTHON = {".py", ".pyi"}
DATA = {".csv", ".tsv", ".yaml", ".yml", ".toml", ".json", ".txt"}
SUFFIXES = {*CXX, *PYTHON, *DATA, ".in", ".cmake", ""}
# That many different names with hardly anything else between them are a list.
SHORTEST = 8
ALLOWED = {
    "bench/families.py": "words of benchmark cases' names; a test finds cases without a family",
    "gen/expr.py": "the operators that Python's signs mean",
    "src/python/operators.cc": "the slots of Python's number protocol, in its order",
    "src/kernels/cpu/simd/lane.h": "functions of numbers that functors call, no operators",
    "src/kernels/cuda/text/std_math.cuh": "functions of numbers of the C library, no operators",
    "python/taeda/_missing/compilers.py": "names of torch.onnx.symbolic_opset, which raise",
    "python/taeda/_missing/parts.py": "names of torch.ao.nn.quantized.functional, which raise",
    "python/taeda/_decomp/language.py": "what expressions ask of tensors, numbers and dtypes",
    "python/taeda/fx/_codegen.py": "the signs that stand for functions of the module operator",
    "python/taeda/masked/maskedtensor/_rules.py": "the operators that move or reduce elements",
    "python/taeda/nested/_jagged.py": "the operators that reduce elements",
    "python/taeda/functional.py": "names of torch.functional, which are found in torch",
    "python/taeda/_functional.py": "those that are at home in torch.functional",
    "python/taeda/nn/functional.py": "functions that are one object with torch's",
    "python/taeda/nn/_functional/activation.py": "operators that the file's functions call",
    "python/taeda/_tensor.py": "what other frameworks call methods of tensors, beside their names",
    "tools/data/operators.csv": "PyTorch's operators, of which coverage.py counts those that exist",
    "tools/data/parity.json": "what make parity found, by operator",
    "tools/data/usage.csv": "what programs call, of which coverage.py counts what exists",
    "python/taeda/nested/_strided.py": "the operators of each tensor that name dimensions",
}
NAME = re.compile(r"^\s*(?:- op|\d):\s*([A-Za-z_0-9]+)[.(]", re.M)
# A string, an argument of a macro, a member that is named and not called, a keyword.
MENTION = re.compile(
    r"""["'](?P<string>\w+(?:(?:::|\.)\w+)*)["']"""
    r"|\b[A-Z_]+\((?P<macro>[^()\"']+)\)"
    r"|\b\w+(?P<member>(?:(?:::|\.)\w+)+)(?!\w|::|\s*[.(])"
    r"|[(,]\s*(?P<keyword>[a-z_0-9]+)=(?!=)"
    r"|(?<=[\[{(,<])\s*&?(?P<item>[A-Za-z_]\w*)(?=\s*(?:=\s*\w+\s*)?[,\]})>])"
)
# Of an import: what it takes, and what a file defines at its top level.
IMPORT = re.compile(r"^[ \t]*from\s+(?P<module>[\w.]+)\s+import\s+(?P<names>\([^)]*\)|.*)", re.M)
EXPORTS = re.compile(r"^__all__\s*(?::[^=]*)?\+?=\s*[\[(][^\])]*[\])]", re.M)
DEFINITION = re.compile(r"^(?:(?:async )?def |class )?(\w+)(?= *[(:=])", re.M)
# Where operators are named: begin, end, which.
Mention = tuple[int, int, set[str]]
# At most this many characters may stand between two names of one list.
GAP = 80
STRING = re.compile(r'\"\"\"(.*?)\"\"\"|"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'', re.S)
# What a file compares with names, wherever; the methods of a class; the cells of data.
COMPARED = re.compile(
    r"""(?:[!=]=\s*|\bcase\s+|\belif\s+|\bin\s+)[bru]*["'](?P<a>[\w.:]+)["']"""
    r"""|["'](?P<b>[\w.:]+)["']\s*[!=]="""
)
METHOD = re.compile(r"^[ \t]+(?:async )?def (\w+)\(\s*(?:self|cls|_)\b", re.M)
CLASS = re.compile(r"^class \w+.*?(?=^\S|\Z)", re.M | re.S)
FIELD = re.compile(r"(?<=[;{])\s*[\w:<>,*&\s]+?[\s*&](\w+)\s*(?:\{\}|=\s*\w+)?(?=;)")
CELL = re.compile(r"""(?:^|[,;:|\t\[{])[ \t"'-]*([a-z_]\w*)["']?[ \t]*(?=$|[,;:|\t\]}])""", re.M)
# A string is a list where so many of its words are names; prose has some too ("all", "where").
SHARE = 0.75


def operator_names(root: Path) -> set[str]:
    names: set[str] = set()
    for file in root.glob("ops/**/*.yaml"):
        names.update(NAME.findall(file.read_text()))
    return names


def _own_names(module: str, file: Path, root: Path) -> set[str]:
    """What a module of the repository that `file` imports from defines; nothing of others'."""
    dots = len(module) - len(module.lstrip("."))
    start = file.parents[dots - 1] if dots else root / "python"
    path = start.joinpath(*filter(None, module.split(".")))
    sources = [f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()]
    found = (DEFINITION.findall(f.read_text()) for f in sources)
    return {name for names in found for name in names}


def _imports(file: Path, text: str, root: Path, names: set[str]) -> Iterator[Mention]:
    """Operators that an import takes from where they are not defined."""
    for match in IMPORT.finditer(text):
        taken = re.findall(r"(\w+)(?:\s+as\s+\w+)?", re.sub(r"#.*", "", match["names"]))
        if found := names.intersection(taken) - _own_names(match["module"], file, root):
            yield match.start(), match.end(), found


def _spelled(word: str) -> str:
    """The operator's name of a spelling: relu of relu_, bitwise_and of kBitwiseAnd."""
    if re.match(r"k[A-Z]", word):
        word = re.sub(r"(?<!^)([A-Z])", r"_\1", word[1:]).lower()
    return word.removesuffix("_")


def _mentions(text: str, names: set[str]) -> Iterator[Mention]:
    """Where operators are named otherwise."""
    imports = [match.span() for match in IMPORT.finditer(text)]
    for match in MENTION.finditer(text):
        if match["item"] and any(a <= match.start() < b for a, b in imports):
            continue
        words = re.split(r"::|\.|[\s,]+", match[match.lastgroup or 0])
        if found := names.intersection(_spelled(word) for word in words):
            yield match.start(), match.end(), found
    for match in STRING.finditer(text):
        words = re.findall(r"\w+", match[1] or match[2] or match[3] or "")
        found = names.intersection(words)
        if len(words) > 1 and len(found) >= SHARE * len(words):
            yield match.start(), match.end(), found


def _code(file: Path) -> str:
    """The text of a file without its comments, and without `__all__`."""
    text = file.read_text()
    if file.suffix in CXX:
        return without_comments(text)
    if file.suffix in PYTHON:
        text = re.sub(r"^\s*#.*", "", text, flags=re.M)
        text = EXPORTS.sub(lambda match: "\n" * match[0].count("\n"), text)
    return text


def _passages(file: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Passages that count as one list, whatever stands between the names: offset, words."""
    if file.suffix in PYTHON | CXX:
        compared = [*COMPARED.finditer(text)]
        if compared:
            words = [re.split(r"::|\.", m["a"] or m["b"]) for m in compared]
            yield compared[0].start(), [w for parts in words for w in parts]
    if file.suffix in PYTHON:
        for match in CLASS.finditer(text):
            yield match.start(), METHOD.findall(match[0])
    if file.suffix in DATA and file.name != "CMakeLists.txt":
        yield 0, CELL.findall(text)


def longest_list(file: Path, root: Path, names: set[str]) -> tuple[int, int]:
    """(how many different operators the longest list in `file` names, the line it starts at)."""
    text = _code(file)
    mentions = [*_mentions(text, names)]
    if file.suffix in PYTHON:
        mentions += _imports(file, text, root, names)
    if file.suffix in CXX:
        mentions += [(*m.span(1), {m[1]}) for m in FIELD.finditer(text) if m[1] in names]
    best, best_line = 0, 0
    for offset, words in _passages(file, text):
        if (count := len(names.intersection(map(_spelled, words)))) > best:
            best, best_line = count, text.count("\n", 0, offset) + 1
    run: set[str] = set()
    start = end = 0
    for begin, stop, found in sorted(mentions, key=lambda mention: mention[:2]):
        if not run or begin - end > GAP:
            run, start = set(), begin
        run = run | found
        end = max(end, stop)
        if len(run) > best:
            best, best_line = len(run), text.count("\n", 0, start) + 1
    return best, best_line


def check(root: Path, allowed: dict[str, str] = ALLOWED) -> list[str]:
    names = operator_names(root)
    found = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SUFFIXES or not file.is_file() or "__pycache__" in file.parts:
                continue
            place = str(file.relative_to(root))
            count, line = longest_list(file, root, names)
            if count >= SHORTEST and place not in allowed:
                found.append(f"{place}:{line}: lists {count} operators by hand")
            elif count < SHORTEST and place in allowed:
                found.append(f"{place}: has no list of operators; take it out of ALLOWED")
    gone = [place for place in allowed if not (root / place).is_file()]
    return found + [f"{place}: does not exist; take it out of ALLOWED" for place in gone]


if __name__ == "__main__":
    offences = check(ROOT)
    print("\n".join(offences) or "no file lists operators by hand")
    sys.exit(bool(offences))
