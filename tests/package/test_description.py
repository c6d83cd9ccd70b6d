"""What an index shows of the package: the README, with links that lead somewhere from anywhere."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "packaging"))

import description  # noqa: E402

LINK = re.compile(r"\[[^\]]*\]\(([^)]*)\)")


def test_the_description_has_no_links_or_pictures_of_the_repository():
    found = description.dynamic_metadata("readme", {})
    assert found["content-type"] == "text/markdown"
    assert [
        target for target in LINK.findall(found["text"]) if not re.match("https?:", target)
    ] == []
    assert (
        "report.png" not in found["text"] and "after training on Fashion-MNIST" not in found["text"]
    )
    assert "## Five lines of Python" in found["text"] and "docs/install.md" in found["text"]


def test_addresses_and_words_stay():
    text = (
        "A.\n\n![p](docs/p.png)\n\n*Words.*\n\nB [c](c.md#x), [`d`](e), [w](https://w.example).\n"
    )
    assert description.text(text) == "A.\n\nB c, `d`, [w](https://w.example).\n"


def test_the_metadata_of_a_build_has_it(tmp_path, monkeypatch):
    build = pytest.importorskip("scikit_build_core.build")
    monkeypatch.chdir(ROOT)
    name = build.prepare_metadata_for_build_wheel(str(tmp_path))
    text = (tmp_path / name / "METADATA").read_text()
    assert "\n# taeda\n" in text and "](docs/" not in text


def test_other_fields_are_refused():
    with pytest.raises(RuntimeError, match="readme"):
        description.dynamic_metadata("version", {})
