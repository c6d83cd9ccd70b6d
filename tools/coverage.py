"""How much of PyTorch's interface taeda has: writes docs/coverage.md and the README's sentence.

Three lists are looked up, name by name, in the built package: tools/data/usage.csv, the names that
public PyTorch programs use with the number of programs that use each, imports.csv, what two or more
of them and of their libraries also import or read while they run, and operators.csv, PyTorch's own
operators by group. The public names of PyTorch's modules, and where they differ here, are those of
tools/public_names.py. A name counts as there when it can be reached, unless it or what
it is in is marked `_only_raises` (taeda/_missing); that it also does what PyTorch's does is what
the tests are for.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import parity_page  # noqa: E402
import public_names  # noqa: E402
from table import replace_between  # noqa: E402

# What the first component of a name in usage.csv stands for.
OWNERS = {
    "Tensor": "Tensor",
    "Module": "nn.Module",
    "Optimizer": "optim.Optimizer",
    "GradScaler": "amp.GradScaler",
    "LRScheduler": "optim.lr_scheduler.LRScheduler",
}
KINDS = {
    "function": "functions",
    "method": "Tensor methods",
    "module": "nn layers and Module methods",
    "optim": "optimizers and schedules",
    "data": "data loading",
    "class": "other classes",
    "other": "other names",
}


def state(package: Any, name: str) -> str:
    """Whether `name` (such as nn.Module.parameters) "works", only "raises", or is "missing"."""
    found = package
    walked = package.__name__
    raises = False
    for part in name.split("."):
        walked = f"{walked}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(walked)
            except ImportError:
                return "missing"
        except Exception:
            return "missing"
        raises = raises or getattr(found, "_only_raises", False) is True  # torch.ops has any name
    return "raises" if raises else "works"


def has_instances_attribute(package: Any, owner: str, name: str) -> bool:
    """Whether objects of optimizers and schedules have an attribute that their classes lack."""
    optimizer = package.optim.SGD([package.zeros(1)], lr=0.1)
    objects = {
        "Optimizer": optimizer,
        "LRScheduler": package.optim.lr_scheduler.StepLR(optimizer, 1),
    }
    return hasattr(objects.get(owner), name)


def lookup(package: Any, name: str) -> bool:
    """Whether `name` can be reached, and does more than raise."""
    return state(package, name) == "works"


def resolve(package: Any, api: str) -> bool:
    first, _, rest = api.partition(".")
    if first == "torch":
        return lookup(package, rest) if rest else True
    found = lookup(package, f"{OWNERS[first]}.{rest}")
    return found or has_instances_attribute(package, first, rest)


def read(name: str) -> list[dict[str, str]]:
    with open(ROOT / "tools" / "data" / name, newline="") as file:
        return list(csv.DictReader(file))


def operator_exists(package: Any, name: str) -> bool:
    """Whether it is a function or a method; of those that PyTorch has in place only (uniform_) too,
    whose functional form is in torch.ops.aten alone."""
    return any(lookup(package, n) for n in (name, f"Tensor.{name}", f"Tensor.{name}_"))


def imported(package: Any) -> dict[str, list[str]]:
    """The names of imports.csv by state, each with its number of programs."""
    found: dict[str, list[str]] = {"works": [], "raises": [], "missing": []}
    for row in read("imports.csv"):
        name = row["api"]
        shown = f"`{name}` ({row['programs']})"
        found[state(package, name.removeprefix("torch."))].append(shown)
    return found


def percent(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part // max(whole, 1)} %)"


def summary(package: Any) -> str:
    usage = read("usage.csv")
    have = {row["api"]: resolve(package, row["api"]) for row in usage}
    lines = ["| names that public PyTorch programs use | in taeda |", "|---|---:|"]
    callables = [row["api"] for row in usage if row["kind"] in ("function", "method")]
    for title, names in (
        ("the 250 most used functions and Tensor methods", callables[:250]),
        ("the 500 most used functions and Tensor methods", callables[:500]),
        *(
            (title, [row["api"] for row in usage if row["kind"] == kind])
            for kind, title in KINDS.items()
        ),
    ):
        lines.append(f"| {title} | {percent(sum(have[name] for name in names), len(names))} |")
    others = imported(package)
    works, whole = len(others["works"]), sum(map(len, others.values()))
    lines.append(f"| other names that they and their libraries import | {percent(works, whole)} |")
    operators = read("operators.csv")
    there = sum(operator_exists(package, row["name"]) for row in operators)
    lines.append(f"| PyTorch's public operators | {percent(there, len(operators))} |")
    return "\n".join(lines)


def sentence(package: Any) -> str:
    """What the README says of it."""
    used = [row["api"] for row in read("usage.csv") if row["kind"] in ("function", "method")][:500]
    names = [row["name"] for row in read("operators.csv")]
    works = sum(resolve(package, name) for name in used)
    there = sum(operator_exists(package, name) for name in names)
    return (
        f"Of the {len(used)} functions and methods that public PyTorch programs use most, {works} "
        f"are there; of\nPyTorch's {len(names)} public operators, {there}."
    )


def page(package: Any) -> str:
    usage, operators = read("usage.csv"), read("operators.csv")
    text = f"""# Coverage of PyTorch's interface

