"""The examples of docs/notes/custom-operators.md give what the page says."""

import doctest
import re
from pathlib import Path

import taeda

PAGE = Path(__file__).parents[2] / "docs/notes/custom-operators.md"


def test_the_pages_examples():
    text = re.sub(r"^```.*$", "", PAGE.read_text(), flags=re.M)
    test = doctest.DocTestParser().get_doctest(text, {"torch": taeda}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 15
    output: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=output.append, clear_globs=False)
    assert runner.failures == 0, "".join(output)
