"""The part of docs/coverage.md that says what of each operator agrees with PyTorch.

`make parity` calls taeda and PyTorch with PyTorch's own samples and writes tools/data/parity.json:
for each entry of PyTorch's database the calls made and those that differ, by way of calling.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "tools" / "data" / "parity.json"
EXCEPTIONS = ROOT / "tests" / "parity" / "exceptions.csv"
# Column -> the ways of calling that it sums up, as in tests/parity/cases.py.
COLUMNS = {
    "float": ("function:float",),
    "half": ("function:half",),
    "complex": ("function:complex",),
    "integer": ("function:integer",),
    "gradient": ("gradient",),
    "double": ("double gradient",),
    "forward": ("forward", "forward over reverse"),
    "vmap": ("vmap",),
    "permuted": ("permuted",),
    "method": ("method",),
    "in-place": ("in-place",),
    "out=": ("out", "out strided", "out resized", "out dtype", "out cast", "out aliased"),
    "errors": ("error", "wrong"),
}
ABSENT = "out absent"  # out= of functions that have none in PyTorch, counted in the column of out=
# Columns that the databases leave without calls though PyTorch has what they are about.
UNTRIED = ("out=", "errors")
# Groups whose operators are not compared: tests/parity makes no tensors of sparse layouts, and that
# wrong arguments are refused says nothing of the right ones.
OUT_OF_SCOPE = ("sparse",)


@dataclass
class Cell:
    """Calls made, calls that differ, and whether all that differs has a reason."""

    calls: int = 0
    bad: int = 0
    explained: bool = True
    absent: int = 0  # of the calls, those that PyTorch refuses since it has no such variant
    wrong: int = 0  # of those that differ, calls with arguments that are not the databases'
    blank: str = ""

    def __str__(self) -> str:
        if not self.calls:
            return self.blank
        if not self.bad:
            return "none" if self.absent == self.calls else "yes"
        return f"{self.bad}/{self.calls}" + ("*" if self.explained else "")


@dataclass
class Row:
    name: str
    group: str
    cells: dict[str, Cell] = field(
        default_factory=lambda: {
            name: Cell(blank="not tried" if name in UNTRIED else "") for name in COLUMNS
        }
    )

    @property
    def in_scope(self) -> bool:
        return self.group not in OUT_OF_SCOPE

    @property
    def called(self) -> bool:
        return any(cell.calls for cell in self.cells.values())

    @property
    def passes(self) -> bool:
        """In every column that was tried."""
        return self.called and not any(cell.bad for cell in self.cells.values())

    @property
    def passes_databases(self) -> bool:
        """The same without wrong arguments that are made of right ones."""
        return self.called and not any(cell.bad > cell.wrong for cell in self.cells.values())

    @property
    def explained(self) -> bool:
        """It passes, or each difference has its reason."""
        return self.called and all(cell.explained for cell in self.cells.values())


def reasons() -> list[dict[str, str]]:
    with open(EXCEPTIONS, newline="") as file:
        return list(csv.DictReader(file))


def _owner(title: str, names: set[str]) -> str:
    """The operator of an entry such as `linalg.norm.subgradients_at_zero`."""
    while title and title not in names:
        title = title.rpartition(".")[0]
    return title


def _fill(row: Row, title: str, modes: dict[str, list[int]], unexplained: set[tuple]) -> None:
    for column, ways in COLUMNS.items():
        cell = row.cells[column]
        for way in (*ways, ABSENT) if column == "out=" else ways:
            calls, bad = modes.get(way, (0, 0))
            cell.calls, cell.bad = cell.calls + calls, cell.bad + bad
            cell.absent += calls if way == ABSENT else 0
            cell.wrong += bad if way == "wrong" else 0
            if bad and (title, way.partition(":")[0]) in unexplained:
                cell.explained = False


def rows(operators: list[dict[str, str]], results: dict[str, Any]) -> list[Row]:
    """The operators' rows; nothing is counted of those out of scope."""
    found = {row["name"]: Row(row["name"], row["group"]) for row in operators}
    known = {(row["operator"], row["aspect"]) for row in reasons()}
    unexplained = {
        (title, aspect.rpartition(" ")[0])
        for title, aspect, _ in results["mismatches"]
        if (title, aspect) not in known and not aspect.endswith(" words")
    }
    for title, modes in results["operators"].items():
        owner = _owner(title, set(found))
        if owner and found[owner].in_scope:
            _fill(found[owner], title, modes, unexplained)
    return list(found.values())


def _summary(table: list[Row]) -> str:
    text = "| group | operators | pass in every column | the rest is listed below | do not pass |\n"
    text += "|---|---:|---:|---:|---|\n"
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in table:
        groups[row.group].append(row)
    for group, members in sorted(groups.items()):
        if group in OUT_OF_SCOPE:
            names = ", ".join(f"`{row.name}`" for row in members)
            text += f"| {group} | {len(members)} | | | out of scope, not compared: {names} |\n"
            continue
        passing = sum(row.passes for row in members)
        reasoned = sum(row.explained and not row.passes for row in members)
        listed = ", ".join(f"`{row.name}`" for row in members if not row.explained) or "none"
        text += f"| {group} | {len(members)} | {passing} | {reasoned} | {listed} |\n"
    return text


