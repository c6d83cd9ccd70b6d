"""Libraries' own test suites, run by taeda and by PyTorch: `make suites`.

    python bench/compare_suites.py [--only einops,timm] [--again] [--failed]
        [--run taeda] [--sources 'F/{owner}+{name}']

Each suite runs twice on the same checkout: with pytest under `python -m taeda` where no torch is
installed, and under `python` with PyTorch. What each test came to is compared by its id. The table
goes to docs/suites.md, with every test that passes with PyTorch only; the rows of suites that were
not run stay.

To add a suite, add a table to bench/suites/suites.toml, and the packages that it needs and
bench/programs/requirements.txt lacks to bench/suites/requirements.txt:

    [NAME]
    repository = "OWNER/NAME"       at github.com
    revision = "v1.0"               a tag or commit
    files = ["tests", "src"]        what is needed of the repository; all of it if left out
    folder = "."                    where pytest runs; packages that lie in it hide installed ones
    tests = ["tests"]               files and folders, relative to it
    arguments = ["-k", "cpu"]       more for pytest
    environment = { A = "1" }
    packages = ["click<8"]          versions of packages for this suite only
    limit = 60                      seconds of the processor that a test may take
    share = 10                      percent of the tests that are run, chosen by their ids
    [NAME.reasons]                  why tests may fail on taeda: a pattern of ids -> the reason
    "*_cuda*" = "needs a GPU"
    [NAME.left_out]                 what is not counted, and why: the page says so
    "*LAZY*" = "taeda has no such devices"

Then `--only NAME`; `build/suites/NAME` has the checkout, `build/suites/outcomes/NAME.taeda.log`
what pytest printed. PyTorch's outcomes are kept for as long as the table does not change; --again
runs it again, --failed runs only what has not passed, --run none writes the page from outcomes
that are there. --sources names checkouts or bare repositories that are there already. A test that
ends the process is a crash, and the run goes on after it.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import fnmatch
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import checkouts
import compare_programs

ROOT = Path(__file__).resolve().parent.parent
SUITES = ROOT / "bench" / "suites"
FOLDER = ROOT / "build" / "suites"
HEAD = """\
| suite | revision | day | passed by both | by PyTorch only | by taeda only | neither | PyTorch's |
|---|---|---|---:|---:|---:|---:|---:|"""
RUN_LIMIT = 5400  # seconds that one run of pytest may take


@dataclass
class Suite:
    """A table of suites.toml."""

    name: str
    repository: str
    revision: str
    tests: list[str]
    files: list[str] = field(default_factory=list)
    folder: str = "."
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    packages: list[str] = field(default_factory=list)
    limit: int = 60
    share: int = 100
    reasons: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """What PyTorch's outcomes depend on."""
        parts = (self.revision, self.folder, self.tests, self.arguments, self.environment)
        return repr((*parts, self.share))

    def checkout(self, sources: str) -> Path:
        """The folder with the revision's files, cloned where it is not there yet."""
        to = FOLDER / self.name
        checkouts.unpack(to, self.repository, self.revision, self.files, sources)
        settings = [
            to / self.folder / name for name in ("pytest.ini", "pyproject.toml", "setup.cfg")
        ]
        if not any("pytest" in file.read_text() for file in settings if file.exists()):
            settings[0].touch()  # or pytest takes taeda's
        return to

    def installed(self) -> list[Path]:
        """The folder of the packages that this suite alone needs, if it needs any."""
        if not self.packages:
            return []
        folder = FOLDER / f"{self.name}_packages"
        folder.mkdir(parents=True, exist_ok=True)
        requirements = folder / "requirements.txt"
        requirements.write_text("\n".join(self.packages))
        return [compare_programs.packages(requirements, folder / "packages")]

    def run(
        self, framework: str, command: list[str], sources: str, path: list[Path], failed: bool
    ) -> None:
        """Runs pytest, and again after every crash."""
        outcomes = self.file(framework)
        keep_passed(outcomes) if failed else outcomes.unlink(missing_ok=True)
        path = [*self.installed(), *path]
        environment = os.environ | self.environment | {
            "OUTCOMES": str(outcomes), "LIMIT": str(self.limit),
            "SHARE": str(self.share), "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(map(str, [SUITES, *path])),
        }  # fmt: skip
        pytest = "-m pytest -q -p outcomes -p no:cacheprovider --tb=short".split()
        pytest += ["--continue-on-collection-errors", *self.arguments, *self.tests]
        folder = self.checkout(sources) / self.folder
        with open(outcomes.with_suffix(".log"), "w") as log:
            crashes = -1
            while crashed(outcomes) > crashes:
                crashes = crashed(outcomes)
                subprocess.run(
                    ["timeout", str(RUN_LIMIT), *command, *pytest],
                    cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False,
                )  # fmt: skip

    def counted(self, outcomes: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
        """The outcomes of the tests that the table does not leave out."""
        return {
            test: outcome
            for test, outcome in outcomes.items()
            if not any(fnmatch.fnmatch(test, pattern) for pattern in self.left_out)
        }

    def file(self, framework: str) -> Path:
        return FOLDER / "outcomes" / f"{self.name}.{framework}.jsonl"


def read(file: Path) -> dict[str, tuple[str, str]]:
    """Outcome and error of each test: what is written last, but that failures stay."""
    found: dict[str, tuple[str, str]] = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        record = json.loads(line)
        if found.get(record["test"], ("began", ""))[0] not in ("failed", "collection"):
            found[record["test"]] = (record["outcome"], record["error"])
    ends = {test: ("crash", "the process ended") for test in found if found[test][0] == "began"}
    return found | ends


def crashed(file: Path) -> int:
    """The number of tests that have ended their process."""
    return sum(outcome == "crash" for outcome, _ in read(file).values())


def keep_passed(file: Path) -> None:
    """Drops the other outcomes, so that the tests are run again."""
    kept = [
        json.dumps({"test": test, "outcome": outcome, "error": error})
        for test, (outcome, error) in read(file).items()
        if outcome in ("passed", "skipped")
    ]
    file.write_text("".join(f"{line}\n" for line in kept))


@dataclass
class Comparison:
    """What a suite's tests came to."""

    suite: Suite
    ours: dict[str, tuple[str, str]]
    theirs: dict[str, tuple[str, str]]

    @property
    def day(self) -> str:
        """When taeda's run ended."""
        file = self.suite.file("taeda")
        end = file.stat().st_mtime if file.exists() else 0
        return datetime.date.fromtimestamp(end).isoformat()

    def passed(self, outcomes: dict[str, tuple[str, str]]) -> set[str]:
        return {test for test, (outcome, _) in outcomes.items() if outcome == "passed"}

    @property
    def both(self) -> set[str]:
        return self.passed(self.ours) & self.passed(self.theirs)

    @property
    def only_theirs(self) -> set[str]:
        return self.passed(self.theirs) - self.passed(self.ours)

    @property
    def only_ours(self) -> set[str]:
        return self.passed(self.ours) - self.passed(self.theirs)

    def reason(self, test: str) -> str:
        """The reason that the table gives, or the error."""
        for pattern, reason in self.suite.reasons.items():
            if fnmatch.fnmatch(test, pattern):
                return reason
        file = test.split("::")[0]
        outcome, error = self.ours.get(test) or self.ours.get(file) or ("absent", "not collected")
        return f"{outcome}: {error}" if error else outcome

    def row(self) -> str:
        share = len(self.both) / max(1, len(self.both) + len(self.only_theirs))
        neither = set(self.ours) | set(self.theirs)
        neither -= self.both | self.only_theirs | self.only_ours
        return (
            f"| {self.suite.name} | {self.suite.revision} | {self.day} | {len(self.both)} | "
            f"{len(self.only_theirs)} | {len(self.only_ours)} | {len(neither)} | {share:.1%} |"
        )

    def differences(self) -> str:
        """The tests that pass with PyTorch only, those of one reason together."""
        groups = collections.defaultdict(list)
        for test in sorted(self.only_theirs):
            groups[re.sub(r"[|`]|0x[0-9a-f]+", "", self.reason(test))].append(test)
        left_out = self.suite.left_out
        lines = [f"## {self.suite.name}", ""] if groups or left_out else []
        lines += [f"- not counted, `{pattern}`: {why}" for pattern, why in left_out.items()]
        for reason, tests in sorted(groups.items(), key=lambda group: -len(group[1])):
            lines.append(f"- {reason} ({len(tests)}):")
            lines += [f"  `{test}`" for test in tests[:12]]
            lines += [f"  and {len(tests) - 12} more"] if len(tests) > 12 else []
        return "\n".join([*lines, "", ""]) if lines else ""


def written(page: str) -> tuple[dict[str, str], dict[str, str]]:
    """The rows and the lists of differences of a page, by the suites' names."""
    lists = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)[1:]
    rows = {line.split()[1]: line for line in re.findall(r"^\| \S+ \| .* \|$", page, re.MULTILINE)}
    rows.pop("suite", None)
    return rows, {
        name: f"## {name}\n{text.rstrip()}\n\n" for name, text in zip(lists[::2], lists[1::2])
    }


