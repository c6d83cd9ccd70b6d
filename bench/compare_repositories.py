"""Programs of public repositories, run by taeda and by PyTorch: part of `make programs`.

    python bench/compare_repositories.py [--only 'minGPT*,mnist'] [--sources 'F/{owner}+{name}']

The programs of bench/repositories/programs.toml run unmodified on small data, with the same seeds,
in a process of each framework; the numbers that they print are compared one by one. Where they
part, PyTorch runs again with one weight changed in its last place, which says how far rounding
alone takes the program; where that moves less, with each weight changed so: a single change of
rounding's size may be rounded away itself. Two tables go to docs/programs.md; rows of what was not
run stay.

To add a program, add a table, and the packages that it needs and bench/programs/requirements.txt
lacks to bench/repositories/requirements.txt:

    [NAME]
    repository = "OWNER/NAME"      at github.com
    revision = "4b39c64"           a tag or commit
    files = ["src"]                what is needed of the repository; all of it if left out
    what = "graph attention"       what it is
    run = ["prepare.py", "train.py --epochs 2"]  programs and arguments, one after the other
    folder = "."                   where they run
    data = ["mnist ../data"]       functions of bench/repositories/small_data.py and their folders
    ignore = ["[0-9.]+s"]          patterns of what differs between any two runs
    lines = 20                     printed lines with numbers after which a program is ended
    errors = true                  what goes to the standard error stream counts too (logging)
    scalars = true                 and so does what goes to TensorBoard
    text = true                    the printed lines are compared, not the numbers in them
    environment = { A = "1" }
    folders = [".."]               where Python finds the repository's own packages
    reason = "..."                 why it is not run, or why its numbers part
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import agreement
import checkouts
import compare_programs

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "bench" / "repositories"
FOLDER = ROOT / "build" / "repositories"
EXAMPLES = "pytorch/examples"
CLOSE = 1e-3  # the relative difference of numbers that still count as the same
LIMIT = 900  # seconds that a program may take
CHANGED = "PyTorch with {} weight changed in its last place"
NUMBER = r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf)(?![\w])"
PROGRESS = [r"\d+:\d+(?::\d+)?<[\d:?]+", r"[\d.?]+ ?(?:it/s|s/it|img/s|s/img)"]  # of tqdm
TITLE = compare_programs.REPOSITORIES
INTRODUCTION = [
    """Programs of `bench/repositories/programs.toml`, unmodified, on small data, same seeds.
{good} of {ran} print PyTorch's numbers, each within 0.001 of it or the last digit; {alike} part
from them about as soon (half as late at the soonest) as PyTorch does from itself when one weight,
or each where that moves nothing sooner, is changed in its last place.""",
    """The examples of PyTorch's own repository, likewise: {good} of {ran} that ran print PyTorch's
numbers, {alike} part from them about as soon as PyTorch from itself.""",
]
HEAD = """\
| program | revision | what ran | numbers | agreement |
|---|---|---|---:|---|"""


@dataclass
class Program:
    """A table of programs.toml."""

    name: str
    repository: str
    revision: str
    what: str
    run: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    folder: str = "."
    data: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    lines: int = 0
    errors: bool = False
    scalars: bool = False
    text: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    reason: str = ""

    def numbers(self, output: str) -> list[str]:
        """The numbers in what a program printed, as it spelled them; or its lines."""
        for pattern in [*PROGRESS, *self.ignore]:
            output = re.sub(pattern, "", output)
        return output.splitlines() if self.text else re.findall(NUMBER, output)

    def prepare(self, to: Path, sources: str) -> Path:
        """Lays the program and its data into a folder; returns where it runs."""
        kept = FOLDER / f"{self.repository.replace('/', '+')}-{self.revision}"
        checkouts.unpack(kept, self.repository, self.revision, self.files, sources)
        shutil.copytree(kept, to / "program", symlinks=True)
        folder = to / "program" / self.folder
        for entry in self.data:
            maker, *arguments = shlex.split(entry)
            command = [sys.executable, str(HERE / "small_data.py"), maker, *arguments]
            path = {"PYTHONPATH": str(compare_programs.FOLDER / "packages")}
            subprocess.run(command, cwd=folder, check=True, env=os.environ | path)
        return folder

    def outcome(self, framework: str, command: list[str], sources: str, perturbed: str = ""):
        """What the programs printed, and the last line of what one that failed complained of."""
        settings = {
            "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2", "PYTHONUNBUFFERED": "1",
            "MPLBACKEND": "Agg", "TQDM_MININTERVAL": "0", "TQDM_MINITERS": "1",
            "PERTURBED": perturbed, "COLUMNS": "200",
            "SCALARS": "1" if self.scalars else "",
        }  # fmt: skip
        environment = os.environ | settings | self.environment
        packages = [FOLDER / "packages"]
        packages += [compare_programs.FOLDER / "packages"] if framework == "torch" else []
        environment["PYTHONPATH"] = os.pathsep.join([*self.folders, *map(str, packages)])
        output = ""
        with tempfile.TemporaryDirectory() as folder:
            where = self.prepare(Path(folder), sources)
            for one in self.run:
                seeded = [*command, str(HERE / "seeded.py"), *shlex.split(one)]
                text, error = self.read(seeded, where, environment)
                output += text
                if error:
                    return output, error
        return output, ""

    def read(self, command: list[str], folder: Path, environment: dict[str, str]):
        """Runs one program until it ends or has printed enough lines."""
        with tempfile.TemporaryFile("w+") as complaints:
            process = subprocess.Popen(
                ["timeout", str(LIMIT), *command], cwd=folder, env=environment, text=True,
                stdout=subprocess.PIPE, start_new_session=True, errors="replace",
                stderr=subprocess.STDOUT if self.errors else complaints,
            )  # fmt: skip
            assert process.stdout
            lines, seen = [], 0
            for line in process.stdout:
                lines.append(line)
                seen += bool(self.numbers(line))
                if self.lines and seen >= self.lines:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    return "".join(lines), ""
            code = process.wait()
            complaints.seek(0)
            text = (complaints.read() or "".join(lines)).strip().splitlines()
        error = (text[-1] if text else f"status {code}") if code else ""
        return "".join(lines), f"not within {LIMIT} s" if code == 124 else error


def apart(ours: str, theirs: str) -> float:
    """The relative difference of two printed numbers beyond one unit in the last printed place."""
    if ours == theirs:
        return 0.0
    try:
        a, b = float(ours), float(theirs)
    except ValueError:
        return math.inf
    if a == b or (a != a and b != b):
        return 0.0
    mantissa, _, exponent = theirs.lower().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return max(0.0, abs(a - b) - 1.01 * unit) / max(abs(a), abs(b))


def first_apart(ours: list[str], theirs: list[str]) -> tuple[int, float]:
    """How many numbers agree from the start, and the largest difference among them."""
    largest = 0.0
    for index, (a, b) in enumerate(zip(ours, theirs)):
        difference = apart(a, b)
        if not difference <= CLOSE:
            return index, largest
        largest = max(largest, difference)
    return min(len(ours), len(theirs)), largest


def compare(program: Program, python: Path, sources: str, log: Path) -> str:
    """The program's row: whether both print the same numbers."""
    theirs, failed = program.outcome("torch", [sys.executable], sources)
    ours, error = program.outcome("taeda", [str(python), "-m", "taeda"], sources)
    log.with_suffix(".torch.log").write_text(f"{theirs}\n{failed}")
    log.with_suffix(".taeda.log").write_text(f"{ours}\n{error}")
    numbers = program.numbers(theirs)
    agree, largest = first_apart(program.numbers(ours), numbers)
    some = bool(numbers) or program.text
    same = some and not error and not failed and agree == len(numbers) == len(program.numbers(ours))
    if error or failed:
        text = f"PyTorch: {failed}" if failed else error
        text = re.sub(r"[|`]", "", text)[:160]
    elif same:
        text = f"within {largest:.0e}" if largest else "the same"
    else:
        text = f"the first {agree}; {perturbed(program, sources, numbers, agree, log)}"
    if program.reason and not same:
        text += f": {program.reason}"
    count = f"{len(numbers)} lines" if program.text else str(len(numbers))
    return row(program, count, text)