def _table(table: list[Row]) -> str:
    text = "| operator | " + " | ".join(COLUMNS) + " |\n|---|" + "---|" * len(COLUMNS) + "\n"
    compared = [row for row in table if row.in_scope]
    for row in sorted(compared, key=lambda row: (row.group, row.name)):
        cells = "|".join(str(cell) for cell in row.cells.values())
        text += f"|{row.name}|{cells}|\n"
    return text


def _reasons() -> str:
    text = "| operator | what differs | reason |\n|---|---|---|\n"
    made: dict[tuple[str, str], list[str]] = defaultdict(list)  # of wrong arguments, by reason
    for row in reasons():
        if row["aspect"].startswith("wrong "):
            made[row["aspect"], row["reason"]].append(row["operator"])
        else:
            text += f"| `{row['operator']}` | {row['aspect']} | {row['reason']} |\n"
    for (aspect, reason), names in sorted(made.items()):
        text += f"| {', '.join(f'`{name}`' for name in names)} | {aspect} argument | {reason} |\n"
    return text


HEAD = """`make parity` calls each of PyTorch's operators in taeda and in PyTorch {pytorch}, with
the samples of PyTorch's own databases of operators, modules and optimizers. The calls of which this
page tells, {calls:,} of them, were made on {date}; {deaths} crashed or hung.

**{without} of {rows} rows ({without_percent:.1f} %) pass by PyTorch's databases**, their wrong
arguments included: every call in every column agrees. **{passing} of {rows} ({percent:.1f} %)**
pass with generated wrong arguments as well. {reasoned} pass when a difference that is listed below
counts as passed. The aim is {goal} %. The operators on sparse layouts ({names}) are out of scope:
they are not compared and in none of these numbers.

A call is one of a sample in one way that both frameworks made. The databases have {refused} wrong
arguments, for {tried} rows, of which {texts} raise an exception whose text has PyTorch's words;
{generated:,} more are made of right ones, for {wronged} rows (`tests/parity/wrong.py`).

A value that is not PyTorch's is held against PyTorch's in double precision, and passes where it is
hardly farther off. Where PyTorch errs in double precision too, or promises no order of equal
elements, it has to be what an independent answer says by the tolerance of its dtype: NumPy's or
SciPy's function of the database, finite differences of PyTorch's function for derivatives, or
PyTorch's stable sort (`tests/parity/truths.py`)."""
LEGEND = """`yes`: all calls agreed. `2/30`: two of thirty calls differ, with `*` where they
are listed above. `not tried`: the databases have no such call. `none`: PyTorch's function takes no
`out=`, and a call with one is refused here too. Nothing: PyTorch has no such variant or dtype, or
does not do it either. The first four columns are values, dtype, shape, strides and requires_grad by
the dtype of the arguments; `forward` is forward mode, also over reverse; `permuted` are arguments
that are transposed or channels_last; `out=` is one that is contiguous, strided, resized, of another
dtype, and the first argument itself; `errors` are wrong arguments, which must raise the exception
of PyTorch's class, and where PyTorch takes them none."""
GOAL = 98  # per cent of the rows that shall pass


def _with(results: dict[str, Any], table: list[Row], way: str) -> int:
    """The rows that were called in this way."""
    names = {row.name for row in table}
    called = {_owner(t, names) for t, modes in results["operators"].items() if way in modes}
    return sum(row.name in called for row in table if row.in_scope)


def _head(results: dict[str, Any], table: list[Row]) -> str:
    names = {row.name: row for row in table}
    inside = {
        title: modes
        for title, modes in results["operators"].items()
        if not (owner := _owner(title, set(names))) or names[owner].in_scope
    }
    deaths = sum(aspect.endswith((" crash", " hang")) for _, aspect, _ in results["mismatches"])
    refused = sum(modes.get("error", (0, 0))[0] for modes in inside.values())
    other = sum(n for _, aspect, n in results["mismatches"] if aspect == "error words")
    compared = [row for row in table if row.in_scope]
    outside = [row for row in table if not row.in_scope]
    passing = sum(row.passes for row in compared)
    without = sum(row.passes_databases for row in compared)
    return HEAD.format(
        **results,
        percent=100 * passing / len(compared),
        without_percent=100 * without / len(compared),
        goal=GOAL,
        tried=_with(results, table, "error"),
        wronged=_with(results, table, "wrong"),
        generated=sum(modes.get("wrong", (0, 0))[0] for modes in inside.values()),
        deaths=deaths or "none",
        passing=passing,
        reasoned=sum(row.explained for row in compared),
        without=without,
        rows=len(compared),
        names=", ".join(f"`{row.name}`" for row in outside),
        refused=refused,
        texts=refused - other,
    )


def read() -> dict[str, Any]:
    """The results, the counts of each entry by way of calling: "0:12 3:4/1" are 12 calls of
    modes[0], and 4 of modes[3] of which 1 differs."""
    results: dict[str, Any] = json.loads(RESULTS.read_text())
    for title, text in results["operators"].items():
        counted = {}
        for part in text.split():
            mode, _, count = part.partition(":")
            made, _, bad = count.partition("/")
            counted[results["modes"][int(mode)]] = [int(made), int(bad or 0)]
        results["operators"][title] = counted
    return results


def page(operators: list[dict[str, str]]) -> str:
    results = read()
    table = rows(operators, results)
    return f"""
## What agrees with PyTorch

{_head(results, table)}

{_summary(table)}
What differs and why:

{_reasons()}
### Operator by operator

{LEGEND}

{_table(table)}"""
