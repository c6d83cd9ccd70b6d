"""Makes what kills or hangs a process small: first fewer programs, then smaller ones."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator

from tests.fuzz.programs import Program
from tests.fuzz.runner import Finding, start

Dies = Callable[[list[Program]], bool]
SECONDS = 40.0  # for one finding


def children(node: ast.AST) -> Iterator[ast.expr]:
    """Smaller expressions that may stand for this one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node.func.value
    if isinstance(node, (ast.BinOp, ast.Compare)):
        yield node.left
    if isinstance(node, ast.Subscript):
        yield node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        yield from node.elts
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) > 2:
        yield ast.Constant(1)


def edits(tree: ast.Module) -> Iterator[ast.Module]:
    """Every tree that one simplification gives: less of the last lines first."""
    for i in range(len(tree.body)):
        yield ast.Module(tree.body[:i] + tree.body[i + 1 :], [])
    nodes = list(ast.walk(tree))
    for at, node in enumerate(nodes):
        if isinstance(node, ast.Call):
            for field in ("keywords", "args"):
                for i in range(len(getattr(node, field))):
                    smaller = copy.deepcopy(tree)
                    del getattr(list(ast.walk(smaller))[at], field)[i]
                    yield smaller
        for i in range(sum(1 for _ in children(node))):
            smaller = copy.deepcopy(tree)
            twin = list(ast.walk(smaller))[at]
            target = list(children(twin))[i]
            for parent in ast.walk(smaller):
                replace_child(parent, twin, target)
            yield smaller


def replace_child(parent: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for name, value in ast.iter_fields(parent):
        if value is old:
            setattr(parent, name, new)
        elif isinstance(value, list):
            setattr(parent, name, [new if item is old else item for item in value])


def smaller_text(text: str, dies: Callable[[str], bool], end: float) -> str:
    tried = {text}
    shrinking = True
    while shrinking and time.monotonic() < end:
        shrinking = False
        for tree in edits(ast.parse(text)):
            try:
                candidate = ast.unparse(ast.fix_missing_locations(tree))
            except (AttributeError, ValueError):
                continue
            if candidate in tried or len(candidate) >= len(text) or time.monotonic() > end:
                continue
            tried.add(candidate)
            if dies(candidate):
                text, shrinking = candidate, True
                break
    return text


def fewer(programs: list[Program], dies: Dies, end: float) -> list[Program]:
    """Delta debugging over whole programs."""
    chunk = max(1, len(programs) // 2)
    while chunk and time.monotonic() < end:
        at = 0
        while at < len(programs) and time.monotonic() < end:
            rest = programs[:at] + programs[at + chunk :]
            if rest and dies(rest):
                programs = rest
            else:
                at += chunk
        chunk //= 2
    return programs


def shrink(finding: Finding, framework: str) -> bool:
    """Replaces the finding's programs by as few and small ones as there was time for; False when
    the fault does not come again."""

    def dies(programs: list[Program]) -> bool:
        outcome = start(framework, programs).wait()
        return (outcome.cause == "hang") == (finding.cause == "hang") and outcome.cause != ""

    end = time.monotonic() + SECONDS
    programs = finding.programs
    if dies(programs[-1:]):
        programs = programs[-1:]
    elif dies(programs):
        programs = fewer(programs, dies, end)
    else:
        return False
    for i, p in enumerate(programs):

        def with_text(text: str, i: int = i, p: Program = p) -> bool:
            return dies([*programs[:i], Program(p.kind, p.target, text), *programs[i + 1 :]])

        programs[i] = Program(p.kind, p.target, smaller_text(p.text, with_text, end))
    finding.programs = programs
    return True