def with_share(row: str, share: int) -> str:
    """The row with the part of the tests that is run behind its revision, if it is a part."""
    cells = row.split("|")
    cells[2] = re.sub(r" \(\d+ %\)", "", cells[2])
    if share < 100:
        cells[2] = f"{cells[2].rstrip()} ({share} %) "
    return "|".join(cells)


def report(
    found: list[Comparison], page: str, names: list[str], shares: dict[str, int] | None = None
) -> str:
    """The page with what these suites came to; the others' rows stay as they were."""
    rows, lists = written(page)
    for one in found:
        rows[one.suite.name] = one.row()
        lists[one.suite.name] = one.differences()
    kept = [name for name in names if name in rows]
    numbers = [[int(cell) for cell in rows[name].split("|")[4:6]] for name in kept]
    both, theirs = sum(n[0] for n in numbers), sum(sum(n) for n in numbers)
    marked = [with_share(rows[name], (shares or {}).get(name, 100)) for name in kept]
    table = "\n".join([HEAD, *marked])
    return f"""# Libraries' own test suites

Made by `make suites`: the suites of `bench/suites/suites.toml`, unmodified, run by `python -m
taeda` and by PyTorch on the day of the row. Of {theirs} tests that pass with PyTorch {both} pass
here ({both / max(1, theirs):.1%}). Neither: failed, skipped or too slow with both. Of a suite with
a percentage behind its revision that part of the tests is run, drawn by their names.

{table}

# What passes with PyTorch only

{"".join(lists.get(name, "") for name in kept).rstrip()}
"""


