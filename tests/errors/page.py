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

A point for *where* (the operator, layer or argument is named) and one for *what* (what was expected
and what was given): taeda {ours} of {most}, PyTorch {theirs}.
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


def points(found: Said, mistake: Mistake) -> int:
    return all(part in found.text for part in mistake.where) + all(
        part in found.text for part in mistake.what
    )


def shown(found: Said) -> str:
    lines = f"{found.error}: {found.text}" if found.error else "no error"
    return "```text\n" + "\n".join(line.rstrip() for line in lines.split("\n")) + "\n```"


def entry(mistake: Mistake, ours: Said, theirs: Said) -> str:
    if ours.text == theirs.text:
        both = f"Both ({points(ours, mistake)} of 2):\n\n{shown(ours)}"
    else:
        both = (
            f"taeda ({points(ours, mistake)} of 2):\n\n{shown(ours)}\n\n"
            f"PyTorch ({points(theirs, mistake)} of 2):\n\n{shown(theirs)}"
        )
    code = mistake.code.rstrip("\n")
    return f"## {mistake.title}\n\n```py\n{code}\n```\n\n{both}\n\n**Fix:** {mistake.fix}.\n"


def page(taeda: Any, torch: Any) -> str:
    found = [(m, said(taeda, m), said(torch, m)) for m in MISTAKES]
    head = HEAD.format(
        count=len(found),
        version=torch.__version__.partition("+")[0],
        most=2 * len(found),
        ours=sum(points(ours, m) for m, ours, _ in found),
        theirs=sum(points(theirs, m) for m, _, theirs in found),
    )
    return "\n".join([head, *(entry(*one) for one in found)])
