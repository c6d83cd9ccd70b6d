#!/usr/bin/env python3
"""Writes a C++ test of the examples in the public headers' comments.

    tools/header_examples.py OUT [HEADER ...]     default: include/taeda/*.h

An example is a block of comment lines with three spaces before the code, after a line of the
comment that is empty or ends with a colon:

    //   Tensor x = ones({2, 3});
    //   assert(x.sum().item<float>() == 6);

Each becomes a test of its own, named by its header and line; `assert` is the test's. A block with
`...` in it is a sketch, which no compiler sees.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = re.compile(r"^\s*//   (.*)$")
HEAD = """// Written by tools/header_examples.py: the examples of the public headers.
#include <gtest/gtest.h>

#include "taeda/taeda.h"

#undef assert
#define assert(condition) EXPECT_TRUE(condition)
using namespace taeda;
"""


def examples(text: str) -> list[tuple[int, list[str]]]:
    """(line, code) of each example of a header."""
    found: list[tuple[int, list[str]]] = []
    last, above = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        match = CODE.match(line)
        if match and number != last + 1 and not above.rstrip().endswith(("//", ":")):
            match = None
        if match:
            if number != last + 1:
                found.append((number, []))
            found[-1][1].append(match[1])
            last = number
        above = line
    return [(line, code) for line, code in found if not any("..." in c for c in code)]


def test(header: Path, line: int, code: list[str]) -> list[str]:
    name = f"{''.join(part.title() for part in header.stem.split('_'))}Line{line}"
    body = [f"  {c}".rstrip() for c in code]
    return [f"TEST(HeaderExamples, {name}) {{", f'#line {line} "{header}"', *body, "}"]


def main(out: str, *names: str) -> None:
    headers = [Path(n) for n in names] or sorted((ROOT / "include/taeda").glob("*.h"))
    lines = [HEAD, *(f'#include "taeda/{h.name}"' for h in headers)]
    for header in headers:
        for line, code in examples(header.read_text()):
            lines += ["", *test(header, line, code)]
    text = "\n".join([*lines, ""])
    target = Path(out)
    if not target.exists() or target.read_text() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
