"""What mistakes say, and docs/errors.md, which shows it side by side."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any, NamedTuple

from .cases import MISTAKES, Mistake

HEAD = """# What typical mistakes say

{count} mistakes, each run under taeda and under PyTorch {version} by `make docs-errors`. Types and
words are PyTorch's, since programs look for them; where they leave something open, taeda says more,
in the message or in the notes below it: the operator with the shapes and dtypes that it was given,
and the layer's path in the model.

The score counts what a test finds in the text: *where* (the operator or layer, and the argument
where one is at fault), *expected*, *given*, and the *fix*, each by the words that
`tests/errors/cases.py` lists for the mistake; a mistake without words for one of them has no point
for it. The words were written by those who wrote the messages, so the score tells what is there,
not how well it reads.

| | where | expected | given | fix | all four |
|---|---:|---:|---:|---:|---:|
{table}

What is missing is named beside each text; below it stands what to do.
"""


class Said(NamedTuple):
    error: str  # the exception's type, "" if there was none
    message: str
    notes: list[str]

    @property
    def text(self) -> str:
        return "\n".join([self.message, *self.notes])


def said(framework: Any, mistake: Mistake) -> Said:
    names = {"torch": framework, "nn": framework.nn, "F": framework.nn.functional}
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            exec(mistake.code, names)
        except Exception as error:
            return Said(type(error).__name__, str(error), list(getattr(error, "__notes__", [])))
    return Said("", "", [])


def scored(found: Said, mistake: Mistake) -> tuple[bool, ...]:
    """Whether where, expected, given and the fix are in the text; those without words are not."""
    asked = (mistake.where, mistake.expected, mistake.given, mistake.cure)
    return tuple(bool(words) and all(word in found.text for word in words) for words in asked)


ASPECTS = ("where", "expected", "given", "fix")


def row(name: str, scores: list[tuple[bool, ...]]) -> str:
    counts = [sum(score[i] for score in scores) for i in range(len(ASPECTS))]
    return f"| {name} | {' | '.join(map(str, [*counts, sum(map(all, scores))]))} |"


def label(name: str, score: tuple[bool, ...]) -> str:
    """'taeda (4 of 4)', 'PyTorch (2 of 4: no fix, no where)'."""
    lacking = ", ".join(f"no {aspect}" for aspect, has in zip(ASPECTS, score) if not has)
    return f"{name} ({sum(score)} of 4{': ' if lacking else ''}{lacking})"


def shown(found: Said) -> str:
    lines = f"{found.error}: {found.text}" if found.error else "no error"
    return "```text\n" + "\n".join(line.rstrip() for line in lines.split("\n")) + "\n```"


def entry(mistake: Mistake, ours: Said, theirs: Said) -> str:
    if ours.text == theirs.text:
        both = f"{label('Both', scored(ours, mistake))}:\n\n{shown(ours)}"
    else:
        both = (
            f"{label('taeda', scored(ours, mistake))}:\n\n{shown(ours)}\n\n"
            f"{label('PyTorch', scored(theirs, mistake))}:\n\n{shown(theirs)}"
        )
    code = mistake.code.rstrip("\n")
    return f"## {mistake.title}\n\n```py\n{code}\n```\n\n{both}\n\n**Fix:** {mistake.fix}.\n"


def page(taeda: Any, torch: Any) -> str:
    found = [(m, said(taeda, m), said(torch, m)) for m in MISTAKES]
    head = HEAD.format(
        count=len(found),
        version=torch.__version__.partition("+")[0],
        table="\n".join(
            [
                row(f"taeda, of {len(found)}", [scored(ours, m) for m, ours, _ in found]),
                row("PyTorch", [scored(theirs, m) for m, _, theirs in found]),
            ]
        ),
    )
    return "\n".join([head, *(entry(*one) for one in found)])