Made by `make docs-coverage` from the built package. A name counts as there when it can
be reached and does more than raise; whether it does what PyTorch's does is what "What agrees with
PyTorch" says.

{summary(package)}

## PyTorch's operators by group

| group | there | missing |
|---|---:|---|
"""
    groups: dict[str, list[str]] = defaultdict(list)
    for row in operators:
        groups[row["group"]].append(row["name"])
    for group, names in sorted(groups.items()):
        missing = sorted(name for name in names if not operator_exists(package, name))
        listed = ", ".join(f"`{name}`" for name in missing) or "none"
        text += f"| {group} | {len(names) - len(missing)} of {len(names)} | {listed} |\n"
    text += parity_page.page(operators)
    text += (
        "\n## Names that programs use and taeda lacks\n\nThe number of programs is in brackets.\n"
    )
    for kind, title in KINDS.items():
        missing_rows = [
            row for row in usage if row["kind"] == kind and not resolve(package, row["api"])
        ]
        listed = ", ".join(f"`{row['api']}` ({row['programs']})" for row in missing_rows)
        text += f"\n### {title[0].upper()}{title[1:]}\n\n{listed or 'None.'}\n"
    others = imported(package)
    text += "\n## Names that programs and libraries import\n\n"
    for kind, title in (
        ("raises", "Those that can be imported and raise when called"),
        ("missing", "Those that are missing"),
    ):
        text += f"{title}: {', '.join(others[kind]) or 'none'}.\n\n"
    return text + differences(package)


def differences(package: Any) -> str:
    """Where public names of modules differ from PyTorch's, each with the reason."""
    missing = sum(len(names.split()) for names, _ in public_names.CONSTANTS.values())
    text = f"""## Names of modules

Of {len(public_names.MODULES)} modules every public name of PyTorch's can be read here and no other
can, but for these; of torch, Tensor, nn, nn.functional, linalg and fft every one can be read.
Constants are compared too, be they in a module's `__all__` or not: {missing} are missing. What
PyTorch's modules have imported for themselves is no name of theirs.

| module | names | |
|---|---|---|
"""
    tables = (
        ("missing", public_names.MISSING),
        ("missing", public_names.CONSTANTS),
        ("added", public_names.ADDED),
    )
    for kind, table in tables:
        for module, (names, reason) in sorted(table.items()):
            listed = "all" if names == "*" else ", ".join(f"`{name}`" for name in names.split())
            text += f"| `torch.{module}` | {listed} | {kind}: {reason} |\n"
    found = public_names.raising(package)
    text += f"""
### Names that only raise

{len(found)} names are there to be imported and raise NotImplementedError when called:

| what is missing; what to use | names |
|---|---|
"""
    reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, (_, reason) in found.items():
        module, _, last = name.rpartition(".")
        reasons[reason][f"torch.{module}".rstrip(".")].append(last)
    for reason, modules in sorted(reasons.items()):
        listed = "; ".join(
            f"`{module}`: {', '.join(names)}" for module, names in sorted(modules.items())
        )
        text += f"| {reason} | {listed} |\n"
    return text


def write(package: Any) -> None:
    """Refreshes docs/coverage.md and the README's sentence."""
    (ROOT / "docs" / "coverage.md").write_text(page(package))
    readme = ROOT / "README.md"
    readme.write_text(replace_between(readme.read_text(), "coverage", sentence(package)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missing", type=int, help="only print the first N functions missing")
    parser.add_argument(
        "--imports", action="store_true", help="only print which names of imports.csv do not work"
    )
    parser.add_argument("--package", default="taeda")
    args = parser.parse_args()
    package = importlib.import_module(args.package)
    if args.missing:
        rows = [row for row in read("usage.csv") if row["kind"] in ("function", "method")]
        for i, row in enumerate(rows[: args.missing]):
            if not resolve(package, row["api"]):
                print(f"{i + 1:4d} {row['programs']:>4} {row['api']}")
        return 0
    if args.imports:
        for kind, names in imported(package).items():
            print(f"{len(names)} {kind}", *(names if kind != "works" else ()), sep="\n    ")
        return 0
    write(package)
    return 0


if __name__ == "__main__":
    sys.exit(main())
