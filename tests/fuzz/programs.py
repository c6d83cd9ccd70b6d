"""The programs of a run: batch b of seed s is always the same list, whatever runs it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from types import ModuleType

from tests.fuzz.exchange import Programs
from tests.fuzz.names import Names

HEADER = "import copy, io, pickle\nimport numpy as np\nimport {}\n"
# Of a hundred programs.
SHARES = {
    "operator": 42,
    "function": 10,
    "method": 9,
    "indexing": 8,
    "module": 8,
    "protocol": 5,
    "archive": 4,
    "optimizer": 3,
    "cls": 3,
    "exchange": 3,
    "property": 2,
    "graph": 2,
    "loader": 1,
}


@dataclass
class Program:
    kind: str
    target: str  # what it calls, for the summary
    text: str


def header(framework: str) -> str:
    return HEADER.format("torch" if framework == "torch" else f"{framework} as torch")


def batch(torch: ModuleType, names: Names, seed: int, number: int, count: int) -> list[Program]:
    rng = random.Random(f"{seed} {number}")
    make = Programs(torch, names, rng)
    programs = []
    for kind in rng.choices(list(SHARES), weights=list(SHARES.values()), k=count):
        target, text = getattr(make, kind)()
        programs.append(Program(kind, target, text))
    return programs