def suites() -> list[Suite]:
    tables = tomllib.loads((SUITES / "suites.toml").read_text())
    return [Suite(name, **table) for name, table in tables.items()]


def has_pytorch(suite: Suite) -> bool:
    """Whether PyTorch's run for this table has ended."""
    mark = suite.file("torch").with_suffix(".table")
    return mark.exists() and mark.read_text() == suite.table


def run_pytorch(suite: Suite, sources: str, path: list[Path], again: bool, failed: bool) -> None:
    """Runs a suite with PyTorch where it has not been run for this table."""
    mark = suite.file("torch").with_suffix(".table")
    if again or failed or not has_pytorch(suite):
        mark.unlink(missing_ok=True)
        suite.run("torch", [sys.executable], sources, path, failed)
        mark.write_text(suite.table)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--again", action="store_true", help="run PyTorch too where it has run")
    parser.add_argument("--failed", action="store_true", help="only tests that have not passed")
    parser.add_argument("--run", default="taeda,torch", help="one of the two, or none: the page")
    parser.add_argument("--sources", default="", help="where repositories lie: F/{owner}+{name}")
    arguments = parser.parse_args()
    (FOLDER / "outcomes").mkdir(parents=True, exist_ok=True)
    python = compare_programs.install()
    packages = compare_programs.packages(SUITES / "requirements.txt", FOLDER / "packages")
    path = [packages, compare_programs.FOLDER / "packages"]
    found = []
    for suite in suites():
        if arguments.only and suite.name not in arguments.only.split(","):
            continue
        if "taeda" in arguments.run:
            command = [str(python), "-m", "taeda"]
            suite.run("taeda", command, arguments.sources, path, arguments.failed)
        if "torch" in arguments.run:
            run_pytorch(suite, arguments.sources, path, arguments.again, arguments.failed)
        ours, theirs = (suite.counted(read(suite.file(name))) for name in ("taeda", "torch"))
        one = Comparison(suite, ours, theirs)
        print(one.row(), one.differences(), sep="\n", flush=True)
        found.append(one)
    page = ROOT / "docs" / "suites.md"
    shares = {suite.name: suite.share for suite in suites()}
    complete = [one for one in found if one.ours and has_pytorch(one.suite)]
    page.write_text(report(complete, page.read_text(), list(shares), shares))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