def perturbed(program: Program, sources: str, numbers: list[str], agree: int, log: Path) -> str:
    """How many numbers PyTorch repeats with one weight changed, or each where that says less."""
    for setting, weights in ("1", "one"), ("all", "each"):
        again, _ = program.outcome("torch", [sys.executable], sources, setting)
        log.with_suffix(f".{weights}.log").write_text(again)
        other, _ = first_apart(program.numbers(again), numbers)
        if agreement.alike(agree, other):
            break
    return f"{CHANGED.format(weights)} the first {other}"


def row(program: Program, numbers: str, text: str) -> str:
    ran = "; ".join(f"`{one}`" for one in program.run)
    name = program.name if program.repository == EXAMPLES else program.repository
    return f"| {name}: {program.what} | {program.revision} | {ran} | {numbers} | {text} |"


def programs() -> list[Program]:
    tables = tomllib.loads((HERE / "programs.toml").read_text())
    return [Program(name, **table) for name, table in tables.items()]


def written(page: str) -> dict[str, str]:
    """The rows of a page's tables of repositories, by what they start with."""
    rows = re.findall(r"^\| [^|\n]+ \|[^\n]+$", page.partition(TITLE)[2], re.MULTILINE)
    return {text.split("|")[1].strip(): text for text in rows}


def report(page: str, found: dict[str, str], listed: list[Program]) -> str:
    """The page with these rows; those of programs that were not run stay."""
    rows = written(page)
    for text in found.values():
        rows[text.split("|")[1].strip()] = text
    parts = []
    for title, examples in (TITLE, False), (f"# {EXAMPLES}", True):
        chosen = [p for p in listed if (p.repository == EXAMPLES) == examples]
        texts = [rows[key] for p in chosen if (key := row(p, "", "").split("|")[1].strip()) in rows]
        ran = [text for text in texts if text.split("|")[4].strip()]
        counts = agreement.count(ran)
        good, soon = counts["same"], counts["soon"]
        parts.append(f"""{title}

{INTRODUCTION[examples].format(good=good, ran=len(ran), alike=soon)}

{HEAD}
{chr(10).join(texts)}
""")
    whole = page.partition(TITLE)[0].rstrip() + "\n\n" + "\n".join(parts)
    return agreement.with_total(whole)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*", help="patterns of names, separated by commas")
    parser.add_argument("--sources", default="", help="where repositories lie: F/{owner}+{name}")
    arguments = parser.parse_args()
    python = compare_programs.install()
    FOLDER.mkdir(parents=True, exist_ok=True)
    compare_programs.packages(HERE / "requirements.txt", FOLDER / "packages")
    (FOLDER / "logs").mkdir(parents=True, exist_ok=True)
    listed = programs()
    found: dict[str, str] = {}
    for program in listed:
        if not any(fnmatch(program.name, pattern) for pattern in arguments.only.split(",")):
            continue
        if program.run:
            log = FOLDER / "logs" / program.name
            found[program.name] = compare(program, python, arguments.sources, log)
        else:
            found[program.name] = row(program, "", program.reason)
        print(found[program.name], flush=True)
        page = ROOT / "docs" / "programs.md"  # after each: a run takes an hour
        page.write_text(report(page.read_text(), found, listed))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
